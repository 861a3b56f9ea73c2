import { encryptionKeyNotFound, TransitError } from '../values/errors.ts';
import type { BatchReply } from './batch.ts';
import { type CmacRequest, type CmacResult, cmacOperation } from './cmac.ts';
import { type HmacRequest, type HmacResult, hmacOperation } from './hmac.ts';
import { perform, type Tools } from './operation.ts';
import { type SignRequest, type SignResult, signOperation } from './sign.ts';
import { type VerifyRequest, type VerifyResult, verifyOperation } from './verify.ts';

/** Signatures and MACs. A refusal is a {@link TransitError}. */
export class Signing {
  readonly #tools: Tools;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  /** @throws TransitError */
  sign(name: string, request: SignRequest): Promise<SignResult | BatchReply<SignResult>> {
    return perform(signOperation, this.#tools, name, request, signingKeyNotFound);
  }

  /** @throws TransitError */
  hmac(name: string, request: HmacRequest): Promise<HmacResult | BatchReply<HmacResult>> {
    return perform(hmacOperation, this.#tools, name, request, encryptionKeyNotFound);
  }

  /** @throws TransitError */
  cmac(name: string, request: CmacRequest): Promise<CmacResult | BatchReply<CmacResult>> {
    return perform(cmacOperation, this.#tools, name, request, encryptionKeyNotFound);
  }

  /** Verifies signatures or MACs. A wrong one gives `valid: false`, not a refusal. @throws TransitError */
  verify(name: string, request: VerifyRequest): Promise<VerifyResult | BatchReply<VerifyResult>> {
    return perform(verifyOperation, this.#tools, name, request, verificationKeyNotFound);
  }
}

const signingKeyNotFound = (): TransitError => new TransitError('key_not_found', 'signing key not found');
const verificationKeyNotFound = (): TransitError => new TransitError('key_not_found', 'signature verification key not found');
