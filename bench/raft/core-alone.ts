import { type Entry, encodeMessage, type Message, Raft, raftLimits, type SnapshotMeta, soleVoter } from '@transitd/raft-core';

const voters = [1, 2, 3];
const warmUpBatches = 500;

export interface CoreRun {
  /** Entries that the leader passed on to be applied. */
  readonly entries: number;
  readonly ms: number;
  /** Time in the leader's core alone. */
  readonly leaderMs: number;
  /** Messages that the leader sent to one follower, on average, and their encoded bytes; both 0 unless `countsBytes`. */
  readonly messages: number;
  readonly bytes: number;
}

/**
 * Runs three voters and a number of learners in one thread, without a driver: entries are proposed to the leader in batches, every message
 * is delivered at once, and every write is durable at once.
 * @param countsBytes - encodes each message of the leader, which takes longer than everything else
 */
export function coreAlone({
  ms,
  entryBytes,
  batchEntries = 64,
  learners = 0,
  countsBytes = false,
}: {
  readonly ms: number;
  readonly entryBytes: number;
  readonly batchEntries?: number;
  readonly learners?: number;
  readonly countsBytes?: boolean;
}): CoreRun {
  const group = new Group(learners);
  const data = new Uint8Array(entryBytes);
  const batch = (): void => {
    for (let i = 0; i < batchEntries; i++) group.propose(data);
    group.turn();
  };
  for (let warmUp = 0; warmUp < warmUpBatches / (1 + learners); warmUp++) batch();
  const [startedMs, before] = [performance.now(), { ...group.count }];
  group.countsBytes = countsBytes;
  while (performance.now() - startedMs < ms) batch();
  const followers = voters.length - 1 + learners;
  return {
    entries: group.count.committed - before.committed,
    ms: performance.now() - startedMs,
    leaderMs: group.count.leaderMs - before.leaderMs,
    messages: group.count.messages / followers,
    bytes: group.count.bytes / followers,
  };
}

class Group {
  readonly #cores: ReadonlyMap<number, Raft>;
  readonly #leader: Raft;
  readonly count = { committed: 0, leaderMs: 0, messages: 0, bytes: 0 };
  countsBytes = false;
  #nowMs = 0;
  #mail: Message[] = [];

  constructor(learners: number) {
    const ids = Array.from({ length: voters.length + learners }, (_, index) => index + 1);
    const conf = { ...soleVoter(1), voters, learners: ids.slice(voters.length) };
    const base: SnapshotMeta = { index: 0, term: 0, conf, confIndex: 0 };
    const start = {
      clusterId: 'bench',
      incarnation: 1,
      hardState: { term: 0, vote: 0, commit: 0 },
      base,
      lastIndex: 0,
      bytes: 0,
    };
    const core = (nodeId: number): Raft =>
      new Raft({ ...start, nodeId, terms: [], confEntries: [] }, { applied: 0, limits: raftLimits, seed: nodeId });
    this.#cores = new Map(ids.map((id) => [id, core(id)]));
    this.#leader = this.#elect();
  }

  propose(data: Uint8Array): void {
    this.#with(this.#leader, () => this.#leader.propose(data));
  }

  /** Processes messages and writes until none is left. */
  turn(): void {
    this.#nowMs += 0.2;
    for (const core of this.#cores.values()) this.#with(core, () => core.tick(this.#nowMs));
    do for (const core of this.#cores.values()) this.#with(core, () => this.#carryOut(core));
    while (this.#deliver());
  }

  #elect(): Raft {
    for (;;) {
      this.#nowMs += 50;
      this.turn();
      for (const core of this.#cores.values()) if (core.status().role === 'leader') return core;
    }
  }

  /** Carries out a task of one core, and adds its time if that core is the leader. */
  #with(core: Raft, task: () => void): void {
    const startedMs = performance.now();
    task();
    if (core === this.#leader) this.count.leaderMs += performance.now() - startedMs;
  }

  #carryOut(core: Raft): void {
    while (core.hasReady()) {
      const { seq, immediate, afterPersist, committed } = core.ready();
      core.persisted(seq);
      this.#mail.push(...immediate, ...afterPersist);
      const last = committed.at(-1);
      if (last !== undefined) this.#applied(core, committed, last);
    }
  }

  #applied(core: Raft, entries: readonly Entry[], { index }: Entry): void {
    core.applied(index);
    if (core === this.#leader) this.count.committed += entries.length;
  }

  #deliver(): boolean {
    const mail = this.#mail;
    this.#mail = [];
    if (this.countsBytes) this.#countBytes(mail);
    for (const message of mail) {
      const core = this.#cores.get(message.to);
      if (core !== undefined) this.#with(core, () => core.step(message, this.#nowMs));
    }
    return mail.length > 0;
  }

  #countBytes(mail: readonly Message[]): void {
    for (const message of mail) {
      if (this.#cores.get(message.from) !== this.#leader) continue;
      this.count.messages += 1;
      this.count.bytes += encodeMessage(message).length;
    }
  }
}
