import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import type { Store } from '@transitd/storage-fsm';
import { DamagedRecord } from '../errors.ts';
import type { Paths } from '../keys/paths.ts';
import { wipe } from '../secrets.ts';

/** Bytes of the modulus, and so of what RSA-OAEP makes with it. */
export const wrappingKeyBytes = 512;
const formatVersion = 1;
const generate = promisify(generateKeyPair);

/** The key under which key material comes in. */
export interface WrappingKeyPair {
  readonly privateKey: KeyObject;
  /** SubjectPublicKeyInfo. */
  readonly publicPem: string;
}

/**
 * The mount's wrapping key: RSA of 4,096 bits, made when it is first asked for, on the thread pool, and never changed. It lies in the store,
 * so every node has the same one; of several that are made at the same time, one is stored.
 */
export class WrappingKey {
  readonly #store: Store;
  readonly #path: string;
  #loaded: WrappingKeyPair | undefined;
  #making: Promise<void> | undefined;

  constructor(store: Store, { wrappingKey }: Paths) {
    this.#store = store;
    this.#path = wrappingKey;
  }

  async get(): Promise<WrappingKeyPair> {
    for (;;) {
      if (this.#loaded !== undefined) return this.#loaded;
      const stored = await this.#store.get(this.#path);
      if (stored !== undefined) {
        try {
          this.#loaded = decode(stored.value);
          return this.#loaded;
        } finally {
          wipe([stored]);
        }
      }
      this.#making ??= this.#make().finally(() => {
        this.#making = undefined;
      });
      await this.#making;
    }
  }

  /** Whether this key or another one was stored, one is there afterwards. */
  async #make(): Promise<void> {
    const { privateKey } = await generate('rsa', { modulusLength: wrappingKeyBytes * 8, publicExponent: 0x10001 });
    const der = privateKey.export({ type: 'pkcs8', format: 'der' });
    const value = Buffer.concat([Uint8Array.of(formatVersion), der]);
    der.fill(0);
    try {
      await this.#store.commit({ conditions: [{ path: this.#path, revision: 0 }], writes: [{ path: this.#path, value }] });
    } finally {
      value.fill(0);
    }
  }
}

/** `format u8 | PKCS#8 in DER` */
function decode(value: Uint8Array): WrappingKeyPair {
  if (value[0] !== formatVersion) throw new DamagedRecord('the wrapping key has a format that this program does not know');
  try {
    const der = Buffer.from(value.buffer, value.byteOffset + 1, value.length - 1);
    const privateKey = createPrivateKey({ key: der, type: 'pkcs8', format: 'der' });
    const publicPem = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString();
    return { privateKey, publicPem };
  } catch {
    throw new DamagedRecord('the wrapping key cannot be read'); // the parser's own message could quote it
  }
}
