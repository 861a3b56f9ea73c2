import { createHmac, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import type { Store, Write } from '@transitd/storage-fsm';

/** Returns the hash that replaces a text in the entries of one device: `hmac-sha256:` and 64 hex digits. */
export type HashText = (text: string) => string;

const path = 'core/audit-key';
const format = 1;
const keyBytes = 32;

/** The record with a new key: `format u8 | key`. Bytes rather than JSON, so that the key can be wiped from memory. */
export const initialAuditKey = (): Write => ({ path, value: Buffer.concat([Buffer.of(format), randomBytes(keyBytes)]) });

/** Creates the key in a cluster that was created by a version without audit keys. Called on the active node. @throws StoreError */
export async function ensureAuditKey(store: Store): Promise<void> {
  if ((await store.get(path)) !== undefined) return;
  await store.commit({ conditions: [{ path, revision: 0 }], writes: [initialAuditKey()] });
}

/**
 * The keys that hash the strings of entries, one for each device: HKDF-SHA256 (RFC 5869) of the cluster's key and the device's name. A
 * string has the same hash in devices of the same name on all nodes, and a different hash in every other device.
 */
export class AuditKey {
  readonly #store: Pick<Store, 'get'>;
  readonly #keys = new Map<string, KeyObject>();

  constructor(store: Pick<Store, 'get'>) {
    this.#store = store;
  }

  /** @throws Error while the cluster has no key, and for an unknown format; StoreError */
  async hashOf(device: string): Promise<HashText> {
    let key = this.#keys.get(device);
    if (key === undefined) {
      key = await this.#derive(device);
      this.#keys.set(device, key);
    }
    return hashUnder(key);
  }

  forget(): void {
    this.#keys.clear();
  }

  async #derive(device: string): Promise<KeyObject> {
    const record = await this.#store.get(path);
    if (record === undefined) throw new Error('the cluster has no audit key yet: the active node creates it within seconds');
    const { value } = record;
    if (value[0] !== format || value.length !== 1 + keyBytes) throw new Error(`the record ${path} has an unknown format`);
    const derived = new Uint8Array(hkdfSync('sha256', value.subarray(1), '', `transitd audit ${device}`, keyBytes));
    const key = createSecretKey(derived);
    derived.fill(0);
    value.fill(0);
    return key;
  }
}

const hashUnder =
  (key: KeyObject): HashText =>
  (text) =>
    `hmac-sha256:${createHmac('sha256', key).update(text, 'utf8').digest('hex')}`;
