import { readdirSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { replaceFile, type Storage } from '@transitd/cluster';
import { type Logger, type RecordClock, reasonOf } from '@transitd/process';
import type { LogIndex } from '@transitd/raft-core';
import {
  cursorOf,
  type Epoch,
  isLocal,
  makeDirectory,
  type ReplicatedRecord,
  type ReplicationStep,
  writeSnapshotFile,
} from '@transitd/storage-fsm';
import { ReplicationError } from '../replication-error.ts';
import { divergenceOf } from '../roles/divergence.ts';
import type { KeptReports } from './kept-reports.ts';

interface DivergedStateOptions {
  readonly machine: Storage['machine'];
  readonly snapshots: { take(): Promise<Readable> };
  readonly reports: KeptReports;
  /** Name of this node, and its data directory. */
  readonly node: string;
  readonly directory: string;
  readonly clock: Pick<RecordClock, 'dueMs'>;
  readonly log: Logger;
}

/** A state of this cluster that contains what its present primary never had. */
interface Divergence {
  /** Up to this service index both clusters have the same. */
  readonly point: LogIndex;
  readonly position: LogIndex;
  readonly name: string;
}

/** A record, by its path: paths contain the names of keys and mounts, and no values. */
interface LostChange {
  readonly path: string;
  /** Service index of the change on this cluster; absent for a deletion. */
  readonly index?: LogIndex;
}

/** The changes of this cluster that the primary's state takes back. */
interface DivergenceReport extends Pick<Divergence, 'point' | 'position'> {
  /** Records that were written after the point, such as versions of keys and tokens. */
  readonly written: readonly LostChange[];
  /** Records that were deleted after the point, such as revoked tokens: they exist again. */
  readonly deleted: readonly LostChange[];
}

const pageSize = 1_000;

/** Returns the folder of kept states, below the data directory. */
const divergedFolder = (directory: string): string => join(directory, 'diverged');

/**
 * Keeps the state of a former primary before the state of its successor replaces it: an archive as `sys/storage/raft/snapshot` returns it,
 * encrypted by the barrier, and a list of the changes that the successor never had.
 */
export class DivergedState {
  readonly #options: DivergedStateOptions;
  readonly #archives = new Map<string, Promise<void>>();
  #divergence: Divergence | undefined;
  #deleted: LostChange[] = [];
  #newest: string | undefined;

  constructor(options: DivergedStateOptions) {
    this.#options = options;
    this.#newest = newestIn(divergedFolder(options.directory));
  }

  /** Name of the newest archive in the folder. */
  get newest(): string | undefined {
    return this.#newest;
  }

  /**
   * Opens an archive in the folder of this node.
   * @throws ReplicationError if the folder has no archive of this name
   */
  async open(name: string): Promise<Readable> {
    const { directory, node } = this.#options;
    const file = isArchiveName.test(name) ? await open(join(divergedFolder(directory), name)).catch(unlessMissing) : undefined;
    if (file === undefined)
      throw new ReplicationError(
        'refused',
        `the active node ${node} has no snapshot of this name in diverged/: copy it there from the node that kept it`,
      );
    return file.createReadStream();
  }

  /** The primary begins to send a whole state with these epochs. */
  receiving(epochs: readonly Epoch[]): void {
    const state = this.#options.machine.replication;
    const cursor = state && cursorOf(state);
    const point = cursor && divergenceOf(state.epochs, cursor, epochs);
    this.#deleted = [];
    this.#divergence =
      cursor === undefined || point === undefined
        ? undefined
        : { point, position: cursor.index, name: `epoch-${cursor.number}-${cursor.id.slice(0, 8)}-index-${cursor.index}` };
  }

  /** Keeps the present state before the first records of another one are staged. @throws when it cannot be kept */
  async staging({ chunk, records }: ReplicationStep & { kind: 'stage' }): Promise<void> {
    const divergence = this.#divergence;
    if (divergence === undefined) return;
    if (chunk === 0) await this.#keep(divergence);
    const { machine } = this.#options;
    const isDeleted = ({ path, revision }: ReplicatedRecord) =>
      revision <= divergence.point && machine.getSync(path) === undefined;
    for (const record of records) if (isDeleted(record)) this.#deleted.push({ path: record.path });
  }

  /** Writes the list of lost changes. Call it when everything is staged, before it becomes the state. */
  async swapping(): Promise<void> {
    if (this.#divergence === undefined) return;
    const { point, position, name } = this.#divergence;
    const written = await this.#writtenAfter(point);
    const report: DivergenceReport = { point, position, written, deleted: this.#deleted };
    const path = join(divergedFolder(this.#options.directory), `${name}.json`);
    await replaceFile(path, JSON.stringify(report, undefined, 1));
    const count = (kind: RegExp, changes: readonly LostChange[]): number =>
      changes.filter((change) => kind.test(change.path)).length;
    const { reports, log, node, clock } = this.#options;
    const counts = {
      ...{ point, position, written: written.length, deleted: this.#deleted.length },
      keyVersions: count(keyVersion, written),
      tokens: count(token, written),
      revokedTokens: count(token, this.#deleted),
    };
    log.warn(
      { report: path, ...counts },
      'the state of this former primary is being replaced: the report lists the changes after the promotion that are lost',
    );
    await reports.keepDivergence({ node, archive: `${name}.snap`, utcMs: clock.dueMs(), ...counts });
  }

  #keep(divergence: Divergence): Promise<void> {
    const { name } = divergence;
    // A connection that ends meanwhile does not end the copy, and the next attempt waits for the same one.
    const running = this.#archives.get(name) ?? this.#archive(divergence);
    this.#archives.set(name, running);
    running.catch(() => this.#archives.delete(name));
    return running;
  }

  async #archive({ name, point, position }: Divergence): Promise<void> {
    const { directory, snapshots, log } = this.#options;
    const folder = divergedFolder(directory);
    const path = join(folder, `${name}.snap`);
    try {
      await makeDirectory(folder);
      await writeSnapshotFile(path, await snapshots.take());
    } catch (error) {
      throw new Error(`the state of this former primary cannot be kept, so it is not replaced: ${reasonOf(error)}`, {
        cause: error,
      });
    }
    this.#newest = `${name}.snap`;
    log.warn({ snapshot: path, point, position }, 'kept the state of this former primary, which its successor replaces');
  }

  async #writtenAfter(point: LogIndex): Promise<readonly LostChange[]> {
    const { machine } = this.#options;
    const { replication } = machine;
    // Records of a backup have the indexes at which they were staged.
    const restoredAt = replication?.restoredAt ?? 0;
    const written: LostChange[] = [];
    for await (const paths of pathsOf(machine))
      for (const path of paths) {
        const revision = Math.max(machine.getSync(path)?.revision ?? 0, restoredAt);
        if (revision > point && !(replication !== undefined && isLocal(replication, path)))
          written.push({ path, index: revision });
      }
    return written;
  }
}

async function* pathsOf(machine: Storage['machine']): AsyncGenerator<readonly string[]> {
  const query = { prefix: '', limit: pageSize };
  for (let page = await machine.paths(query); ; page = await machine.paths({ ...query, after: page.next })) {
    yield page.paths;
    if (page.next === undefined) return;
  }
}

const keyVersion = /^transit\/[^/]+\/ver\//;
const token = /^access\/token\//;
/** Its groups are the epoch and the position. */
const isArchiveName = /^epoch-(\d+)-[0-9a-f]{8}-index-(\d+)\.snap$/;

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

function newestIn(folder: string): string | undefined {
  try {
    return readdirSync(folder)
      .flatMap((name) => {
        const [, epoch, index] = isArchiveName.exec(name) ?? [];
        return epoch === undefined ? [] : [{ name, epoch: Number(epoch), index: Number(index) }];
      })
      .toSorted((one, other) => one.epoch - other.epoch || one.index - other.index)
      .at(-1)?.name;
  } catch {
    return undefined; // nothing was kept
  }
}
