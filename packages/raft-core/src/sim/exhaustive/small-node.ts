import { soleVoter } from '../../confchange/conf-state.ts';
import { raftLimits } from '../../core/limits.ts';
import { Raft } from '../../core/raft.ts';
import type { Ready, Status } from '../../core/raft-core.ts';
import type { Entry, HardState, LogIndex, Message, NodeId, Term } from '../../types.ts';

/** Beyond the time after a start in which a node gives no vote. */
const BEGIN_MS = 1_000;

/** A core whose every effect is done at once, on a clock of its own. */
export class SmallNode {
  readonly id: NodeId;
  readonly #core: Raft;
  hardState: HardState = { term: 0, vote: 0, commit: 0 };
  readonly entries: Entry[] = [];
  #nowMs = 0;
  /** When it took in a leader's words or gave a vote: what its clock is set by. */
  #setAtMs = 0;
  /** Who has voted for it since it began to ask. */
  readonly #votes = new Set<NodeId>();

  constructor(id: NodeId, voters: readonly NodeId[]) {
    this.id = id;
    const base = { index: 0, term: 0, conf: { ...soleVoter(id), voters }, confIndex: 0 };
    const log = { hardState: this.hardState, base, lastIndex: 0, bytes: 0, terms: [], confEntries: [] };
    const options = { applied: 0, limits: raftLimits, seed: id };
    this.#core = new Raft({ nodeId: id, clusterId: 'c', incarnation: 1, ...log }, options);
    this.#core.tick(0);
    this.pass(BEGIN_MS);
  }

  get status(): Status {
    return this.#core.status();
  }

  termAt(index: LogIndex): Term | undefined {
    return this.entries[index - 1]?.term;
  }

  /** Time goes by; gives what it then has to say. */
  pass(ms: number): readonly Message[] {
    this.#nowMs += ms;
    this.#votes.clear();
    this.#core.tick(this.#nowMs);
    return this.#pump();
  }

  receive(message: Message): readonly Message[] {
    const { role, term } = this.status;
    this.#core.step(message, this.#nowMs);
    const isVote = (message.type === 'VoteResp' || message.type === 'PreVoteResp') && !message.reject;
    if (this.status.role !== role || this.status.term !== term) this.#votes.clear();
    else if (isVote && (role === 'candidate' || role === 'precandidate')) this.#votes.add(message.from);
    if (message.type !== 'PreVote' && message.type !== 'PreVoteResp') this.#setAtMs = this.#nowMs;
    return this.#pump();
  }

  propose(data: Uint8Array): readonly Message[] {
    this.#core.propose(data);
    return this.#pump();
  }

  /** All that can be seen of it and that decides how it goes on. */
  get print(): string {
    const { role, term, vote, leader, commitIndex } = this.status;
    const log = this.entries.map((entry) => `${entry.term}.${entry.data[0] ?? '-'}`).join();
    const peers = this.#core.peers().map(({ id, state, match, next, active }) => [id, state, match, next, active]);
    return [role, term, vote, leader, commitIndex, this.#nowMs - this.#setAtMs, log, peers, [...this.#votes].sort()].join(' ');
  }

  #pump(): readonly Message[] {
    const sent: Message[] = [];
    while (this.#core.hasReady()) this.#carryOut(this.#core.ready(), sent);
    this.#core.checkInvariants();
    return sent;
  }

  #carryOut({ seq, readLog, immediate, hardState, entries, afterPersist, committed }: Ready, sent: Message[]): void {
    for (const { for: reader, lo, hi } of readLog) this.#core.logRead(reader, this.entries.slice(lo - 1, hi));
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
