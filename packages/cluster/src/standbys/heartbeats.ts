import { type HeartbeatTimes, isFresh } from '@transitd/health';
import type { LogIndex, Term } from '@transitd/raft-core';
import { MemberEvents } from '../ports/member-events.ts';
import type { HeartbeatReply } from './heartbeat-wire.ts';

interface Answered {
  readonly sentMs: number;
  readonly commitIndex: LogIndex;
}

/**
 * The results of this node's heartbeats to the active node. Times are readings of the monotonic clock. A heartbeat counts from the time it
 * was sent, and only once it is answered: an answer that was buffered must not look fresh.
 */
export class Heartbeats {
  readonly #intervalMs: number;
  readonly #events: Pick<MemberEvents, 'emit'>;
  #sinceMs: number;
  #durationMs = 0;
  #clockSkewMs = 0;
  /** What the answers since the restart have shown. */
  #shown: Pick<HeartbeatTimes, 'answeredSentMs' | 'replication'> = {};
  /** Answers whose commit index is not applied yet, ascending in both fields. */
  #awaiting: readonly Answered[] = [];
  #appliedSentMs: number | undefined;
  /** The newest term in which another node leads, and when this node learned of it. */
  #led: { readonly term: Term; readonly sinceMs: number } = { term: 0, sinceMs: Number.NEGATIVE_INFINITY };

  constructor(intervalMs: number, nowMs: number, events: Pick<MemberEvents, 'emit'> = new MemberEvents()) {
    this.#intervalMs = intervalMs;
    this.#events = events;
    this.#sinceMs = nowMs;
  }

  /** Forgets all answers: the node becomes active or standby, or its seal changes. */
  restart(nowMs: number): void {
    this.#sinceMs = nowMs;
    this.#shown = {};
    this.#appliedSentMs = undefined;
    this.#awaiting = [];
    this.#events.emit('heartbeatsForgotten');
  }

  answered(
    answer: Pick<HeartbeatReply, 'commitIndex' | 'utcMs' | 'replication'>,
    { sentMs, receivedMs, receivedUtcMs }: { sentMs: number; receivedMs: number; receivedUtcMs: number },
  ): void {
    this.#durationMs = receivedMs - sentMs;
    this.#clockSkewMs = answer.utcMs - receivedUtcMs;
    this.#shown = { answeredSentMs: Math.max(sentMs, this.#shown.answeredSentMs ?? sentMs), replication: answer.replication };
    // A heartbeat sent before the restart reported that this node does not serve: the active node does not wait for it.
    if (sentMs < this.#sinceMs) return;
    // An older answer whose commit index is not lower is superseded by the newer one.
    const older = this.#awaiting.filter(({ commitIndex }) => commitIndex < answer.commitIndex);
    this.#awaiting = [...older, { sentMs, commitIndex: answer.commitIndex }];
  }

  /** Another node leads in this term. */
  leaderFound(term: Term, nowMs: number): void {
    if (this.#led.term !== term) this.#led = { term, sinceMs: nowMs };
  }

  /**
   * Returns whether the present leader has not answered for so long that it may be dead. A new leader has the same time for its first
   * answer. False while no heartbeat was answered since the restart: the active node refuses the heartbeats of some nodes, and serves them.
   */
  isSilent(nowMs: number): boolean {
    const { answeredSentMs } = this.#shown;
    return answeredSentMs !== undefined && !isFresh(Math.max(answeredSentMs, this.#led.sinceMs), this.#intervalMs, nowMs);
  }

  failed({ sentMs, nowMs }: { sentMs: number; nowMs: number }): void {
    this.#durationMs = nowMs - sentMs;
    this.#clockSkewMs = 0;
  }

  /** Returns the send time of the newest heartbeat whose answer has a commit index at or below `appliedIndex`. It never decreases. */
  appliedSentMs(appliedIndex: LogIndex): number | undefined {
    if (this.#awaiting.length === 0) return this.#appliedSentMs;
    const applied = this.#awaiting.filter(({ commitIndex }) => commitIndex <= appliedIndex);
    for (const { sentMs } of applied) this.#appliedSentMs = Math.max(sentMs, this.#appliedSentMs ?? sentMs);
    if (applied.length > 0) this.#awaiting = this.#awaiting.filter(({ commitIndex }) => commitIndex > appliedIndex);
    return this.#appliedSentMs;
  }

  get times(): HeartbeatTimes {
    return {
      intervalMs: this.#intervalMs,
      sinceMs: this.#sinceMs,
      durationMs: this.#durationMs,
      clockSkewMs: this.#clockSkewMs,
      ...this.#shown,
    };
  }
}
