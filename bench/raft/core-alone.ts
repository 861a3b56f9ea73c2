import { type Message, Raft, raftLimits, type SnapshotMeta, soleVoter } from '@transitd/raft-core';

const voters = [1, 2, 3];
const batchEntries = 64;
const warmUpBatches = 500;

/**
 * Runs three voters in one thread, without a driver: entries are proposed to the leader in batches, every message is delivered at once, and
 * every write is durable at once. Returns how many entries the leader passed on to be applied.
 */
export function coreAlone({ ms, entryBytes }: { readonly ms: number; readonly entryBytes: number }): {
  readonly entries: number;
  readonly ms: number;
} {
  const group = new Group();
  const data = new Uint8Array(entryBytes);
  const batch = (): void => {
    for (let i = 0; i < batchEntries; i++) group.leader.propose(data);
    group.turn();
  };
  for (let warmUp = 0; warmUp < warmUpBatches; warmUp++) batch();
  const [startedMs, before] = [performance.now(), group.committed];
  while (performance.now() - startedMs < ms) batch();
  return { entries: group.committed - before, ms: performance.now() - startedMs };
}

class Group {
  readonly #cores: ReadonlyMap<number, Raft>;
  readonly leader: Raft;
  /** Entries that the leader passed on to be applied. */
  committed = 0;
  #nowMs = 0;
  #mail: Message[] = [];

  constructor() {
    const base: SnapshotMeta = { index: 0, term: 0, conf: { ...soleVoter(1), voters }, confIndex: 0 };
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
    this.#cores = new Map(voters.map((id) => [id, core(id)]));
    this.leader = this.#elect();
  }

  /** Processes messages and writes until none is left. */
  turn(): void {
    this.#nowMs += 0.2;
    for (const core of this.#cores.values()) core.tick(this.#nowMs);
    do for (const core of this.#cores.values()) this.#carryOut(core);
    while (this.#deliver());
  }

  #elect(): Raft {
    for (;;) {
      this.#nowMs += 50;
      this.turn();
      for (const core of this.#cores.values()) if (core.status().role === 'leader') return core;
    }
  }

  #carryOut(core: Raft): void {
    while (core.hasReady()) {
      const { seq, immediate, afterPersist, committed } = core.ready();
      core.persisted(seq);
      this.#mail.push(...immediate, ...afterPersist);
      const last = committed.at(-1);
      if (last === undefined) continue;
      core.applied(last.index);
      if (core === this.leader) this.committed += committed.length;
    }
  }

  #deliver(): boolean {
    const mail = this.#mail;
    this.#mail = [];
    for (const message of mail) this.#cores.get(message.to)?.step(message, this.#nowMs);
    return mail.length > 0;
  }
}
