import { type Clock, type Logger, LogLimit } from '@transitd/process';

/** The meaning of each health code, for a log line. */
const meanings: Readonly<Record<number, string>> = {
  200: 'this node is the active node',
  429: 'this node is a standby that does not answer from its own state at the moment',
  473: 'this node has caught up with the active node and answers from its own state',
  474: 'this node is cut off: no active node has answered its heartbeats for twice cluster_heartbeat_interval',
  501: 'this node belongs to no cluster yet',
  503: 'this node is sealed',
  530: 'this node was removed from its cluster',
};

/** Logs each change of the health code. A node that changes back and forth is logged once a minute for each pair of codes. */
export class HealthLog {
  readonly #clock: Clock;
  readonly #limit: LogLimit;
  #code: number | undefined;
  #sinceMs = 0;

  constructor(log: Logger, clock: Clock) {
    this.#clock = clock;
    this.#limit = new LogLimit({ log, clock });
  }

  observe(code: number): void {
    if (code === this.#code) return;
    const nowMs = this.#clock.nowMs();
    const before = this.#code === undefined ? {} : { before: this.#code, beforeMs: Math.round(nowMs - this.#sinceMs) };
    const level = code === 474 || code === 530 ? 'warn' : 'info';
    this.#limit.write(
      level,
      `${this.#code} ${code}`,
      { health: code, ...before },
      meanings[code] ?? 'the health of this node changed',
    );
    this.#code = code;
    this.#sinceMs = nowMs;
  }
}
