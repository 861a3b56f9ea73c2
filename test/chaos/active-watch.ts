// Asks all nodes again and again whether they are active, and finds times at which two were.
import { setTimeout as delay } from 'node:timers/promises';
import type { LiveCluster } from '../cluster/harness/live-cluster.ts';
import type { LiveNode } from '../cluster/harness/live-node.ts';

/** An answer with which a node claimed to be active. `since` names its present time in this role. */
export interface Claim {
  readonly node: string;
  readonly since: string;
  readonly askedMs: number;
  readonly heardMs: number;
}

const pauseMs = 50;
const callMs = 10_000;

/**
 * Judges claims in the order in which they are heard. If a node claims before another node was asked, and again after that node claimed,
 * and its role has not ended in between, both were active at the time of the other's claim.
 */
export class ActiveClaims {
  readonly violations: string[] = [];
  count = 0;
  /** The latest claim of each node. */
  readonly #latest = new Map<string, Claim>();

  heard(claim: Claim): void {
    this.count += 1;
    const before = this.#latest.get(claim.node);
    if (before?.since === claim.since)
      for (const other of this.#latest.values())
        if (other.node !== claim.node && other.askedMs >= before.heardMs && claim.askedMs >= other.heardMs)
          this.violations.push(`${claim.node} and ${other.node} were active at once (since ${claim.since} and ${other.since})`);
    this.#latest.set(claim.node, claim);
  }
}

export class ActiveWatch {
  readonly claims = new ActiveClaims();
  readonly #running: Promise<unknown>;
  #stopping = false;

  constructor(cluster: LiveCluster) {
    this.#running = Promise.all(cluster.nodes.map((node) => this.#watch(node)));
    cluster.bears(this);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#running;
  }

  async #watch(node: LiveNode): Promise<void> {
    for (; !this.#stopping; await delay(pauseMs)) {
      const askedMs = performance.now();
      const answer = await node.ask('GET', 'sys/leader', { withinMs: callMs }).catch(() => undefined);
      if (answer?.status !== 200 || answer.at('is_self') !== true) continue;
      this.claims.heard({ node: node.name, since: answer.string('active_time'), askedMs, heardMs: performance.now() });
    }
  }
}
