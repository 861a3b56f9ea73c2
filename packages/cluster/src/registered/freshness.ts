import type { LogIndex } from '@transitd/raft-core';
import { Heartbeats } from '../standbys/heartbeats.ts';

export interface FreshnessParts {
  readonly intervalMs: number;
  /** Reads the index of the newest commit of any node, linearizably. Any failure rejects. */
  readonly newestIndex: () => Promise<LogIndex>;
  readonly onAnswer: (durationMs: number | undefined) => void;
}

/** Maximum number of questions without an answer. */
const inFlightMax = 4;

/**
 * Asks at intervals for the index of the newest commit. The state of a node that has applied this index is fresh as of the time when the
 * question was sent. So it takes the place of the heartbeats that standbys of Raft send to their leader.
 */
export class Freshness {
  readonly heartbeats: Heartbeats;
  readonly #parts: FreshnessParts;
  #timer: NodeJS.Timeout | undefined;
  #inFlight = 0;

  constructor(parts: FreshnessParts) {
    this.#parts = parts;
    this.heartbeats = new Heartbeats(parts.intervalMs, performance.now());
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.ask(), this.#parts.intervalMs);
    void this.ask();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Asks once, at once. */
  async ask(): Promise<void> {
    if (this.#inFlight >= inFlightMax) return;
    this.#inFlight += 1;
    const { newestIndex, onAnswer } = this.#parts;
    const sentMs = performance.now();
    try {
      const commitIndex = await newestIndex();
      const receivedMs = performance.now();
      const utcMs = Date.now(); // no other clock is compared
      const replication = { performance: 'disabled', disasterRecovery: 'disabled' } as const;
      this.heartbeats.answered({ commitIndex, utcMs, replication }, { sentMs, receivedMs, receivedUtcMs: utcMs });
      onAnswer(receivedMs - sentMs);
    } catch {
      this.heartbeats.failed({ sentMs, nowMs: performance.now() });
      onAnswer(undefined);
    } finally {
      this.#inFlight -= 1;
    }
  }
}
