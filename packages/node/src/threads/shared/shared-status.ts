import type { ReplicaStatus } from '@transitd/storage-fsm';
import { long, type NodeMemory, word } from './node-memory.ts';

/** The part of the status that changes. The cluster's id is known when a gateway starts. */
type ChangingStatus = Omit<ReplicaStatus, 'clusterId'>;

const roles = ['follower', 'precandidate', 'candidate', 'leader', 'faulty'] as const satisfies ReplicaStatus['role'][];

/**
 * The status of consensus and of the store in shared memory. The version is odd while the main thread writes the fields; a reader that saw
 * an odd or a changed version reads again, so that it never combines fields of two states.
 */
export class SharedStatus {
  readonly #words: Int32Array;
  readonly #longs: BigInt64Array;

  constructor({ words, longs }: NodeMemory) {
    this.#words = words;
    this.#longs = longs;
  }

  /**
   * Only the main thread calls this: after entries are applied and published, before their results are reported, and if the role, the term
   * or the leader changes.
   */
  publish(status: ChangingStatus): void {
    Atomics.add(this.#words, word.statusVersion, 1);
    for (const [at, value] of fieldsOf(status).entries()) Atomics.store(this.#longs, long.status + at, value);
    Atomics.add(this.#words, word.statusVersion, 1);
  }

  /** Returns the newest status. Waits, busily, for the microsecond in which the main thread writes it. */
  read(): ChangingStatus {
    for (;;) {
      const version = Atomics.load(this.#words, word.statusVersion);
      const fields = fieldNames.map((_, at) => Number(Atomics.load(this.#longs, long.status + at)));
      if (version % 2 === 0 && Atomics.load(this.#words, word.statusVersion) === version) return statusOf(fields);
    }
  }
}

const fieldNames = [
  'nodeId',
  'role',
  'ready',
  'term',
  'leader',
  'lastIndex',
  'commitIndex',
  'appliedIndex',
  'flushedIndex',
  'valuesWritten',
  'diskLow',
] as const satisfies (keyof ChangingStatus)[];

const fieldsOf = (status: ChangingStatus): bigint[] =>
  fieldNames.map((name) => BigInt(name === 'role' ? roles.indexOf(status.role) : status[name]));

function statusOf(fields: readonly number[]): ChangingStatus {
  const [nodeId = 0, role = 0, ready, term = 0, leader = 0, ...rest] = fields;
  const [lastIndex = 0, commitIndex = 0, appliedIndex = 0, flushedIndex = 0, valuesWritten = 0, diskLow] = rest;
  const indexes = { lastIndex, commitIndex, appliedIndex, flushedIndex, valuesWritten };
  return { nodeId, role: roles[role] ?? 'faulty', ready: ready === 1, term, leader, ...indexes, diskLow: diskLow === 1 };
}
