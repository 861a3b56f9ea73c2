import type { SimClock, SimRandom } from '@transitd/raft-sim';
import {
  addToDigest,
  type EpochName,
  emptyDigest,
  type ReplicationStep,
  type RestoreStep,
  recordDigest,
} from '@transitd/storage-fsm';
import { localPrefixes } from '../../src/scope.ts';
import { holds } from './oracle.ts';
import { keyPaths, keyringPath, type Result, type Site } from './site.ts';

export interface RestoresParts {
  readonly clock: SimClock;
  readonly random: SimRandom;
}

/** A backup that is staged. */
interface Staged {
  readonly from: EpochName;
  /** The key of the backup. */
  readonly oldest: string;
  readonly attempt: string;
  readonly records: number;
  readonly digest: bigint;
  readonly valuesWritten: number;
}

/** Restores of backups on primaries. A backup has two keys under the first barrier key, which other clusters have used since. */
export class Restores {
  readonly counts = { restores: 0 };
  readonly #parts: RestoresParts;
  #serial = 0;

  constructor(parts: RestoresParts) {
    this.#parts = parts;
  }

  /**
   * Stages a backup, and ends the restore later, unless the role or the epoch changes meanwhile. Now and then it ends as an upload does
   * that began before the set, which must have no effect.
   */
  begin(site: Site): void {
    const { clock, random } = this.#parts;
    const from = site.state?.epochs.at(-1);
    const [oldest] = site.keyring()?.keys ?? [];
    if (from === undefined || oldest === undefined) return;
    this.#serial += 1;
    const attempt = `restore-${this.#serial}`;
    const value = Buffer.from(`${from.id}:${attempt}:${oldest}`);
    const keyring = { path: keyringPath, value: Buffer.from(`${from.id}:${oldest}`) };
    const records = [keyring, ...keyPaths.slice(0, 2).map((path) => ({ path, value }))];
    const digest = records.map((record) => recordDigest({ ...record, revision: 0 })).reduce(addToDigest, emptyDigest);
    const staged = { attempt, records: records.length, digest, valuesWritten: 0 };
    const propose = (restore: RestoreStep, done?: (result: Result) => void): void => site.propose({ restore }, done);
    let isStaged = false;
    propose({ kind: 'stage', attempt, chunk: 0, records }, (result) => {
      isStaged = result === 'committed';
    });
    if (random.chance(0.2)) {
      propose({ kind: 'swap', ...staged, keep: localPrefixes }, (result) =>
        holds('in a set, only its own step ends a restore', result !== 'committed', () => ({ site: site.name })),
      );
      return;
    }
    const stagedMs = random.chance(0.7) ? random.between(1, 40) : random.between(100, 800);
    clock.after(stagedMs, () => {
      if (isStaged) this.#end(site, { from, oldest, ...staged }); // a node reads the local records only once the backup is staged
    });
  }

  #end(site: Site, { oldest, ...staged }: Staged): void {
    const present = site.keyring();
    if (site.active === undefined || present === undefined) return;
    this.#serial += 1;
    const newest = `restored-${this.#serial}`;
    const replication: ReplicationStep = {
      ...{ kind: 'restore', ...staged, conditions: [{ path: keyringPath, revision: present.revision }] },
      writes: [{ path: keyringPath, value: Buffer.from(`${staged.from.id}:${oldest},${newest}`) }],
      ...{ local: site.localRecords(newest), localReadAt: site.machine.applied.appliedIndex },
    };
    site.propose({ replication }, (result) => {
      if (result === 'committed') this.counts.restores += 1;
    });
  }
}
