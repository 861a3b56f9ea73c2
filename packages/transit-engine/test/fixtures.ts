import { createSecretKey, type KeyObject } from 'node:crypto';
import { memoryStore, type Store } from '@transitd/storage-fsm';
import { clockOf } from '../../process/test/test-clock.ts';
import type { Aead } from '../src/algorithms/aead.ts';
import {
  type DecryptRequest,
  type DecryptResult,
  type EncryptRequest,
  type EncryptResult,
  type EngineCaches,
  engineCaches,
  type RewrapRequest,
  TransitEngine,
  type TransitEngineOptions,
  TransitError,
} from '../src/index.ts';
import { CacheBudget } from '../src/keys/cache-budget.ts';
import { decodeKeyRecord, type KeyRecord } from '../src/keys/key-record.ts';
import { keyType } from '../src/keys/key-type.ts';
import { pathsOf } from '../src/keys/paths.ts';
import { decodeVersionRecord, type VersionRecord } from '../src/keys/version-record.ts';

export const mountId = 'm1';
export const paths = pathsOf(mountId);
export const startMs = 1_760_000_000_000;
export const base64 = (text: string): string => Buffer.from(text).toString('base64');
export const fox = base64('the quick brown fox');
export const contextOne = base64('context one');
/** The capabilities of a caller with all permissions. */
export const anything = { mayCreate: true, mayUpdate: true };
export const aeadTypes = ['aes128-gcm96', 'aes256-gcm96', 'chacha20-poly1305'];

/** An engine over a store in memory, and a clock that the test moves. */
export function newEngine(options: Partial<TransitEngineOptions> = {}) {
  const store: Store = options.store ?? memoryStore();
  const clock = { nowMs: startMs };
  const engine = new TransitEngine({ mountId, clock: clockOf(() => clock.nowMs), ...options, store });
  return { engine, store, clock };
}

/** Caches with this many bytes for keys. */
export const keyCaches = (bytes: number): EngineCaches => ({ ...engineCaches(), keys: new CacheBudget(bytes) });

/** Returns the refusal of a request, and fails if it is not refused. */
export async function refusalOf(request: Promise<unknown>): Promise<Pick<TransitError, 'code' | 'message'>> {
  try {
    await request;
  } catch (error) {
    if (error instanceof TransitError) return { code: error.code, message: error.message };
    throw error;
  }
  throw new Error('the request was not refused');
}

export async function encryptOne(engine: TransitEngine, name: string, request: Partial<EncryptRequest>): Promise<EncryptResult> {
  const reply = await engine.ciphertexts.encrypt(name, { ...anything, ...request });
  if ('results' in reply) throw new Error('the request was no batch');
  return reply;
}

export async function decryptOne(engine: TransitEngine, name: string, request: DecryptRequest): Promise<DecryptResult> {
  const reply = await engine.ciphertexts.decrypt(name, request);
  if ('results' in reply) throw new Error('the request was no batch');
  return reply;
}

export async function rewrapOne(engine: TransitEngine, name: string, request: RewrapRequest): Promise<EncryptResult> {
  const reply = await engine.ciphertexts.rewrap(name, request);
  if ('results' in reply) throw new Error('the request was no batch');
  return reply;
}

export async function storedKey(store: Store, name: string): Promise<KeyRecord> {
  const stored = await store.get(paths.key(name));
  if (stored === undefined) throw new Error('no such key');
  return decodeKeyRecord(stored.value);
}

/** Returns a version's record. */
export async function storedVersion(store: Store, name: string, version: number): Promise<VersionRecord> {
  const { id } = await storedKey(store, name);
  const stored = await store.get(paths.version({ keyId: id, version }));
  if (stored === undefined) throw new Error('no such version');
  return decodeVersionRecord(stored.value);
}

/** All records of the mount: path and value in hex. */
export async function everything(store: Store): Promise<Record<string, string>> {
  const { records } = await store.range({ prefix: paths.mount });
  return Object.fromEntries(records.map(({ path, value }) => [path, Buffer.from(value).toString('hex')]));
}

/** Splits a payload into its parts. */
export function layoutOf(ciphertext: string): { nonce: Buffer; sealed: Buffer; tag: Buffer } {
  const payload = Buffer.from(ciphertext.split(':')[2] ?? '', 'base64');
  return { nonce: payload.subarray(0, 12), sealed: payload.subarray(12, -16), tag: payload.subarray(-16) };
}

/** A type's AEAD. */
export function aeadOf(type: string): Aead {
  const { aead } = keyType(type);
  if (aead === undefined) throw new Error(`${type} does not encrypt`);
  return aead;
}

export const secret = (bytes: Uint8Array): KeyObject => createSecretKey(bytes);
