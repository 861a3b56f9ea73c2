import { type Entry, type Message, Raft, raftLimits, type SnapshotMeta, soleVoter } from '@transitd/raft-core';

const batchEntries = 64;
const ids = [1, 2, 3];

/**
 * Runs three cores in one thread, without a driver: batches of 64 entries are proposed to the leader, every message is delivered at
 * once, and every write is durable at once. Returns the number of entries that the leader applied.
 */
export function coreAlone({ ms, entryBytes }: { ms: number; entryBytes: number }): {
  readonly entries: number;
  readonly ms: number;
} {
  const trio = new Trio();
  const data = new Uint8Array(entryBytes);
  const batch = (): void => {
    for (let i = 0; i < batchEntries; i++) trio.leader.propose(data);
    trio.turn();
  };
  for (let warmUp = 0; warmUp < 500; warmUp++) batch();
  const [startedMs, before] = [performance.now(), trio.committed];
  while (performance.now() - startedMs < ms) batch();
  return { entries: trio.committed - before, ms: performance.now() - startedMs };
}

class Trio {
  readonly #cores: ReadonlyMap<number, Raft>;
  readonly leader: Raft;
  /** Number of entries that the leader passed on to be applied. */
  committed = 0;
  #nowMs = 0;
  #mail: Message[] = [];

  constructor() {
    const base: SnapshotMeta = { index: 0, term: 0, conf: { ...soleVoter(1), voters: ids }, confIndex: 0 };
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
    this.leader = this.#elect();
  }

  /** Processes messages and writes until none is left. */
  turn(): void {
    this.#nowMs += 0.2;
    this.#each((core) => core.tick(this.#nowMs));
    do this.#each((core) => this.#carryOut(core));
    while (this.#deliver());
  }

  #elect(): Raft {
    for (;;) {
      this.#nowMs += 50;
      this.turn();
      for (const core of this.#cores.values()) if (core.status().role === 'leader') return core;
    }
  }

  #each(task: (core: Raft) => void): void {
    for (const core of this.#cores.values()) task(core);
  }

  #carryOut(core: Raft): void {
    while (core.hasReady()) {
      const { seq, immediate, afterPersist, committed } = core.ready();
      core.persisted(seq);
      this.#mail.push(...immediate, ...afterPersist);
      this.#apply(core, committed);
    }
  }

  #apply(core: Raft, entries: readonly Entry[]): void {
    const last = entries.at(-1);
    if (last === undefined) return;
    core.applied(last.index);
    if (core === this.leader) this.committed += entries.length;
  }

  #deliver(): boolean {
    const mail = this.#mail;
    this.#mail = [];
    for (const message of mail) this.#cores.get(message.to)?.step(message, this.#nowMs);
    return mail.length > 0;
  }
}
