// Key material on its way into an engine, wrapped as callers wrap it.
import { constants, createPublicKey, publicEncrypt, randomBytes } from 'node:crypto';
import { memoryStore, type Store } from '@transitd/storage-fsm';
import { wrapKey } from '../../src/algorithms/key-wrap.ts';
import { newEngine, paths, secret } from '../fixtures.ts';

let wrappingKeyRecord: Promise<Uint8Array> | undefined;

/** A store that holds a wrapping key already: making one takes seconds, so all tests share it. */
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

/** base64 of RSA-OAEP of an ephemeral key and the material wrapped under that. @param publicPem - the wrapping key */
export function wrapped(publicPem: string, material: Uint8Array, { hash = 'sha256', keyBytes = 32 }: Wrapping = {}): string {
  const ephemeral = randomBytes(keyBytes);
  const key = createPublicKey(publicPem);
  const outer = publicEncrypt({ key, oaepHash: hash, padding: constants.RSA_PKCS1_OAEP_PADDING }, ephemeral);
  const inner = wrapKey(secret(keyBytes === 32 ? ephemeral : Buffer.alloc(32)), material);
  return Buffer.concat([outer, inner]).toString('base64');
}
