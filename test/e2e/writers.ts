// Clients that create keys through any node during a fault.
import { setTimeout as delay } from 'node:timers/promises';
import { attempt } from '../cluster/harness/outcome.ts';
import { until } from '../cluster/harness/until.ts';
import type { ContainerCluster } from './container-cluster.ts';
import type { NodeContainer } from './node-container.ts';

/** Pause after a refusal. */
const pauseMs = 20;

export class Writers {
  /** Keys whose creation was acknowledged. */
  readonly acknowledged: string[] = [];
  readonly #cluster: ContainerCluster;
  readonly #clients: readonly Promise<void>[];
  #stopping = false;

  /** Starts one client for each node. */
  constructor(cluster: ContainerCluster) {
    this.#cluster = cluster;
    this.#clients = cluster.nodes.map((node) => this.#client(node));
  }

  /** Resolves after `count` more acknowledged writes. */
  async more(count: number): Promise<void> {
    const wanted = this.acknowledged.length + count;
    await until(`${wanted} writes are acknowledged`, () => this.acknowledged.length >= wanted);
  }

  /** Resolves when each client has its last answer. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#clients);
  }

  /** Returns acknowledged keys that this node does not list. */
  async missingOn(node: NodeContainer): Promise<readonly string[]> {
    const listed: unknown = (await this.#cluster.ask(node, 'GET', 'transit/keys?list=true')).at('data.keys');
    const names = new Set(Array.isArray(listed) ? listed : []);
    return this.acknowledged.filter((name) => !names.has(name));
  }

  async #client(node: NodeContainer): Promise<void> {
    for (let serial = 0; !this.#stopping; serial += 1) {
      const name = `${node.name}-${performance.now().toFixed(0)}-${serial}`;
      const { kind } = await attempt(this.#cluster.ask(node, 'POST', `transit/keys/${name}`, {}));
      if (kind === 'done') this.acknowledged.push(name);
      else await delay(pauseMs);
    }
  }
}
