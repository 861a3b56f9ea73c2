import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { sharedRun } from '@transitd/event-loop';
import type { Store } from '@transitd/storage-fsm';
import { generateRsa } from '../key-pairs/rsa-generation.ts';
import type { Paths } from '../keys/paths.ts';
import { DamagedRecord } from '../values/errors.ts';
import { wipe } from '../values/secrets.ts';

/** Bytes of the modulus and of an RSA-OAEP ciphertext. */
export const wrappingKeyBytes = 512;
const formatVersion = 1;

/** The key under which callers wrap material for import. */
export interface WrappingKeyPair {
  readonly privateKey: KeyObject;
  /** SubjectPublicKeyInfo. */
  readonly publicPem: string;
}

/**
 * The mount's wrapping key: RSA of 4,096 bits, generated on first use on the thread pool and never changed. The key is stored, so all nodes
 * have the same key; if several nodes generate a key at the same time, only one of these keys is stored.
 */
export class WrappingKey {
  readonly #store: Store;
  readonly #path: string;
  #loaded: WrappingKeyPair | undefined;
  /** Concurrent callers wait for one key. */
  readonly #generateOnce = sharedRun(() => this.#generate());

  constructor(store: Store, { wrappingKey }: Paths) {
    this.#store = store;
    this.#path = wrappingKey;
  }

  /** @throws TransitError `busy_generation` */
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
      await this.#generateOnce();
    }
  }

  /** Generates and stores a key, unless another node has stored one in the meantime. */
  async #generate(): Promise<void> {
    const { material } = await generateRsa(wrappingKeyBytes * 8);
    const value = Buffer.concat([Uint8Array.of(formatVersion), material]);
    material.fill(0);
    try {
      await this.#store.commit({ conditions: [{ path: this.#path, revision: 0 }], writes: [{ path: this.#path, value }] });
    } finally {
      value.fill(0);
    }
  }
}

/** `format u8 | PKCS#8 in DER` */
function decode(value: Uint8Array): WrappingKeyPair {
  if (value[0] !== formatVersion) throw new DamagedRecord('the wrapping key has a format unknown to this program');
  try {
    const der = Buffer.from(value.buffer, value.byteOffset + 1, value.length - 1);
    const privateKey = createPrivateKey({ key: der, type: 'pkcs8', format: 'der' });
    const publicPem = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString();
    return { privateKey, publicPem };
  } catch {
    throw new DamagedRecord('the wrapping key cannot be read'); // the parser's message could quote the key
  }
}
