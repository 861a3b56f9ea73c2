import { setTimeout as delay } from 'node:timers/promises';
import { driverLimits } from '@transitd/raft-core';
import { type ApiServer, valueAt } from '../http/api-server.ts';
import { type ClusterNode, OwnCluster } from '../http/own-cluster.ts';
import type { OwnProcesses } from '../http/own-processes.ts';
import { percentile } from '../statistics.ts';

/** Pause of a caller after each answer, whatever the answer. */
const pauseMs = 2;

/** A cluster of three nodes whose active nodes are killed. */
export class FailoverCluster {
  readonly #name: string;
  readonly #cluster: OwnCluster;
  readonly #tookMs: number[] = [];
  #keys = 0;
  #restartedMs = performance.now();

  private constructor(name: string, cluster: OwnCluster) {
    this.#name = name;
    this.#cluster = cluster;
  }

  static async start(own: OwnProcesses, name: string, from?: string): Promise<FailoverCluster> {
    const cluster = await OwnCluster.start(own, { from });
    await cluster.nodes[0]?.server.call('POST', 'sys/mounts/failover', { type: 'transit' });
    while (cluster.nodes.length < 3) await cluster.add();
    return new FailoverCluster(name, cluster);
  }

  get latest(): string {
    return `${this.#name}: ${Math.round(this.#tookMs.at(-1) ?? Number.NaN)} ms`;
  }

  get line(): string {
    const times = this.#tookMs;
    const cells = [percentile(times, 50), Math.min(...times), Math.max(...times)].map(Math.round);
    return `| ${this.#name} | ${cells.join(' | ')} |`;
  }

  /** Kills the active node while a caller of each other node writes, notes the time, and starts the node again. */
  async failover(): Promise<void> {
    const { nodes } = this.#cluster;
    // A node that has just started does not vote for a while.
    await delay(Math.max(0, this.#restartedMs + 1.5 * driverLimits.electionMs - performance.now()));
    const active = await activeOf(nodes);
    const calls = nodes.filter((node) => node !== active).map(({ server }) => new Caller(server, () => `k${++this.#keys}`));
    await delay(200 + driverLimits.heartbeatMs * Math.random());
    const killedMs = performance.now();
    const killed = this.#cluster.kill(active);
    const acknowledgedMs = await Promise.race(calls.map((caller) => caller.firstSentAfter(killedMs)));
    this.#tookMs.push(acknowledgedMs - killedMs);
    await Promise.all(calls.map((caller) => caller.end()));
    await killed;
    await this.#cluster.startAgain(active);
    this.#restartedMs = performance.now();
  }
}

async function activeOf(nodes: readonly ClusterNode[]): Promise<ClusterNode> {
  for (const node of nodes) if (valueAt(await node.server.call('GET', 'sys/leader'), 'is_self') === true) return node;
  throw new Error('no node is active');
}

/** Creates one key after the other through one node. */
class Caller {
  readonly #server: ApiServer;
  readonly #name: () => string;
  readonly #ended: Promise<void>;
  #isOver = false;
  #acknowledged: (sentMs: number) => void = () => undefined;

  constructor(server: ApiServer, name: () => string) {
    this.#server = server;
    this.#name = name;
    this.#ended = this.#run();
  }

  /** Resolves with the time at which the first write was acknowledged that was sent after `sinceMs`. */
  firstSentAfter(sinceMs: number): Promise<number> {
    return new Promise((resolve) => {
      this.#acknowledged = (sentMs) => {
        if (sentMs > sinceMs) resolve(performance.now());
      };
    });
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#ended;
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      const sentMs = performance.now();
      await this.#server.call('POST', `failover/keys/${this.#name()}`, {}).then(
        () => this.#acknowledged(sentMs),
        () => undefined,
      );
      await delay(pauseMs);
    }
  }
}
