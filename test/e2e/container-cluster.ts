// Three nodes in containers on their own network, which form a cluster by themselves.
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Network, type StartedNetwork } from 'testcontainers';
import { patienceMs, until } from '../cluster/harness/until.ts';
import type { Answer } from '../process/live-server.ts';
import { NodeContainer } from './node-container.ts';

const names = ['n1', 'n2', 'n3'] as const;

export class ContainerCluster {
  readonly #network: StartedNetwork;
  readonly #secrets: string;
  #nodes: readonly NodeContainer[] = [];
  #rootToken = '';

  private constructor(network: StartedNetwork, secrets: string) {
    this.#network = network;
    this.#secrets = secrets;
  }

  /** Resolves when all nodes serve. */
  static async start(): Promise<ContainerCluster> {
    const secrets = mkdtempSync(join(tmpdir(), 'transitd-e2e-'));
    // The user in the container differs from the user who runs the test.
    chmodSync(secrets, 0o755);
    writeFileSync(join(secrets, 'seal.key'), randomBytes(32).toString('hex'), { mode: 0o444 });
    const cluster = new ContainerCluster(await new Network().start(), secrets);
    try {
      cluster.#nodes = await Promise.all(names.map((name) => cluster.#start(name)));
      await cluster.#initialize();
      await cluster.settled();
      return cluster;
    } catch (error) {
      await cluster.end().catch(() => undefined); // the first error is the useful one
      throw error;
    }
  }

  get nodes(): readonly NodeContainer[] {
    return this.#nodes;
  }

  others(...nodes: readonly NodeContainer[]): readonly NodeContainer[] {
    return this.#nodes.filter((node) => !nodes.includes(node));
  }

  /** Sends a request with the root token. */
  ask(node: NodeContainer, method: string, path: string, body?: unknown): Promise<Answer> {
    return node.ask(method, path, { token: this.#rootToken, ...(body !== undefined && { body }) });
  }

  /** Resolves with the active node once these nodes are the voters and all except the active node serve as standbys. */
  settled(nodes: readonly NodeContainer[] = this.#nodes): Promise<NodeContainer> {
    let last: unknown;
    const expected = [200, ...nodes.slice(1).map(() => 473)];
    return until(
      'one node is active, the others stand by and are voters',
      async () => {
        const codes = await Promise.all(nodes.map((node) => node.health()));
        last = codes;
        const leader = nodes[codes.indexOf(200)];
        if (leader === undefined || JSON.stringify(codes.toSorted()) !== JSON.stringify(expected)) return false;
        const voters = await this.voters(leader);
        last = voters;
        return nodes.every(({ name }) => voters.includes(name)) && leader;
      },
      { explain: () => `last: ${JSON.stringify(last)}` },
    );
  }

  /** Returns the names of the voters, as this node knows them. */
  async voters(node: NodeContainer): Promise<readonly string[]> {
    const servers: unknown = (await this.ask(node, 'GET', 'sys/storage/raft/configuration')).at('data.config.servers');
    return Array.isArray(servers) ? servers.filter(({ voter }) => voter === true).map(({ node_id }) => String(node_id)) : [];
  }

  /** Replaces this node by one with the same name and an empty volume. */
  async replace(node: NodeContainer): Promise<NodeContainer> {
    await node.remove();
    const fresh = await this.#start(node.name);
    this.#nodes = this.#nodes.map((one) => (one === node ? fresh : one));
    return fresh;
  }

  async end(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.remove()));
    await this.#network.stop();
    rmSync(this.#secrets, { recursive: true });
  }

  #start(name: string): Promise<NodeContainer> {
    return NodeContainer.start({ name, network: this.#network, secrets: this.#secrets });
  }

  async #initialize(): Promise<void> {
    const [first] = this.#nodes;
    const body = { recovery_shares: 1, recovery_threshold: 1 };
    // It waits for an attempt of the node to join by itself.
    const answer = await first?.ask('POST', 'sys/init', { body, withinMs: patienceMs });
    if (answer?.status !== 200) throw new Error(`init: ${answer?.status} ${answer?.text}`);
    this.#rootToken = answer.string('root_token');
  }
}
