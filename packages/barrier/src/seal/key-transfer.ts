import type { RecordClock } from '@transitd/process';
import {
  type Condition,
  pagesBelow,
  type ReplicatedRecord,
  type ReplicatedWrite,
  type Store,
  untilCommitted,
  type Write,
} from '@transitd/storage-fsm';
import { closeKeyring, type Keyring, keyringConflict, openKeyring, wipeKeyring, withNewTerm } from '../keyring/keyring.ts';
import type { Keys } from '../keyring/loaded-keys.ts';
import { corruptValue, decryptValue, encryptValue, termOf } from '../keyring/value.ts';
import { BarrierError } from '../records/errors.ts';
import { isReserved, keyringPath, recoverySharesPath, sealPath } from '../records/paths.ts';
import { readSeal } from './core-records.ts';
import { requireOwnRecord } from './own-record.ts';
import { ownSealFor, ownSealRecords } from './own-seal.ts';
import { closeRecoveryShares, openRecoveryShares } from './recovery-shares.ts';
import { type SealConfig, sealOf } from './seal-config.ts';
import { decodeSeal } from './seal-record.ts';

export interface KeyTransferParts {
  /** The store with the encrypted records. */
  readonly store: Store;
  /** The records in plaintext. */
  readonly plaintext: Store;
  readonly seal: SealConfig;
  /** @throws StoreError `sealed` */
  readonly keys: () => Keys;
  /** Updates `keys` to the keyring in the store. */
  readonly reload: () => Promise<void>;
  /** Returns the replicated count of values ever written. */
  readonly valuesWritten: () => number;
  readonly clock: RecordClock;
}

/** The keys of a state that another cluster made. */
export interface ForeignKeys {
  readonly rootKey: Uint8Array;
  /** The values of {@link transferredPaths} in that state, by path. */
  readonly records: ReadonlyMap<string, Uint8Array>;
}

/** The records of a received state that {@link KeyTransfer} needs. */
export const transferredPaths: readonly string[] = [keyringPath, sealPath, recoverySharesPath];

/** The part of the entry that ends a restore in a replication set which depends on keys. */
export interface RestoredKeys {
  readonly conditions: readonly Condition[];
  readonly writes: readonly Write[];
  readonly local: readonly ReplicatedRecord[];
}

/** Decrypts values of another state. */
export interface ValueReader {
  /** @throws BarrierError `barrier_corrupt` */
  read(path: string, value: Uint8Array): Buffer;
  /** Wipes the keys. */
  close(): void;
}

/**
 * The keys of clusters that replicate each other. They share the root key and the keyring. Clusters with a Shamir seal share that seal too:
 * the primary's shares unseal the secondary. Clusters with any other seal each have their own, which wraps the same root key. All methods
 * throw StoreError `sealed` while sealed.
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
    const { keys, clock, reload, valuesWritten } = this.#parts;
    await reload();
    const { rootKey, keyring } = keys();
    const next = withNewTerm(keyring, { installedMs: clock.dueMs(), valuesAtInstall: valuesWritten() });
    const value = closeKeyring(rootKey, next);
    wipeKeyring(next);
    return { path: keyringPath, value };
  }

  /**
   * Writes the record of the recovery shares, which clusters with a seal of their own replicate. Call it before this cluster becomes the
   * primary of such clusters; later, a rekey keeps the record right.
   * @throws BarrierError `conflict`, `barrier_corrupt`, `seal_mismatch`; StoreError
   */
  async publishRecoveryShares(): Promise<void> {
    const { keys, reload, store } = this.#parts;
    await untilCommitted(async () => {
      const seal = await readSeal(store);
      await reload();
      const { keyring, keyringConditions } = keys();
      if (seal === undefined) throw new BarrierError('not_initialized', 'transitd is not initialized');
      if (!(await requireOwnRecord(seal, this.#parts))) return undefined;
      const { shares, threshold, shareHashes } = seal.record;
      const value = closeRecoveryShares(keyring.newest, { counts: { shares, threshold }, shareHashes });
      const conditions = [{ path: sealPath, revision: seal.revision }, ...keyringConditions];
      const { outcome } = await store.commit({ conditions, writes: [{ path: recoverySharesPath, value }] });
      return outcome === 'committed' ? outcome : undefined;
    }, keyringConflict);
  }

  /** Returns whether the present root key opens the value of a record `core/keyring`. @throws BarrierError `barrier_corrupt` */
  opens(closed: Uint8Array): boolean {
    const keyring = openKeyring(this.#parts.keys().rootKey, closed);
    if (keyring !== undefined) wipeKeyring(keyring);
    return keyring !== undefined;
  }

  /**
   * Returns a reader of the values of another state whose keyring the present root key opens.
   * @param closed - the value of the record `core/keyring` in that state
   * @throws BarrierError `barrier_corrupt`
   */
  readerOf(closed: Uint8Array): ValueReader {
    const keyring = openBackupKeyring(this.#parts.keys().rootKey, closed);
    return {
      read(path, value) {
        const term = keyring.terms.get(termOf(path, value));
        if (term === undefined) throw corruptValue(path);
        return decryptValue(term, path, value);
      },
      close: () => wipeKeyring(keyring),
    };
  }

  /**
   * Returns the records below the prefixes with their revisions, encrypted for a state of another cluster, which is to replace the state
   * of this one. If the seal is among them, it wraps the root key of that state.
   * @throws BarrierError `seal_mismatch` if this node could not be unsealed with that state; `barrier_corrupt` if the root key does not
   * open its keyring, or a record is missing; ProviderError; StoreError
   */
  async localRecords(prefixes: readonly string[], foreign: ForeignKeys): Promise<ReplicatedRecord[]> {
    const { plaintext, seal } = this.#parts;
    const hasOwnSeal = prefixes.includes(sealPath);
    if (!hasOwnSeal) requireShared(seal, foreign);
    const keyring = openKeyring(foreign.rootKey, recordOf(foreign, keyringPath));
    if (keyring === undefined)
      throw new BarrierError('barrier_corrupt', `the root key of the primary does not open the received ${keyringPath}`);
    try {
      const records = hasOwnSeal ? await this.#ownSeal(foreign, keyring) : [];
      for (const prefix of prefixes)
        for await (const page of pagesBelow(plaintext, { prefix }))
          for (const { path, value, revision } of page) {
            if (isReserved(path)) continue;
            records.push({ path, value: encryptValue(keyring.newest, path, value), revision });
            value.fill(0);
          }
      return records;
    } finally {
      wipeKeyring(keyring);
    }
  }

  /**
   * Returns the records of this cluster's own seal that must be committed in one entry with these writes of the primary: none, unless they
   * are a rekey. `unknown`: this cluster cannot find out the new root key from them, and needs the whole state.
   * @throws BarrierError; ProviderError; StoreError
   */
  async ownSealFor(writes: readonly ReplicatedWrite[]): Promise<ReplicatedRecord[] | 'unknown'> {
    if (!writes.some(({ path }) => path === keyringPath)) return []; // nearly all writes: nothing has to be read
    await this.#parts.reload();
    return ownSealFor(writes, this.#parts);
  }

  /**
   * Returns the keyring of a backup with one more key, and the records of the present state that a restore in a replication set keeps,
   * encrypted under that key. The key has encrypted nothing: a secondary may have used the newest key of the backup since.
   * @param closed - value of the record `core/keyring` in the backup
   * @param local - prefixes of the local records
   * @param kept - paths of replicated records; if one is absent, it is deleted from the backup's state
   * @throws BarrierError `barrier_corrupt` if the present root key does not open the keyring; StoreError
   */
  async keysForRestore(
    closed: Uint8Array,
    { local, kept }: { readonly local: readonly string[]; readonly kept: readonly string[] },
  ): Promise<RestoredKeys> {
    const { store, keys, clock, reload, valuesWritten } = this.#parts;
    await reload();
    const { rootKey, keyringConditions } = keys();
    const opened = openBackupKeyring(rootKey, closed);
    const next = withNewTerm(opened, { installedMs: clock.dueMs(), valuesAtInstall: valuesWritten() });
    wipeKeyring(opened);
    try {
      const encryptedAgain = (path: string, value: Uint8Array): Buffer => {
        const term = keys().keyring.terms.get(termOf(path, value));
        if (term === undefined) throw corruptValue(path);
        const plaintext = decryptValue(term, path, value);
        const encrypted = encryptValue(next.newest, path, plaintext);
        plaintext.fill(0);
        return encrypted;
      };
      const conditions = [...keyringConditions];
      const writes: Write[] = [{ path: keyringPath, value: closeKeyring(rootKey, next) }];
      for (const path of [recoverySharesPath, ...kept]) {
        const record = await store.get(path);
        conditions.push({ path, revision: record?.revision ?? 0 });
        writes.push({ path, value: record === undefined ? null : encryptedAgain(path, record.value) });
      }
      const records: ReplicatedRecord[] = [];
      // The seal is not encrypted, and wraps the same root key as before.
      for (const prefix of local)
        for await (const page of pagesBelow(store, { prefix }))
          for (const { path, value, revision } of page)
            if (path !== sealPath) records.push({ path, value: encryptedAgain(path, value), revision });
      return { conditions, writes, local: records };
    } finally {
      wipeKeyring(next);
    }
  }

  #ownSeal(foreign: ForeignKeys, keyring: Keyring): Promise<ReplicatedRecord[]> {
    const shares = openRecoveryShares(keyring.terms, recordOf(foreign, recoverySharesPath));
    return ownSealRecords(this.#parts, { rootKey: foreign.rootKey, keyring, ...shares });
  }
}

/** @throws BarrierError `barrier_corrupt` */
function openBackupKeyring(rootKey: Uint8Array, closed: Uint8Array): Keyring {
  const keyring = openKeyring(rootKey, closed);
  if (keyring === undefined) throw new BarrierError('barrier_corrupt', `the root key does not open this ${keyringPath}`);
  return keyring;
}

/** @throws BarrierError `barrier_corrupt` if the received state does not have the record */
function recordOf({ records }: ForeignKeys, path: string): Uint8Array {
  const value = records.get(path);
  if (value === undefined) throw new BarrierError('barrier_corrupt', `the received state has no ${path}`);
  return value;
}

/** Checks that the shares of the received state's seal unseal this cluster. @throws BarrierError */
function requireShared(seal: SealConfig, foreign: ForeignKeys): void {
  const { type } = sealOf(seal, decodeSeal(recordOf(foreign, sealPath)));
  if (type !== 'shamir')
    throw new BarrierError(
      'seal_mismatch',
      `the received state has a seal of type ${type}, and this set shares a shamir seal: its clusters cannot unseal each other's state`,
    );
}
