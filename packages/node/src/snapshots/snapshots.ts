import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { type Barrier, BarrierError, sealRecordPaths } from '@transitd/barrier';
import { authorityPath, type ClusterAuthority, type Storage } from '@transitd/cluster';
import { RequestError } from '@transitd/http';
import { type Logger, version } from '@transitd/process';
import { CodecError } from '@transitd/raft-core';
import { archiveOf, noProof, readArchive, type SealedParts, sumsOf, unusableSnapshot } from '@transitd/snapshot-archive';
import {
  clearRestores,
  inspectSnapshot,
  readSnapshotFile,
  recordsOfSnapshot,
  restoreSnapshot,
  type SnapshotSummary,
  StoreError,
  writeSnapshotFile,
} from '@transitd/storage-fsm';

export interface SnapshotsParts {
  readonly storage: Storage;
  readonly barrier: Barrier;
  /** The data directory. */
  readonly directory: string;
  readonly log: Logger;
  /** The cluster's authority that signs; undefined while there is none. @throws StoreError */
  readonly authority: () => Promise<ClusterAuthority | undefined>;
  /** Has the cluster's authority written under the keys that are in force. */
  readonly restoreAuthority: (authority: ClusterAuthority) => Promise<void>;
}

export interface RestoreResult {
  readonly records: number;
  /** The snapshot is of another root key: the nodes are sealed until its shares, or its seal key, are given. */
  readonly sealed: boolean;
}

/** Of the state in one archive. */
const stateBytesMax = 64 * 2 ** 30;
/** How long what is applied may take to reach the disk. */
const flushWithinMs = 10_000;
const lookMs = 20;
/** Archives at a time: each is a copy of the state on disk until its caller has read it. */
const takenMax = 4;
/** What belongs to this cluster and not to its state: without it nobody could join it any more. Paths below it, such as that of an authority that is to follow, are kept too. */
const keep = [authorityPath];

/** Files on their way, in a folder of their own below the data directory; what a crash has left there is of no use. */
export const transfersIn = (directory: string): string => join(directory, 'transfers');

/** Backups of the state of the cluster, and putting them back; on the active node. */
export class Snapshots {
  readonly #parts: SnapshotsParts;
  /** Archives that are being made or read. */
  #taken = 0;
  /** The restore under way. */
  #attempt: string | undefined;
  /** To be written again as soon as the barrier is open: the snapshot's keys do not open it. */
  #authority: ClusterAuthority | undefined;

  constructor(parts: SnapshotsParts) {
    this.#parts = parts;
  }

  /** An archive of all that was acknowledged before the call. @throws StoreError */
  async take(): Promise<Readable> {
    if (this.#taken >= takenMax) throw new StoreError('busy', 'other snapshots are being taken');
    this.#taken += 1;
    let path = '';
    try {
      const { storage, barrier } = this.#parts;
      const { appliedIndex, clusterId } = storage.driver.status();
      await this.#flushed(appliedIndex);
      path = await this.#newFile();
      const sum = createHash('sha256');
      await writeSnapshotFile(path, this.#watched(storage.snapshots.backup(), sum));
      const { meta } = await inspectSnapshot(readSnapshotFile(path));
      const state = { bytes: (await stat(path)).size, sha256: sum.digest('hex') };
      const { index, term } = meta;
      const parts = {
        meta: { format: 1, version, clusterId, index, term, createdUtc: new Date().toISOString() } as const,
        state,
      };
      const sums = sumsOf(parts);
      const archive = archiveOf({ ...parts, sums, proof: barrier.proveSnapshot(sums) }, createReadStream(path));
      archive.once('close', () => {
        this.#taken -= 1;
        void rm(path, { force: true });
      });
      return archive;
    } catch (error) {
      this.#taken -= 1;
      if (path !== '') await rm(path, { force: true });
      throw error;
    }
  }

  /**
   * Puts an archive in the place of the state, on every node at once. Nothing changes before all of it has been checked.
   * @param proved - it has to be shown that it was made under the present root key
   * @throws RequestError `invalid_request`, StoreError; what `source` throws
   */
  async restore(source: AsyncIterable<Uint8Array>, { proved }: { readonly proved: boolean }): Promise<RestoreResult> {
    if (this.#attempt !== undefined) throw new StoreError('busy', 'another snapshot is being restored');
    const attempt = randomUUID();
    this.#attempt = attempt;
    const statePath = await this.#newFile();
    try {
      const parts = await readArchive(source, { statePath, bytesMax: stateBytesMax, watch: () => this.#refuseWhenLow() });
      await this.#check(parts, { statePath, proved });
      return await this.#putBack(statePath, attempt);
    } finally {
      this.#attempt = undefined;
      await rm(statePath, { force: true });
    }
  }

  /** What a restore could not do because its snapshot has sealed the node: done as soon as it is open, whoever is active then. @throws StoreError, ClusterCallError */
  async finish(): Promise<void> {
    if (this.#authority === undefined || this.#parts.barrier.state.sealed) return;
    await this.#parts.restoreAuthority(this.#authority);
    this.#authority = undefined;
    this.#parts.log.info("the cluster's authority was written under the keys of the snapshot");
  }

  /** What the active node does from time to time: clears what restores have left. @throws StoreError */
  async upkeep(): Promise<void> {
    const { storage } = this.#parts;
    const underWay = this.#attempt;
    await clearRestores(storage.replica, storage.machine, underWay === undefined ? {} : { underWay });
  }

  async #check(
    { meta, sums, proof }: SealedParts,
    { statePath, proved }: { readonly statePath: string; readonly proved: boolean },
  ): Promise<void> {
    if (proved && proof.equals(noProof))
      throw new RequestError(
        'invalid_request',
        'this snapshot was recovered from the disk of a stopped node, and nothing proves what it holds: only snapshot-force restores it, and seals the nodes if its keys are others',
      );
    if (proved && !this.#parts.barrier.isSnapshotProof(sums, proof))
      throw new RequestError(
        'invalid_request',
        'this snapshot was made under another root key, or is not from such a server: snapshot-force restores it all the same, and seals the nodes if its keys are others',
      );
    const summary = await this.#summary(statePath);
    if (summary.meta.index !== meta.index || summary.meta.term !== meta.term)
      throw unusableSnapshot('its meta.json does not match its state');
    await this.#requireOpenable(statePath);
  }

  /** A state that this node's seal cannot open would leave the cluster sealed, without a way back. */
  async #requireOpenable(path: string): Promise<void> {
    const records = await recordsOfSnapshot(readSnapshotFile(path), sealRecordPaths);
    try {
      this.#parts.barrier.requireOpenable(records);
    } catch (error) {
      if (!(error instanceof BarrierError)) throw error;
      throw new RequestError(
        'invalid_request',
        `the seal of this node cannot open this snapshot, and nothing was changed: ${error.message}. For a static seal, configure the seal key of the snapshot as seal.previous on every node, restart them, and restore again`,
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

  async #putBack(path: string, attempt: string): Promise<RestoreResult> {
    const { storage, barrier, log } = this.#parts;
    const authority = await this.#parts.authority();
    const { outcome, records, index } = await restoreSnapshot(storage.replica, () => readSnapshotFile(path), { attempt, keep });
    if (outcome === 'superseded') throw new StoreError('busy', 'another restore has begun meanwhile; the state is as it was');
    log.warn({ records, index }, 'the state was replaced by a snapshot');
    this.#authority = authority;
    try {
      // The snapshot's keyring is in force: a key that was never used is safe whatever was written since, and what is kept is
      // written under it.
      await barrier.rotation.rotate();
      await this.finish();
      return { records, sealed: false };
    } catch (error) {
      if (!(error instanceof StoreError || error instanceof BarrierError)) throw error;
      log.warn({ reason: error.message }, 'the keys of the snapshot are not those of this node');
      return { records, sealed: barrier.state.sealed };
    }
  }

  async #flushed(index: number): Promise<void> {
    const { driver } = this.#parts.storage;
    for (const endMs = performance.now() + flushWithinMs; driver.status().flushedIndex < index; await pause(lookMs))
      if (performance.now() > endMs) throw new StoreError('busy', 'the state is not on the disk yet');
  }

  async *#watched(source: AsyncIterable<Uint8Array>, sum: ReturnType<typeof createHash>): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
      this.#refuseWhenLow();
      sum.update(chunk);
      yield chunk;
    }
  }

  #refuseWhenLow(): void {
    if (this.#parts.storage.diskLow()) throw new StoreError('disk_low', 'the data disk is below its reserve');
  }

  async #newFile(): Promise<string> {
    this.#refuseWhenLow();
    const folder = transfersIn(this.#parts.directory);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return join(folder, `${randomUUID()}.bin`);
  }
}
