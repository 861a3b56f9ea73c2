import type { ReplicatedRecord, Store, Write } from '@transitd/storage-fsm';
import { closeKeyring, openKeyring, wipeKeyring, withNewTerm } from '../keyring/keyring.ts';
import type { Keys } from '../keyring/loaded-keys.ts';
import { encryptValue } from '../keyring/value.ts';
import { BarrierError } from '../records/errors.ts';
import { isReserved, keyringPath, sealPath } from '../records/paths.ts';
import { type SealConfig, sealOf } from './seal-config.ts';
import { decodeSeal } from './seal-record.ts';

export interface KeyTransferParts {
  /** The records in plaintext. */
  readonly plaintext: Store;
  readonly seal: SealConfig;
  /** @throws StoreError `sealed` */
  readonly keys: () => Keys;
  /** Updates `keys` to the keyring in the store. */
  readonly reload: () => Promise<void>;
  /** Returns the replicated count of values ever written. */
  readonly valuesWritten: () => number;
  /** Returns the time in whole milliseconds since the epoch. */
  readonly now: () => number;
}

/** The keys of a state that another cluster made. */
export interface ForeignKeys {
  readonly rootKey: Uint8Array;
  /** The values of the records `core/keyring` and `core/seal` in that state; undefined if it has none. */
  readonly keyring: Uint8Array | undefined;
  readonly seal: Uint8Array | undefined;
}

/**
 * The keys of clusters that replicate each other. They share the root key, the keyring and the seal, so only a Shamir seal is supported:
 * the primary's shares unseal the secondary. All methods throw StoreError `sealed` while sealed.
 */
export class KeyTransfer {
  readonly #parts: KeyTransferParts;

  constructor(parts: KeyTransferParts) {
    this.#parts = parts;
  }

  /**
   * Returns a copy of the root key, for a secondary that has proved to be one; the caller wipes it. It opens the keyring in the store
   * unless a rekey happens at the same time.
   */
  async rootKey(): Promise<Buffer> {
    const { keys, reload } = this.#parts;
    await reload();
    return Buffer.from(keys().rootKey);
  }

  /**
   * Returns the write of the present keyring with one more key. Committed in one entry with a promotion, it separates the two sides: each
   * value written before or at the same time under the old key conflicts.
   */
  async keyringForPromotion(): Promise<Write> {
    const { keys, now, reload, valuesWritten } = this.#parts;
    await reload();
    const { rootKey, keyring } = keys();
    const next = withNewTerm(keyring, { installedMs: now(), valuesAtInstall: valuesWritten() });
    const value = closeKeyring(rootKey, next);
    wipeKeyring(next);
    return { path: keyringPath, value };
  }

  /**
   * Returns the records below the prefixes with their revisions, encrypted for a state of another cluster, which is to replace the state
   * of this one.
   * @throws BarrierError `seal_mismatch` if this node could not be unsealed with that state; `barrier_corrupt` if the root key does not
   * open its keyring; StoreError
   */
  async localRecords(prefixes: readonly string[], foreign: ForeignKeys): Promise<ReplicatedRecord[]> {
    const { plaintext, seal } = this.#parts;
    if (foreign.seal === undefined || foreign.keyring === undefined)
      throw new BarrierError(
        'barrier_corrupt',
        `the received state has no ${foreign.seal === undefined ? sealPath : keyringPath}`,
      );
    const { type } = sealOf(seal, decodeSeal(foreign.seal));
    if (type !== 'shamir')
      throw new BarrierError(
        'seal_mismatch',
        `clusters with a seal of type ${type} cannot replicate each other: use a shamir seal`,
      );
    const keyring = openKeyring(foreign.rootKey, foreign.keyring);
    if (keyring === undefined)
      throw new BarrierError('barrier_corrupt', `the root key of the primary does not open the received ${keyringPath}`);
    try {
      const writes: ReplicatedRecord[] = [];
      for (const prefix of prefixes)
        for await (const { path, value, revision } of recordsBelow(plaintext, prefix)) {
          if (isReserved(path)) continue;
          writes.push({ path, value: encryptValue(keyring.newest, path, value), revision });
          value.fill(0);
        }
      return writes;
    } finally {
      wipeKeyring(keyring);
    }
  }
}

async function* recordsBelow(store: Store, prefix: string) {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page = await store.range({ prefix, ...(after === '' ? {} : { after }) });
    yield* page.records;
    after = page.next;
  }
}
