import type { NodeObserver } from '@transitd/process';
import type { ClusterHost } from '../ports/cluster-host.ts';
import { Heartbeats } from '../standbys/heartbeats.ts';
import type { NodeRegistry } from './registered-nodes.ts';

type CommitSource = Pick<NodeRegistry, 'name' | 'newestIndex'>;

/** Maximum number of questions without an answer. */
const inFlightMax = 4;

/**
 * Asks at intervals for the index of the newest commit. The state of a node that has applied this index is fresh as of the time when the
 * question was sent. So it takes the place of the heartbeats that standbys of Raft send to their leader.
 */
export class Freshness {
  readonly heartbeats: Heartbeats;
  readonly #source: CommitSource;
  readonly #observer: NodeObserver;
  readonly #timer: NodeJS.Timeout;
  #inFlight = 0;

  constructor(source: CommitSource, { config, observer }: Pick<ClusterHost, 'config' | 'observer'>) {
    this.#source = source;
    this.#observer = observer;
    const { cluster_heartbeat_interval: intervalMs } = config;
    this.heartbeats = new Heartbeats(intervalMs, performance.now());
    this.#timer = setInterval(() => void this.ask(), intervalMs);
    void this.ask();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Asks once, at once. */
  async ask(): Promise<void> {
    if (this.#inFlight >= inFlightMax) return;
    this.#inFlight += 1;
    const { name } = this.#source;
    const sentMs = performance.now();
    try {
      const commitIndex = await this.#source.newestIndex();
      const receivedMs = performance.now();
      const utcMs = Date.now(); // no other clock is compared
      const replication = { performance: 'disabled', disasterRecovery: 'disabled' } as const;
      this.heartbeats.answered({ commitIndex, utcMs, replication }, { sentMs, receivedMs, receivedUtcMs: utcMs });
      this.#observer.heartbeatAnswered(name, receivedMs - sentMs);
    } catch {
      this.heartbeats.failed({ sentMs, nowMs: performance.now() });
      this.#observer.heartbeatFailed(name);
    } finally {
      this.#inFlight -= 1;
    }
  }
}
