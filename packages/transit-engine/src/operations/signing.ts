import { encryptionKeyNotFound, TransitError } from '../errors.ts';
import type { BatchReply } from './batch.ts';
import { cmacOperation } from './cmac.ts';
import { hmacOperation } from './hmac.ts';
import type { KeyedWork } from './keyed-work.ts';
import { type CmacRequest, type CmacResult, cmacWork, type HmacRequest, type HmacResult, hmacWork } from './requests.ts';
import { type SignResult, signing } from './sign.ts';
import { type SignRequest, signWork, type VerifyRequest, verifyWork } from './signature-requests.ts';
import { type VerifyResult, verification } from './verify.ts';

/** What shows that data came from who holds a key: signatures and MACs. A refusal is a {@link TransitError}. */
export class Signing {
  readonly #keys: KeyedWork;

  constructor(keys: KeyedWork) {
    this.#keys = keys;
  }

  /** @throws TransitError */
  async sign(name: string, request: SignRequest): Promise<SignResult | BatchReply<SignResult>> {
    return this.#keys.perform(signing, name, signWork(request), signingKeyNotFound);
  }

  /** @throws TransitError */
  async hmac(name: string, request: HmacRequest): Promise<HmacResult | BatchReply<HmacResult>> {
    return this.#keys.perform(hmacOperation, name, hmacWork(request), encryptionKeyNotFound);
  }

  /** @throws TransitError */
  async cmac(name: string, request: CmacRequest): Promise<CmacResult | BatchReply<CmacResult>> {
    return this.#keys.perform(cmacOperation, name, cmacWork(request), encryptionKeyNotFound);
  }

  /** Whether a signature or a MAC is the key's over that input; a wrong one is an answer, not a refusal. @throws TransitError */
  async verify(name: string, request: VerifyRequest): Promise<VerifyResult | BatchReply<VerifyResult>> {
    return this.#keys.perform(verification, name, verifyWork(request), verificationKeyNotFound);
  }
}

const signingKeyNotFound = (): TransitError => new TransitError('key_not_found', 'signing key not found');
const verificationKeyNotFound = (): TransitError => new TransitError('key_not_found', 'signature verification key not found');
