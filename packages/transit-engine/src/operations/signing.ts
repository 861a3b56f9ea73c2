import type { UseTally } from '../keys/use-tally.ts';
import { encryptionKeyNotFound, TransitError } from '../values/errors.ts';
import type { BatchReply } from './batch.ts';
import { type CmacRequest, type CmacResult, cmacOperation } from './cmac.ts';
import { type HmacRequest, type HmacResult, hmacOperation } from './hmac.ts';
import { counting, perform, type Tools } from './operation.ts';
import { type SignRequest, type SignResult, signOperation } from './sign.ts';
import { type VerifyRequest, type VerifyResult, verifyOperation } from './verify.ts';

/** Signatures and MACs, counted in a tally if there is one. A refusal is a {@link TransitError}. */
export class Signing {
  readonly #tools: Tools;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  /** @throws TransitError */
  sign(name: string, request: SignRequest, tally?: UseTally): Promise<SignResult | BatchReply<SignResult>> {
    return perform(signOperation, counting(this.#tools, tally), name, request, signingKeyNotFound);
  }

  /** @throws TransitError */
  hmac(name: string, request: HmacRequest, tally?: UseTally): Promise<HmacResult | BatchReply<HmacResult>> {
    return perform(hmacOperation, counting(this.#tools, tally), name, request, encryptionKeyNotFound);
  }

  /** @throws TransitError */
  cmac(name: string, request: CmacRequest, tally?: UseTally): Promise<CmacResult | BatchReply<CmacResult>> {
    return perform(cmacOperation, counting(this.#tools, tally), name, request, encryptionKeyNotFound);
  }

  /** Verifies signatures or MACs. A wrong one gives `valid: false`, not a refusal. @throws TransitError */
  verify(name: string, request: VerifyRequest, tally?: UseTally): Promise<VerifyResult | BatchReply<VerifyResult>> {
    return perform(verifyOperation, counting(this.#tools, tally), name, request, verificationKeyNotFound);
  }
}

const signingKeyNotFound = (): TransitError => new TransitError('key_not_found', 'signing key not found');
const verificationKeyNotFound = (): TransitError => new TransitError('key_not_found', 'signature verification key not found');
