// Key material wrapped for an import.
import { constants, createPublicKey, publicEncrypt, randomBytes } from 'node:crypto';
import { memoryStore, type Store } from '@transitd/storage-fsm';
import { wrapKey } from '../../src/algorithms/key-wrap.ts';
import { newEngine, paths, secret } from '../fixtures.ts';

let wrappingKeyRecord: Promise<Uint8Array> | undefined;

/** A store with a wrapping key. All tests share it, because generating one takes seconds. */
export async function storeWithWrappingKey(): Promise<Store> {
  wrappingKeyRecord ??= (async () => {
    const { engine, store } = newEngine();
    await engine.transfers.wrappingKey();
    const record = await store.get(paths.wrappingKey);
    if (record === undefined) throw new Error('no wrapping key was made');
    return record.value;
  })();
  const store = memoryStore();
  await store.commit({ conditions: [], writes: [{ path: paths.wrappingKey, value: await wrappingKeyRecord }] });
  return store;
}

export interface Wrapping {
  readonly hash?: string;
  /** Of the ephemeral key. */
  readonly keyBytes?: number;
}

/** Returns base64 of an RSA-OAEP-encrypted ephemeral key and the material wrapped under it. @param publicPem - the wrapping key */
export function wrapped(publicPem: string, material: Uint8Array, { hash = 'sha256', keyBytes = 32 }: Wrapping = {}): string {
  const ephemeral = randomBytes(keyBytes);
  const key = createPublicKey(publicPem);
  const outer = publicEncrypt({ key, oaepHash: hash, padding: constants.RSA_PKCS1_OAEP_PADDING }, ephemeral);
  const inner = wrapKey(secret(keyBytes === 32 ? ephemeral : Buffer.alloc(32)), material);
  return Buffer.concat([outer, inner]).toString('base64');
}
