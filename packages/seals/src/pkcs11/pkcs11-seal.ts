import { randomBytes } from 'node:crypto';
import { ProviderError, type ProviderFailure, type WrappedKey } from '@transitd/barrier';
import { Pkcs11Failure, type Pkcs11FailureCode, type Pkcs11Tokens, type TokenKey } from '@transitd/pkcs11';
import { purpose } from '../backend/purpose.ts';
import type { SealBackend } from '../backend/seal-backend.ts';

export interface Pkcs11SealParts {
  readonly tokens: Pick<Pkcs11Tokens, 'encrypt' | 'decrypt' | 'random' | 'requireAes256'>;
  /** Reads the PIN at each call. @throws ProviderError */
  readonly pin: () => Promise<string>;
  readonly key: Omit<TokenKey, 'pin' | 'mechanism'>;
}

const ivBytes = 12;
const tagBytes = 16;

/** A seal with an AES key in a PKCS#11 token. The token encrypts with AES-256-GCM (NIST SP 800-38D) and a random initialization vector. */
export class Pkcs11Seal implements SealBackend {
  readonly type = 'pkcs11';
  readonly #parts: Pkcs11SealParts;

  constructor(parts: Pkcs11SealParts) {
    this.#parts = parts;
  }

  async wrap(plaintext: Uint8Array): Promise<WrappedKey> {
    const iv = randomBytes(ivBytes);
    const gcm = { input: plaintext, iv, associatedData: purpose };
    const sealed = await this.#withKey((key) => this.#parts.tokens.encrypt(key, gcm));
    return { keyId: this.#keyId, ciphertext: Buffer.concat([iv, sealed]).toString('base64') };
  }

  async unwrap({ ciphertext, keyId }: WrappedKey): Promise<Buffer> {
    const box = Buffer.from(ciphertext, 'base64');
    if (box.length < ivBytes + tagBytes)
      throw new ProviderError('wrong_key', `the stored key was not encrypted by a pkcs11 seal: ${keyId}`);
    const gcm = { input: box.subarray(ivBytes), iv: box.subarray(0, ivBytes), associatedData: purpose };
    return this.#withKey((key) => this.#parts.tokens.decrypt(key, gcm));
  }

  /** Draws from the generator of the token. The key is not used. */
  async random(bytes: number): Promise<Buffer> {
    return this.#call((key) => this.#parts.tokens.random(key, bytes), { ...failures, not_possible: 'unsupported' });
  }

  /** Names the token and the key. The name of the library is left out, because it may differ between nodes. */
  get #keyId(): string {
    const { slot, tokenLabel, keyLabel, keyId } = this.#parts.key;
    const token = tokenLabel ?? `slot ${slot}`;
    return `${token}/${keyLabel ?? Buffer.from(keyId ?? []).toString('hex')}`;
  }

  #withKey(operation: (key: TokenKey) => Promise<Buffer>): Promise<Buffer> {
    return this.#call(async (key) => {
      await this.#parts.tokens.requireAes256(key); // read at each call, because the token may have another key by now
      return operation(key);
    });
  }

  async #call(operation: (key: TokenKey) => Promise<Buffer>, meaning = failures): Promise<Buffer> {
    const { key, pin } = this.#parts;
    const token: TokenKey = { ...key, pin: await pin(), mechanism: 'CKM_AES_GCM' };
    try {
      return await operation(token);
    } catch (error) {
      if (!(error instanceof Pkcs11Failure)) throw error;
      throw new ProviderError(meaning[error.code], `the pkcs11 seal with the key ${this.#keyId}: ${error.message}`, {
        cause: error,
      });
    }
  }
}

const failures: Readonly<Record<Pkcs11FailureCode, ProviderFailure>> = {
  ambiguous: 'wrong_key',
  binding_missing: 'unreachable',
  busy: 'throttled',
  closed: 'unreachable',
  key_not_found: 'wrong_key',
  key_unsuitable: 'wrong_key',
  library_unusable: 'unreachable',
  not_authentic: 'wrong_key',
  not_possible: 'wrong_key',
  pin_refused: 'permission',
  timeout: 'unreachable',
  token_failed: 'unreachable',
  token_not_found: 'unreachable',
};
