import type { Echoes, ReplicationModes } from '@transitd/health';
import type { LogIndex } from '@transitd/raft-core';
import type { EchoReply } from './echo-wire.ts';

/** What counts of the active node's answer to an echo. */
export type EchoAnswer = Pick<EchoReply, 'commitIndex' | 'utcMs' | 'replication'>;

interface Answered {
  readonly sentMs: number;
  readonly commitIndex: LogIndex;
}

/**
 * What this node's echoes to the active node have shown. Times are readings of the monotonic clock. An echo counts from when it was
 * sent, and only once it was answered: what waited in a buffer must not look fresh.
 */
export class Heartbeats {
  readonly #intervalMs: number;
  #sinceMs: number;
  #durationMs = 0;
  #clockSkewMs = 0;
  #answeredSentMs: number | undefined;
  #replication: ReplicationModes | undefined;
  /** Answers whose commit index is not yet known to be applied, ascending in both fields. */
  #awaiting: readonly Answered[] = [];
  #appliedSentMs: number | undefined;

  constructor(intervalMs: number, nowMs: number) {
    this.#intervalMs = intervalMs;
    this.#sinceMs = nowMs;
  }

  /** The node begins to serve, or to stand by: time counts from here until the next answer. */
  restart(nowMs: number): void {
    this.#sinceMs = nowMs;
    this.#answeredSentMs = undefined;
    this.#appliedSentMs = undefined;
    this.#awaiting = [];
    this.#replication = undefined;
  }

  answered(
    answer: EchoAnswer,
    { sentMs, receivedMs, receivedUtcMs }: { sentMs: number; receivedMs: number; receivedUtcMs: number },
  ): void {
    this.#durationMs = receivedMs - sentMs;
    this.#clockSkewMs = answer.utcMs - receivedUtcMs;
    this.#replication = answer.replication;
    this.#answeredSentMs = Math.max(sentMs, this.#answeredSentMs ?? sentMs);
    // What was sent before the node could serve, the active node has not counted as letting it serve.
    if (sentMs < this.#sinceMs) return;
    // An older answer that asks for no less than a newer one can show nothing that the newer one does not.
    const older = this.#awaiting.filter(({ commitIndex }) => commitIndex < answer.commitIndex);
    this.#awaiting = [...older, { sentMs, commitIndex: answer.commitIndex }];
  }

  failed({ sentMs, nowMs }: { sentMs: number; nowMs: number }): void {
    this.#durationMs = nowMs - sentMs;
    this.#clockSkewMs = 0;
  }

  /** When the newest answered echo was sent whose commit index lies at or below `appliedIndex`; never falls back. */
  appliedSentMs(appliedIndex: LogIndex): number | undefined {
    const applied = this.#awaiting.filter(({ commitIndex }) => commitIndex <= appliedIndex);
    for (const { sentMs } of applied) this.#appliedSentMs = Math.max(sentMs, this.#appliedSentMs ?? sentMs);
    if (applied.length > 0) this.#awaiting = this.#awaiting.filter(({ commitIndex }) => commitIndex > appliedIndex);
    return this.#appliedSentMs;
  }

  get echoes(): Echoes {
    return {
      intervalMs: this.#intervalMs,
      sinceMs: this.#sinceMs,
      durationMs: this.#durationMs,
      clockSkewMs: this.#clockSkewMs,
      ...(this.#answeredSentMs !== undefined && { answeredSentMs: this.#answeredSentMs }),
      ...(this.#replication !== undefined && { replication: this.#replication }),
    };
  }
}
