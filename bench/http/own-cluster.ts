import { readFileSync } from 'node:fs';
import { ApiServer, valueAt } from './api-server.ts';
import { type Certificate, makeCertificate, newSealKey, writeConfiguration } from './node-configuration.ts';
import type { Options } from './options.ts';
import { type OwnProcesses, type StartedNode, untilHealthy } from './own-processes.ts';

/** Settings that all nodes of a cluster share. */
export interface ClusterSettings {
  readonly tls?: boolean;
  readonly audit?: boolean;
  /** The checkout to run; default: this one. */
  readonly from?: string | undefined;
  /** Further keys of each node's configuration file. */
  readonly configuration?: Readonly<Record<string, unknown>>;
}

/** One node of the cluster. Its server has the process id of this node alone. */
export interface ClusterNode {
  readonly name: string;
  readonly file: string;
  readonly server: ApiServer;
}

/** A cluster of nodes with configuration files, which unseal themselves. The first node is initialized and active. */
export class OwnCluster {
  readonly nodes: ClusterNode[] = [];
  readonly #own: OwnProcesses;
  readonly #settings: ClusterSettings;
  readonly #folder: string;
  readonly #environment = { BENCH_SEAL_KEY: newSealKey() };
  readonly #certificate: Certificate | undefined;
  readonly #authority: string | undefined;
  #token = '';

  private constructor(own: OwnProcesses, settings: ClusterSettings) {
    this.#own = own;
    this.#settings = settings;
    this.#folder = own.newFolder();
    this.#certificate = settings.tls === true ? makeCertificate(this.#folder) : undefined;
    this.#authority = this.#certificate && readFileSync(this.#certificate.cert_file, 'utf8');
  }

  static async start(own: OwnProcesses, settings: ClusterSettings): Promise<OwnCluster> {
    const cluster = new OwnCluster(own, settings);
    const file = await cluster.#writeConfiguration('n1', {});
    const started = await cluster.#startNode(file);
    const init = await cluster.#server(started).call('PUT', 'sys/init', { recovery_shares: 1, recovery_threshold: 1 });
    cluster.#token = String(valueAt(init, 'root_token'));
    await cluster.#serve({ name: 'n1', file, started });
    return cluster;
  }

  /** Starts another node, and waits until it serves. @param configuration - further keys of its configuration file */
  async add(configuration: Readonly<Record<string, unknown>> = {}): Promise<ClusterNode> {
    const name = `n${this.nodes.length + 1}`;
    const file = await this.#writeConfiguration(name, configuration);
    return this.#serve({ name, file, started: await this.#startNode(file) });
  }

  /** Ends a node. Its place in `nodes` is free until `startAgain`. */
  async end(node: ClusterNode): Promise<void> {
    await node.server.close();
    await this.#remove(node, 'SIGTERM');
  }

  /** Kills a node in this event-loop turn, as `end` does otherwise. */
  async kill(node: ClusterNode): Promise<void> {
    await this.#remove(node, 'SIGKILL');
    await node.server.close();
  }

  async #remove(node: ClusterNode, signal: NodeJS.Signals): Promise<void> {
    this.nodes.splice(this.nodes.indexOf(node), 1);
    await this.#own.end(node.server.pids, signal);
  }

  /** Starts a node that was ended, on its own data, and waits until it serves. */
  async startAgain({ name, file }: ClusterNode): Promise<ClusterNode> {
    return this.#serve({ name, file, started: await this.#startNode(file) });
  }

  #writeConfiguration(name: string, configuration: Readonly<Record<string, unknown>>): Promise<string> {
    const { audit = false, configuration: shared = {} } = this.#settings;
    // Nodes on etcd find each other there.
    const join = 'storage' in shared ? undefined : this.nodes[0]?.server.url;
    const more = { ...shared, ...configuration };
    return writeConfiguration({ folder: this.#folder, name, certificate: this.#certificate, audit, join, more });
  }

  #startNode(file: string): Promise<StartedNode> {
    return this.#own.startNode(['--config', file], this.#environment, this.#settings.from);
  }

  #server({ url, pid }: StartedNode): ApiServer {
    return new ApiServer({ name: 'ours', url, token: this.#token, pids: [pid], authority: this.#authority });
  }

  async #serve({ name, file, started }: { name: string; file: string; started: StartedNode }): Promise<ClusterNode> {
    const node = { name, file, server: this.#server(started) };
    await untilHealthy(node.server);
    this.nodes.push(node);
    return node;
  }
}

/**
 * Starts a `--dev` node. With TLS, audit or several nodes, which `--dev` lacks, starts nodes with configuration files and the same kind of
 * seal. Returns the server `ours`, which is the active node, and `standby` if there is one.
 */
export async function startNodes(
  own: OwnProcesses,
  { nodes, tls, audit, from }: Pick<Options, 'nodes' | 'tls' | 'audit'> & Pick<ClusterSettings, 'from'>,
): Promise<ApiServer[]> {
  if (nodes === 1 && !tls && !audit) return [await own.startDevNode(own.newFolder(), { from })];
  const cluster = await OwnCluster.start(own, { tls, audit, from });
  for (let i = 2; i <= nodes; i++) await cluster.add();
  // Both servers have the processes of all nodes, the active node first. Their memory counts together.
  const pids = cluster.nodes.flatMap(({ server }) => server.pids);
  const [active, standby] = cluster.nodes.map(({ server }) => server);
  const ours = active?.with({ name: 'ours', pids });
  const other = standby?.with({ name: 'standby', pids, sameAs: ours });
  return [ours, other].filter((server) => server !== undefined);
}
