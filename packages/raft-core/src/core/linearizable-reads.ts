import type { LogIndex, Message } from '../types.ts';
import type { CoreRefusal, Lease } from './contract/raft-core.ts';
import type { ConfirmedRead } from './reads/read-index.ts';
import type { RaftState } from './state.ts';

type ReadIndex = Extract<Message, { type: 'ReadIndex' }>;
type ReadIndexResp = Extract<Message, { type: 'ReadIndexResp' }>;

/** Reads without a log entry (Raft §8, thesis §6.4): this node's own reads, and on a leader the reads forwarded by others. */
export class LinearizableReads {
  readonly #state: RaftState;

  constructor(state: RaftState) {
    this.#state = state;
  }

  /** Requests a read index for the read `ctx`: from this node if it leads, otherwise from its leader. */
  request(ctx: number): CoreRefusal | undefined {
    const { role, leader, leadership, fitness, isRemoved, id, incarnation, reads, nowMs, limits, observe } = this.#state;
    if (role === 'faulty') return 'faulty';
    const request = { id: ctx, incarnation };
    if (leadership !== undefined) {
      if (fitness === 'sealed') return 'sealed';
      leadership.addRead({ asker: id, request });
      return undefined;
    }
    if (leader === 0) return isRemoved ? 'removed' : 'notLeader';
    observe('read forwarded');
    reads.forward(ctx, nowMs + limits.electionMs);
    this.#state.post({ to: leader, session: 0, vouches: false }, { type: 'ReadIndex', requests: [request] });
    return undefined;
  }

  byLease(nowMs: number): LogIndex | undefined {
    return this.lease(nowMs)?.index;
  }

  lease(nowMs: number): Lease | undefined {
    const { leadership, fitness, commitIndex } = this.#state;
    const endMs = fitness === 'sealed' ? undefined : leadership?.leaseEndMs(nowMs);
    return endMs === undefined ? undefined : { index: commitIndex, endMs };
  }

  onRequest({ from, term, requests }: ReadIndex): void {
    const { leadership, fitness } = this.#state;
    const answers = leadership !== undefined && fitness !== 'sealed' && term === this.#state.term;
    const room = answers ? leadership.roomForReadsOf(from) : 0;
    for (const request of requests.slice(0, room)) leadership?.addRead({ asker: from, request });
    const refused = requests.slice(room);
    if (refused.length > 0)
      this.#state.post(
        { to: from, session: 0, vouches: false },
        { type: 'ReadIndexResp', requests: refused, index: 0, ok: false },
      );
  }

  /** Takes answers of the leader alone: it was sent all reads that wait, because a change of the leader drops them. */
  onAnswer({ from, requests, index, ok }: ReadIndexResp): void {
    const { incarnation, reads, leader, observe } = this.#state;
    for (const request of requests) {
      // An answer to an earlier incarnation of this node must not confirm a read that now has the same number.
      if (from !== leader || request.incarnation !== incarnation || !reads.answered(request.id))
        observe('late read answer ignored');
      else if (ok) reads.confirm({ ctx: request.id, index });
      else reads.drop([request.id]);
    }
  }

  /** Answers the nodes whose reads this leader has confirmed. */
  confirmed(confirmed: readonly ConfirmedRead[]): void {
    const { id, reads } = this.#state;
    for (const { asker, request, index } of confirmed) {
      if (asker === id) reads.confirm({ ctx: request.id, index });
      else
        this.#state.post(
          { to: asker, session: 0, vouches: false },
          { type: 'ReadIndexResp', requests: [request], index, ok: true },
        );
    }
  }
}
