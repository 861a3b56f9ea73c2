import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { type Barrier, BarrierError, keyringPath, sealRecordPaths } from '@transitd/barrier';
import type { ClusterAuthority } from '@transitd/cluster';
import { type Logger, reasonOf, version } from '@transitd/process';
import { CodecError, type LogIndex } from '@transitd/raft-core';
import {
  archiveOf,
  noProof,
  readArchive,
  type SealedParts,
  SnapshotError,
  type SnapshotParts,
  sumsOf,
  unusableSnapshot,
} from '@transitd/snapshot-archive';
import {
  type CommitResult,
  type FeatureLevel,
  inspectSnapshot,
  makeDirectory,
  type Replica,
  type ReplicationState,
  type RestorableTotals,
  type RestoreOutcome,
  readSnapshotFile,
  recordsOfSnapshot,
  restoreSnapshot,
  type SnapshotSummary,
  StoreError,
  writeSnapshotFile,
} from '@transitd/storage-fsm';
import type { ReadRecords } from '@transitd/transit-engine';

/** A cluster of a replication set, as a restore sees it. */
export interface ReplicationSet {
  readonly state: ReplicationState;
  /** Log index of the present records. */
  readonly appliedIndex: LogIndex;
  /** Paths of replicated records that belong to the set rather than to the state: a restore keeps them. */
  readonly kept: readonly string[];
}

/** The part of an engine that backups and restores use. */
export interface SnapshotEngine {
  readonly replica: Pick<Replica, 'commit' | 'status'>;
  readonly featureLevel: FeatureLevel;
  /** Undefined if the cluster is in no replication set. */
  readonly set: ReplicationSet | undefined;
  /** Path prefixes whose records a restore keeps as they are. */
  readonly keep: readonly string[];
  /** Whether less than the reserve is free on the data disk. */
  diskLow(): boolean;
  /** Encodes a state that contains everything that was acknowledged before the call. @throws StoreError */
  backup(): Promise<AsyncIterable<Uint8Array>>;
  /** Deletes the leftovers of ended restores, but nothing of the restore that is `underWay`. @throws StoreError */
  clearLeftovers(underWay: string | undefined): Promise<void>;
}

interface BackedUpMember {
  readonly engine: SnapshotEngine;
  readonly barrier: Barrier;
  readonly directory: string;
  readonly log: Logger;
  readonly authority: AuthorityKeeper;
}

/** Keeps the cluster's signing authority through a restore. */
interface AuthorityKeeper {
  /** Returns the authority, if a restore keeps it; undefined before it is created. @throws StoreError */
  signingAuthority(): Promise<ClusterAuthority | undefined>;
  /** Writes the authority under the keys in force. @throws StoreError, ClusterCallError */
  restoreAuthority(authority: ClusterAuthority): Promise<void>;
}

export interface RestoreResult {
  readonly records: number;
  /** The snapshot has another root key: the nodes are sealed until its shares or its seal key are given. */
  readonly sealed: boolean;
}

/** Maximum size of the state in one archive. */
const stateBytesMax = 64 * 2 ** 30;
/** Maximum number of archives at a time. Each is a copy of the state on disk until its caller has read it. */
const openArchivesMax = 4;
/** How often the records that a restore in a replication set keeps may change while it ends. */
const replaceAttemptsMax = 8;

/** Returns the folder for archives in transfer, below the data directory. Files that a crash left there are deleted at the next start. */
export const transfersFolder = (directory: string): string => join(directory, 'transfers');

/** Returns what an archive says of the state that it contains, now. */
export const partsOf = (
  clusterId: string,
  { meta: { index, term }, level }: Pick<SnapshotSummary, 'meta' | 'level'>,
  state: SnapshotParts['state'],
): SnapshotParts => ({
  meta: { format: 1, version, clusterId, index, term, createdUtc: new Date().toISOString(), featureLevel: level },
  state,
});

/** Takes backups of the cluster's state and restores them, on the active node. Every engine can restore the backups of the others. */
export class Snapshots {
  readonly #member: BackedUpMember;
  /** Archives that are being written or read. */
  #openArchives = 0;
  /** Id of the restore in progress. */
  #attempt: string | undefined;
  /** The cluster's authority, to be written again as soon as the barrier is unsealed with the keys of the snapshot. */
  #authority: ClusterAuthority | undefined;

  constructor(member: BackedUpMember) {
    this.#member = member;
  }

  /** Returns an archive with everything that was acknowledged before the call. @throws StoreError */
  async take(): Promise<Readable> {
    if (this.#openArchives >= openArchivesMax)
      throw new StoreError('busy', `${openArchivesMax} snapshots are being taken already; try again later`);
    this.#openArchives += 1;
    let path = '';
    try {
      const { engine, barrier } = this.#member;
      const { clusterId } = engine.replica.status();
      const backup = await engine.backup();
      path = await this.#newFile();
      const sum = createHash('sha256');
      await onDisk(writeSnapshotFile(path, this.#checkingDisk(backup, sum)));
      const summary = await inspectSnapshot(readSnapshotFile(path));
      const parts = partsOf(clusterId, summary, { bytes: (await stat(path)).size, sha256: sum.digest('hex') });
      const sums = sumsOf(parts);
      const archive = archiveOf({ ...parts, sums, proof: barrier.prove('snapshot', sums) }, createReadStream(path));
      archive.once('close', () => {
        this.#openArchives -= 1;
        void this.#remove(path);
      });
      return archive;
    } catch (error) {
      this.#openArchives -= 1;
      if (path !== '') await this.#remove(path);
      throw error;
    }
  }

  /**
   * Replaces the state by that of an archive, on every node at the same commit. Nothing changes before the whole archive was checked.
   * @param proved - whether the archive must have the proof that it was made under the present root key
   * @throws SnapshotError, StoreError; what `source` throws
   */
  async restore(source: AsyncIterable<Uint8Array>, { proved }: { readonly proved: boolean }): Promise<RestoreResult> {
    const { set } = this.#member.engine;
    requirePrimary(set);
    if (this.#attempt !== undefined) throw new StoreError('busy', 'another snapshot is being restored; try again later');
    const attempt = randomUUID();
    this.#attempt = attempt;
    let statePath = '';
    try {
      statePath = await this.#newFile();
      const parts = await this.#read(source, statePath);
      await this.#check(parts, { statePath, proved });
      if (set !== undefined) return await this.#replaceInSet(statePath, attempt);
      await this.#requireOpenable(statePath);
      return await this.#replaceState(statePath, attempt);
    } finally {
      this.#attempt = undefined;
      if (statePath !== '') await this.#remove(statePath);
    }
  }

  /**
   * Runs a task that reads single records, in plaintext, of an archive that was made under the present root key.
   * @throws SnapshotError, StoreError; what `source` and `task` throw
   */
  async reading<T>(source: AsyncIterable<Uint8Array>, task: (read: ReadRecords) => Promise<T>): Promise<T> {
    const { barrier } = this.#member;
    const statePath = await this.#newFile();
    try {
      const parts = await this.#read(source, statePath);
      if (!barrier.isProof('snapshot', parts.sums, parts.proof))
        throw new SnapshotError(
          'not_restorable',
          'this snapshot was made under another root key, before a rekey: restore it on a separate cluster with the shares of that time',
        );
      await this.#checkState(parts, statePath);
      const stored = (paths: readonly string[]) => recordsOfSnapshot(readSnapshotFile(statePath), paths);
      const keyring = (await stored([keyringPath])).get(keyringPath);
      if (keyring === undefined) throw unusableSnapshot('it has no keyring');
      const reader = barrier.transfer.readerOf(keyring);
      try {
        return await task(
          async (paths) => new Map(Array.from(await stored(paths), ([path, value]) => [path, reader.read(path, value)])),
        );
      } finally {
        reader.close();
      }
    } finally {
      await this.#remove(statePath);
    }
  }

  /**
   * Completes a restore whose snapshot sealed this node: once this node is unsealed, writes the authority through the node that is active
   * then.
   * @throws StoreError, ClusterCallError
   */
  async finish(): Promise<void> {
    if (this.#authority === undefined || this.#member.barrier.state.sealed) return;
    await this.#member.authority.restoreAuthority(this.#authority);
    this.#authority = undefined;
    this.#member.log.info("the cluster's authority was written under the keys of the restored snapshot");
  }

  /** Deletes the leftovers of ended restores; a periodic task of the active node. @throws StoreError */
  async clearLeftovers(): Promise<void> {
    await this.#member.engine.clearLeftovers(this.#attempt);
  }

  async #check(
    parts: SealedParts,
    { statePath, proved }: { readonly statePath: string; readonly proved: boolean },
  ): Promise<void> {
    const { sums, proof } = parts;
    if (proved && proof.equals(noProof))
      throw new SnapshotError(
        'not_restorable',
        'this snapshot was recovered from the disk of a stopped node, so nothing proves its content: only snapshot-force restores it, ' +
          'and seals all nodes if its keys are not the present ones',
      );
    if (proved && !this.#member.barrier.isProof('snapshot', sums, proof))
      throw new SnapshotError(
        'not_restorable',
        'this snapshot was made under another root key, or not by this program: only snapshot-force restores it, ' +
          'and seals all nodes if its keys are not the present ones',
      );
    await this.#checkState(parts, statePath);
  }

  /** Checks that the state is whole, and of a level that the members of this cluster support. */
  async #checkState({ meta }: SealedParts, statePath: string): Promise<void> {
    const summary = await this.#summary(statePath);
    if (summary.meta.index !== meta.index || summary.meta.term !== meta.term)
      throw unusableSnapshot('its meta.json does not match its state');
    this.#requireLevel(summary.level);
  }

  /** Refuses the state of a later release: nodes that do not support its level could not read its records. */
  #requireLevel(level: FeatureLevel): void {
    const present = this.#member.engine.featureLevel;
    if (level <= present) return;
    throw new SnapshotError(
      'not_restorable',
      `this snapshot was made at feature level ${level}, and the cluster is at feature level ${present}: upgrade all members to a release that supports level ${level} and raise the feature level first`,
    );
  }

  /** Refuses a state that this node's seal cannot open: it would leave the cluster sealed with no way back. */
  async #requireOpenable(path: string): Promise<void> {
    const records = await recordsOfSnapshot(readSnapshotFile(path), sealRecordPaths);
    try {
      await this.#member.barrier.requireOpenable(records);
    } catch (error) {
      if (!(error instanceof BarrierError)) throw error;
      throw new SnapshotError(
        'not_restorable',
        `the seal of this node cannot open this snapshot, and nothing was changed: ${error.message}. ` +
          'For a static seal, configure the seal key of the snapshot as seal.previous on every node, restart them, and restore again',
      );
    }
  }

  async #summary(path: string): Promise<SnapshotSummary> {
    try {
      return await inspectSnapshot(readSnapshotFile(path));
    } catch (error) {
      throw error instanceof CodecError ? unusableSnapshot(error.message) : error;
    }
  }

  async #replaceState(path: string, attempt: string): Promise<RestoreResult> {
    const { engine, barrier, log } = this.#member;
    const authority = await this.#member.authority.signingAuthority();
    const { outcome, records, index } = await restoreSnapshot(engine.replica, () => readSnapshotFile(path), {
      attempt,
      keep: engine.keep,
    });
    if (outcome === 'superseded') throw superseded();
    log.warn({ records, index }, 'the state was replaced by that of a snapshot');
    this.#authority = authority;
    try {
      // The snapshot's keyring is in force. A new key has certainly encrypted nothing before, and the kept records are written under it.
      await barrier.rotation.rotate();
      await this.finish();
      return { records, sealed: false };
    } catch (error) {
      if (!(error instanceof StoreError || error instanceof BarrierError)) throw error;
      log.warn(
        { reason: error.message },
        'the keys of the restored snapshot are not those of this node: unseal every node with the shares or seal key of the snapshot',
      );
      return { records, sealed: barrier.state.sealed };
    }
  }

  async #replaceInSet(path: string, attempt: string): Promise<RestoreResult> {
    const { barrier, log } = this.#member;
    const { outcome, records, index } = await this.#restoreInSet(path, attempt, await this.#keyringForSet(path));
    if (outcome === 'superseded') throw superseded();
    log.warn({ records, index }, 'the state was replaced by that of a snapshot; the secondaries receive all of it');
    return { records, sealed: barrier.state.sealed };
  }

  /**
   * Returns the keyring of a backup that a replication set can restore: the present root key opens it, so every cluster of the set can be
   * unsealed with the restored state as with the present one.
   * @throws SnapshotError
   */
  async #keyringForSet(path: string): Promise<Uint8Array> {
    const keyring = (await recordsOfSnapshot(readSnapshotFile(path), [keyringPath])).get(keyringPath);
    if (keyring === undefined || !this.#member.barrier.transfer.opens(keyring))
      throw new SnapshotError(
        'not_restorable',
        'this snapshot was made under another root key, so the secondaries could not be unsealed with it, and nothing was changed: ' +
          'to restore it, end the replication set and begin a new one',
      );
    return keyring;
  }

  /**
   * Restores a backup on the primary of a replication set. Its last entry keeps the local records and those of the set, under a new key of
   * the barrier. Each secondary then receives the whole state.
   * @param keyring - of the backup
   * @throws as `restoreSnapshot` does; BarrierError
   */
  async #restoreInSet(path: string, attempt: string, keyring: Uint8Array): Promise<RestoreOutcome> {
    const { engine, barrier } = this.#member;
    const present = (): ReplicationSet => {
      const { set } = engine;
      requirePrimary(set);
      if (set === undefined) throw new StoreError('busy', 'the replication set was ended in the meantime: restore again');
      return set;
    };
    const { state, kept } = present();
    const { local } = state;
    const from = state.epochs.at(-1);
    if (from === undefined) throw new TypeError('a primary has an epoch');
    const replace = async (staged: RestorableTotals): Promise<CommitResult> => {
      for (let tries = 1; ; tries += 1) {
        const { appliedIndex: localReadAt } = present();
        const keys = await barrier.transfer.keysForRestore(keyring, { local, kept });
        const step = { kind: 'restore', from, attempt, ...staged, ...keys, localReadAt } as const;
        const result = await engine.replica.commit({ replication: step });
        // A conflict: one of the kept records has changed since it was read, or the attempt has ended.
        if (result.outcome === 'committed' || tries === replaceAttemptsMax) return result;
      }
    };
    return restoreSnapshot(engine.replica, () => readSnapshotFile(path), { attempt, keep: local, replace });
  }

  async *#checkingDisk(source: AsyncIterable<Uint8Array>, sum: ReturnType<typeof createHash>): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
      this.#refuseWhenLow();
      sum.update(chunk);
      yield chunk;
    }
  }

  #read(source: AsyncIterable<Uint8Array>, statePath: string): Promise<SealedParts> {
    return onDisk(readArchive(source, { statePath, bytesMax: stateBytesMax, watch: () => this.#refuseWhenLow() }));
  }

  #refuseWhenLow(): void {
    if (this.#member.engine.diskLow()) throw new StoreError('disk_low', 'the data disk is below its reserve');
  }

  /** A disk that refuses this changes the outcome of no transfer. */
  async #remove(path: string): Promise<void> {
    await rm(path, { force: true }).catch((error: unknown) =>
      this.#member.log.warn(
        { reason: reasonOf(error) },
        'a file of a backup or a restore could not be removed: the next start removes it',
      ),
    );
  }

  async #newFile(): Promise<string> {
    this.#refuseWhenLow();
    const folder = transfersFolder(this.#member.directory);
    await makeDirectory(folder);
    return join(folder, `${randomUUID()}.bin`);
  }
}

/** A data directory of a node on etcd has no reserve: it contains only these files. @throws StoreError `disk_low` if the disk is full */
async function onDisk<T>(written: Promise<T>): Promise<T> {
  try {
    return await written;
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    throw new StoreError('disk_low', 'the disk of data_dir has no room for this snapshot: free space on this node');
  }
}

/** @throws SnapshotError unless the cluster, if it is in a replication set, is the primary */
function requirePrimary(set: ReplicationSet | undefined): void {
  if (set !== undefined && set.state.role !== 'primary')
    throw new SnapshotError(
      'not_restorable',
      'only the primary of a replication set can be restored: its secondaries receive the restored state',
    );
}

const superseded = (): StoreError =>
  new StoreError(
    'busy',
    'another restore has started in the meantime, or this cluster has changed its role; this one changed nothing',
  );
