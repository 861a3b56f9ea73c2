import { createHmac, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import type { Store, Write } from '@transitd/storage-fsm';

/** What stands for a text in the entries of one sink: `hmac-sha256:` and 64 hex digits. */
export type HashText = (text: string) => string;

const path = 'core/audit-key';
const format = 1;
const keyBytes = 32;

/** `format u8 | key`: bytes and not JSON, so that it can be wiped. */
export const initialAuditKey = (): Write => ({ path, value: Buffer.concat([Buffer.of(format), randomBytes(keyBytes)]) });

/** Makes the key of a cluster that was founded before there was one; the active node does so. @throws StoreError */
export async function ensureAuditKey(store: Store): Promise<void> {
  if ((await store.get(path)) !== undefined) return;
  await store.commit({ conditions: [{ path, revision: 0 }], writes: [initialAuditKey()] });
}

/**
 * The keys under which entries show strings: one a sink, HKDF-SHA256 (RFC 5869) of the cluster's key with the sink's name, so that one
 * text has one hash in the sinks of one name on all nodes, and another in any other sink.
 */
export class AuditKey {
  readonly #store: Pick<Store, 'get'>;
  readonly #keys = new Map<string, KeyObject>();

  constructor(store: Pick<Store, 'get'>) {
    this.#store = store;
  }

  /** @throws Error while the cluster has no key, or for a format that is not known; StoreError */
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
    if (record === undefined) throw new Error('the cluster has no audit key yet: its active node makes it within seconds');
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
