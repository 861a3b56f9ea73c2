import {
  type Entry,
  type HardState,
  type LogIndex,
  type Message,
  type NodeId,
  Raft,
  type Ready,
  raftLimits,
  type Status,
  soleVoter,
  type Term,
} from '@transitd/raft-core';
import { InnerState } from './inner-state.ts';

/** By this time a started node gives votes again. */
const BEGIN_MS = 1_000;
/** Two steps exceed an election timeout; a leader survives one step without an answer, and sends within it. */
const PASS_MS = 1_000;
const LEADER_PASS_MS = 500;
/**
 * All nodes use this seed: with different seeds they could not exchange names. None of its random parts is 0, so every timeout takes the
 * second step.
 */
export const jitterSeed = 2;

/** A core whose every effect is carried out at once, on its own clock. */
export class SmallNode {
  readonly id: NodeId;
  readonly #core: Raft;
  hardState: HardState = { term: 0, vote: 0, commit: 0 };
  readonly entries: Entry[] = [];
  #nowMs = 0;
  readonly #inner = new InnerState(raftLimits);

  constructor(id: NodeId, voters: readonly NodeId[]) {
    this.id = id;
    const base = { index: 0, term: 0, conf: { ...soleVoter(id), voters }, confIndex: 0 };
    const log = { hardState: this.hardState, base, lastIndex: 0, bytes: 0, terms: [], confEntries: [] };
    const options = { applied: 0, limits: raftLimits, seed: jitterSeed };
    this.#core = new Raft({ nodeId: id, clusterId: 'c', incarnation: 1, ...log }, options);
    this.#core.tick(0);
    this.#nowMs = BEGIN_MS;
    this.#core.tick(BEGIN_MS);
    this.#pump();
  }

  get status(): Status {
    return this.#core.status();
  }

  termAt(index: LogIndex): Term | undefined {
    return this.entries[index - 1]?.term;
  }

  /** Lets time pass; returns the messages that it then sends. */
  pass(): readonly Message[] {
    return this.#turn(undefined, () => {
      this.#nowMs += this.status.role === 'leader' ? LEADER_PASS_MS : PASS_MS;
      this.#core.tick(this.#nowMs);
    });
  }

  receive(message: Message): readonly Message[] {
    return this.#turn(message, () => this.#core.step(message, this.#nowMs));
  }

  propose(data: Uint8Array): readonly Message[] {
    return this.#turn(undefined, () => void this.#core.propose(data));
  }

  /** Returns everything that decides the node's behavior. */
  get print(): string {
    const { role, term, vote, leader, commitIndex } = this.status;
    const log = this.entries.map((entry) => `${entry.term}.${entry.data[0] ?? '-'}`).join();
    const inner = this.#inner.print({ role, peers: this.#core.peers(), nowMs: this.#nowMs });
    return [this.id, role, term, vote, leader, commitIndex, log, inner].join(' ');
  }

  #turn(message: Message | undefined, act: () => void): readonly Message[] {
    const before = this.status;
    act();
    const sent = this.#pump();
    this.#inner.turned({ before, after: this.status, message, sent, nowMs: this.#nowMs });
    return sent;
  }

  #pump(): readonly Message[] {
    const sent: Message[] = [];
    while (this.#core.hasReady()) this.#carryOut(this.#core.ready(), sent);
    this.#core.checkInvariants();
    return sent;
  }

  #carryOut({ seq, readLog, immediate, hardState, entries, afterPersist, committed }: Ready, sent: Message[]): void {
    for (const request of readLog) this.#core.logRead(request, this.entries.slice(request.lo - 1, request.hi));
    this.hardState = hardState ?? this.hardState;
    for (const entry of entries) {
      this.entries.length = entry.index - 1;
      this.entries.push(entry);
    }
    sent.push(...immediate, ...afterPersist);
    this.#core.persisted(seq);
    const last = committed.at(-1);
    if (last !== undefined) this.#core.applied(last.index);
  }
}
