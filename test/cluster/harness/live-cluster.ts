// A cluster of real processes on loopback, with a proxy in front of each cluster port.
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Answer } from '../../process/live-server.ts';
import { SecretWatch } from '../../process/secret-watch.ts';
import { EtcdCluster } from './etcd/etcd-cluster.ts';
import { freePort } from './free-port.ts';
import { type LinkMode, LinkProxy } from './link-proxy.ts';
import { type AskOptions, LiveNode } from './live-node.ts';
import { isRefusedForNow } from './outcome.ts';
import { until } from './until.ts';

export interface ClusterOptions {
  readonly size?: number;
  readonly seal?: 'static' | 'shamir';
  /** All nodes except the first join by themselves. */
  readonly retryJoin?: boolean;
  /** The last node has a different seal key from the others. */
  readonly strangersSeal?: boolean;
  /**
   * `rare` (default): election timeouts are so long that only a test causes an election, not a stall of the machine for some seconds.
   * `never`: the test waits for no election, nor for the refusals of a node without contact, which come even later. `shipped`: the default
   * timing of the product, for measurements.
   */
  readonly elections?: 'rare' | 'never' | 'shipped';
  /** `direct`: nodes connect without a proxy, so that the port of a dead process refuses connections. Then no link can be cut. */
  readonly links?: 'proxied' | 'direct';
  /** Addresses outside of the cluster that may call its proxies. */
  readonly guests?: readonly string[];
  /** `etcd`: the records are in an etcd cluster of three members, which starts and ends with this cluster. Default: `raft`. */
  readonly storage?: 'raft' | 'etcd';
  /** Further listeners of each node. */
  readonly listeners?: (host: string) => readonly object[];
  /** Gateway threads of each node. Default: none, because one doubles the processor time of a start. */
  readonly workers?: number | 'auto';
  /** Added to each node's configuration. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** The file that starts `transitd`, by default that of this release. */
  readonly program?: string;
  /** The data directory of the node with this name; by default a new folder, which ends with the cluster. */
  readonly dataDir?: (name: string) => string;
  /** Added to the environment of the node with this name. */
  readonly env?: (name: string) => Readonly<Record<string, string>>;
}

const timings = { rare: { election_timeout: '5s' }, never: { election_timeout: '60s' }, shipped: {} };
const shares = { secret_shares: 3, secret_threshold: 2 };

export class LiveCluster {
  readonly #folder: string;
  readonly #seal: 'static' | 'shamir';
  readonly #nodes: LiveNode[] = [];
  readonly #secrets = new SecretWatch();
  readonly #loads = new Set<{ stop(): Promise<void> }>();
  #rootToken = '';
  #shares: readonly string[] = [];
  #etcd: EtcdCluster | undefined;

  private constructor(folder: string, seal: 'static' | 'shamir') {
    this.#folder = folder;
    this.#seal = seal;
  }

  /** Starts processes that do not know each other yet. */
  static async start(options: ClusterOptions = {}): Promise<LiveCluster> {
    const { size = 3, seal = 'static', storage = 'raft' } = options;
    const cluster = new LiveCluster(mkdtempSync(join(tmpdir(), 'transitd-cluster-')), seal);
    try {
      for (const name of ['seal.key', 'other-seal.key'])
        writeFileSync(join(cluster.#folder, name), `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
      const names = Array.from({ length: size }, (_, index) => nameOf(index + 1));
      if (storage === 'etcd') cluster.#etcd = await EtcdCluster.start(names);
      for (let index = 1; index <= size; index++) await cluster.#add(index, size, options);
      for (const node of cluster.nodes) node.install(options.program);
      await Promise.all(cluster.nodes.map((node) => node.start()));
    } catch (error) {
      await cluster.end();
      throw error;
    }
    return cluster;
  }

  /** Forms the cluster: all nodes are members, the first is active, the others are performance standbys. */
  static async formed(options: ClusterOptions = {}): Promise<LiveCluster> {
    const cluster = await LiveCluster.start(options);
    try {
      const [first, ...others] = cluster.nodes;
      if (first === undefined) throw new Error('a cluster has a node');
      await cluster.initialize(first);
      if (options.storage !== 'etcd') await Promise.all(others.map((node) => cluster.join(node, first)));
      await cluster.settled();
    } catch (error) {
      const told = new Error(`the cluster was not formed: ${String(error)}\n${cluster.tails()}`, { cause: error });
      await cluster.end();
      throw told;
    }
    return cluster;
  }

  get nodes(): readonly LiveNode[] {
    return this.#nodes;
  }

  /** The nodes that have reported a violated invariant. */
  get broken(): readonly LiveNode[] {
    return this.#nodes.filter(({ log }) => /broken invariant|a committed entry is contradicted:/.test(log));
  }

  get rootToken(): string {
    return this.#rootToken;
  }

  /** The etcd cluster that has the records. @throws if the nodes have them */
  get etcd(): EtcdCluster {
    if (this.#etcd === undefined) throw new Error('this cluster uses no etcd');
    return this.#etcd;
  }

  /** Whether nodes need shares to unseal. */
  get sharesUnseal(): boolean {
    return this.#seal === 'shamir';
  }

  /** As many shares, or recovery shares, as the threshold needs. */
  get shares(): readonly string[] {
    return this.#shares.slice(0, shares.secret_threshold);
  }

  /** Returns a node by its number, from 1. */
  node(number: number): LiveNode {
    const node = this.#nodes[number - 1];
    if (node === undefined) throw new Error(`there is no node ${number}`);
    return node;
  }

  others(...nodes: readonly LiveNode[]): readonly LiveNode[] {
    return this.#nodes.filter((node) => !nodes.includes(node));
  }

  /** Sends a request with the root token. */
  ask(node: LiveNode, method: string, path: string, body?: unknown, options: AskOptions = {}): Promise<Answer> {
    return node.ask(method, path, { token: this.#rootToken, ...(body !== undefined && { body }), ...options });
  }

  /**
   * Like `ask`, for a cluster whose leader may change at any time. Repeats the request while no node is active, which is safe because a
   * 503 then means that nothing was done.
   */
  askWhenLed(node: LiveNode, method: string, path: string, body?: unknown, options: AskOptions = {}): Promise<Answer> {
    return this.#askWhile(isRefusedForNow, node, method, path, body, options);
  }

  /** Like `askWhenLed`, for a request that may be repeated although it may have taken effect: a process stalled, and the answer was 504. */
  askUntilKnown(node: LiveNode, method: string, path: string, body?: unknown, options: AskOptions = {}): Promise<Answer> {
    return this.#askWhile((answer) => answer.status === 504 || isRefusedForNow(answer), node, method, path, body, options);
  }

  /**
   * Sends a request to a cluster whose nodes all serve. A stall of the machine changes nothing in a Raft group with `rare` elections. On
   * etcd, the active role moves when a process stalls for seconds. So there the request is repeated, and must be one that may be.
   */
  askServing(...request: Parameters<LiveCluster['ask']>): Promise<Answer> {
    return this.#etcd === undefined ? this.ask(...request) : this.askUntilKnown(...request);
  }

  /** Initializes the cluster on this node and unseals it. */
  async initialize(node: LiveNode): Promise<void> {
    const request = this.#seal === 'static' ? { recovery_shares: 1, recovery_threshold: 1 } : shares;
    const answer = await until(`${node.name} is initialized`, async () => {
      const one = await node.ask('PUT', 'sys/init', { body: request, withinMs: 60_000 });
      return !isRefusedForNow(one) && one;
    });
    if (answer.status !== 200) throw new Error(`init of ${node.name}: ${answer.status} ${answer.text}`);
    this.#rootToken = answer.string('root_token');
    const given: unknown = answer.at(this.sharesUnseal ? 'keys_base64' : 'recovery_keys_base64');
    this.#shares = Array.isArray(given) ? given.map(String) : [];
    if (this.#seal === 'shamir') await this.unseal(node);
    await node.reaches(200);
  }

  joinAnswer(node: LiveNode, via: LiveNode): Promise<Answer> {
    const body = { leader_api_addr: via.apiAddress, retry: false };
    return node.ask('POST', 'sys/storage/raft/join', { body, withinMs: 60_000 });
  }

  /** Makes an uninitialized node a member. */
  async admit(node: LiveNode, via: LiveNode): Promise<void> {
    let last: Answer | undefined;
    await until(
      `${node.name} is admitted`,
      async () => {
        last = await this.joinAnswer(node, via);
        // There is no leader at the moment, or the rate limit of joins applies; repeating a join is safe.
        if (![200, 429, 503].includes(last.status)) throw new Error(`join of ${node.name}: ${last.status} ${last.text}`);
        return last.status === 200;
      },
      { explain: () => `${last?.text}` },
    );
  }

  /** Makes an uninitialized node a member and unseals it. Waits until the node serves. */
  async join(node: LiveNode, via: LiveNode): Promise<void> {
    await this.admit(node, via);
    if (this.#seal === 'shamir') await this.unseal(node);
    await node.reaches(473);
  }

  /** Submits shares until the node is unsealed. A joining node needs them again if its records arrived late. */
  async unseal(node: LiveNode, keys = this.shares): Promise<void> {
    let last: Answer | undefined;
    await until(
      `${node.name} is unsealed`,
      async () => {
        for (const key of keys) last = await node.ask('PUT', 'sys/unseal', { body: { key } });
        return last?.status === 200 && last.at('sealed') === false;
      },
      { explain: () => `last: ${last?.status} ${last?.text}` },
    );
  }

  /** Resolves with the one node among these that answers 200 to health. */
  leader(among: readonly LiveNode[] = this.#nodes): Promise<LiveNode> {
    return until(
      `one of ${among.map(({ name }) => name).join(', ')} is active`,
      async () => {
        const seen = await Promise.all(among.map((node) => node.health()));
        const active = among.filter((_, index) => seen[index]?.code === 200);
        return active.length === 1 && active[0];
      },
      { explain: () => this.tails() },
    );
  }

  /** Resolves with the active node once all others are performance standbys, and all are voters if they form a Raft group. */
  async settled(nodes: readonly LiveNode[] = this.#nodes): Promise<LiveNode> {
    let last: readonly unknown[] = [];
    return until(
      `${nodes.map(({ name }) => name).join(', ')} are one active node and standbys that serve`,
      async () => {
        const seen = await Promise.all(nodes.map((node) => node.health()));
        last = seen.map((health) => health?.code);
        const active = nodes.filter((_, index) => last[index] === 200);
        const leader = active[0];
        const standbys = last.filter((code) => code === 473);
        if (active.length !== 1 || leader === undefined || standbys.length !== nodes.length - 1) return false;
        if (nodes.length === 1 || this.#etcd !== undefined) return leader;
        const voters = await this.voters(leader);
        last = [...last, voters];
        return nodes.every(({ name }) => voters.includes(name)) && leader;
      },
      { explain: () => `last: ${JSON.stringify(last)}\n${this.tails()}` },
    );
  }

  #askWhile(
    isOpen: (answer: Answer) => boolean,
    ...[node, method, path, body, options]: Parameters<LiveCluster['ask']>
  ): Promise<Answer> {
    let last: Answer | undefined;
    return until(
      `${method} ${path} is answered by ${node.name}`,
      async () => {
        last = await this.ask(node, method, path, body, options);
        return !isOpen(last) && last;
      },
      { explain: () => `last: ${last?.status} ${last?.text}\n${this.tails()}` },
    );
  }

  /** Returns the names of the voters, as this node knows them. */
  async voters(node: LiveNode): Promise<readonly string[]> {
    const answer = await this.ask(node, 'GET', 'sys/storage/raft/configuration');
    const servers: unknown = answer.at('data.config.servers');
    if (!Array.isArray(servers)) return [];
    return servers.filter(({ voter }) => voter === true).map(({ node_id }) => String(node_id));
  }

  /** Sets the mode of the connections from `from` to `to`. */
  link(from: LiveNode, to: LiveNode, mode: LinkMode): void {
    to.proxy.setMode(from.host, mode);
  }

  /** Sets the mode of the links from a guest to all nodes. */
  guestLink(guest: string, mode: LinkMode): void {
    for (const node of this.#nodes) node.proxy.setMode(guest, mode);
  }

  /** Loses the bytes that `from` sends to `to`, on connections of either; bytes from `to` arrive. */
  loseOneWay(from: LiveNode, to: LiveNode): void {
    this.link(from, to, 'swallow-requests');
    this.link(to, from, 'swallow-answers');
  }

  /** Loses the bytes that this node sends to all others, and to etcd. */
  silence(node: LiveNode): void {
    for (const other of this.others(node)) this.loseOneWay(node, other);
    this.#etcd?.isolateNode(node.name, 'swallow-requests');
  }

  /** Sets the mode of all links of this node, both ways, and of those to etcd. */
  isolate(node: LiveNode, mode: LinkMode = 'blackhole'): void {
    this.#etcd?.isolateNode(node.name, mode);
    for (const other of this.others(node)) {
      this.link(node, other, mode);
      this.link(other, node, mode);
    }
  }

  heal(): void {
    for (const node of this.#nodes) this.isolate(node, 'open');
  }

  /** Registers a workload that ends with this cluster, even if its test failed. */
  bears(load: { stop(): Promise<void> }): void {
    this.#loads.add(load);
  }

  /** Ends every process and removes every folder. */
  async end(): Promise<void> {
    const loads = [...this.#loads].map((load) => load.stop());
    const ended = await Promise.allSettled(this.#nodes.map((node) => node.end()));
    await Promise.allSettled(loads);
    await Promise.all(this.#nodes.map(({ proxy }) => proxy.close()));
    await this.#etcd?.end();
    rmSync(this.#folder, { recursive: true, force: true });
    for (const end of ended) if (end.status === 'rejected') throw end.reason;
  }

  tails(): string {
    return [...this.#nodes.map((node) => node.tail()), this.#etcd?.tails() ?? ''].join('\n');
  }

  async #add(
    index: number,
    size: number,
    {
      retryJoin,
      strangersSeal,
      elections = 'rare',
      links = 'proxied',
      guests = [],
      workers = 0,
      config: more,
      ...own
    }: ClusterOptions,
  ): Promise<void> {
    const { dataDir: dataDirOf, env } = own;
    const name = nameOf(index);
    const host = hostOf(index);
    const api = `${host}:${await freePort(host)}`;
    const cluster = { host, port: await freePort(host) };
    // Includes the node's own address: while the log still names the node that it replaces, it calls that node at this address.
    const sources = [...Array.from({ length: size }, (_, other) => hostOf(other + 1)), ...guests];
    const proxy = await LinkProxy.listen(cluster, sources);
    const dataDir = dataDirOf?.(name) ?? join(this.#folder, name);
    const configFile = join(this.#folder, `${name}.json`);
    const dialed = links === 'direct' ? cluster : proxy.address;
    const peers = {
      cluster_addr: `${dialed.host}:${dialed.port}`,
      cluster_listen: `${cluster.host}:${cluster.port}`,
      ...(retryJoin === true && index > 1 && { retry_join: [this.node(1).apiAddress] }),
    };
    const keyFile = join(this.#folder, strangersSeal === true && index === size ? 'other-seal.key' : 'seal.key');
    const config = {
      node_id: name,
      data_dir: dataDir,
      api_addr: `http://${api}`,
      ...((size > 1 || guests.length > 0) && peers),
      listeners: [{ address: api, tls_disable: true }, ...(own.listeners?.(host) ?? [])],
      seal: this.#seal === 'static' ? { type: 'static', key_id: 'test', key_file: keyFile } : { type: 'shamir' },
      ...(this.#etcd && { storage: this.#etcd.storageOf(name) }),
      workers,
      ...more,
      raft: { ...timings[elections], ...Object(more?.['raft']) },
    };
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    writeFileSync(configFile, JSON.stringify(config, undefined, 2));
    this.#nodes.push(
      new LiveNode({
        name,
        host,
        apiAddress: `http://${api}`,
        dataDir,
        configFile,
        proxy,
        secrets: this.#secrets,
        ...(env && { env: env(name) }),
      }),
    );
  }
}

const nameOf = (index: number): string => `n${index}`;
const hostOf = (index: number): string => `127.0.0.${10 + index}`;
