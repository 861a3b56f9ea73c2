import { memoryStore } from '@transitd/storage-fsm';
import { ClusterListener } from '../../../cluster/src/transport/cluster-listener.ts';
import { clusterId, type TestCluster, testCluster } from '../../../cluster/test/credentials.ts';
import { activate } from '../../src/port/activation-client.ts';
import { readActivationToken } from '../../src/port/activation-token.ts';
import type { PrimaryCredential } from '../../src/port/credential.ts';
import { ReplicationPort } from '../../src/port/replication-port.ts';
import { makeSecondaryRequest } from '../../src/port/secondary-certificate.ts';
import { SecondaryDesk } from '../../src/port/secondary-desk.ts';
import { emptyRegistry } from '../../src/registry/registry.ts';
import { StoredRegistry } from '../../src/registry/stored-registry.ts';
import { type PrimaryCluster, type SessionLimits, sessionLimits } from '../../src/sessions/session-ports.ts';
import { TestPrimary } from '../sessions/session-fixtures.ts';

/** Short heartbeats, and patience for a busy machine. */
export const testLimits: SessionLimits = { ...sessionLimits, heartbeatMs: 20, silentMsMax: 120_000, stallMsMax: 120_000 };

const silent = { info: () => undefined, warn: () => undefined };

interface SiteOptions {
  readonly nodes?: number;
  readonly limits?: Partial<SessionLimits>;
}

/** One or more nodes of a primary, with cluster ports on the loopback interface, one registry and one set of records. */
export class TestSite<P extends PrimaryCluster = TestPrimary> {
  readonly registry = new StoredRegistry(memoryStore());
  readonly primary: P;
  readonly desk: SecondaryDesk;
  readonly ports: ReplicationPort[] = [];
  readonly addresses: string[] = [];
  /** Addresses as secondaries see them: those of proxies, for example. */
  advertised: readonly string[] | undefined;
  /** The number of the active node. */
  active = 0;
  utcMs = Date.now();
  readonly clock = { nowMs: () => performance.now(), utcMs: () => this.utcMs, dueMs: () => this.utcMs };
  /** Requests that reached the handlers of members. */
  readonly handled: string[] = [];
  readonly members = new Map<string, { id: number; memberState: 'member' | 'removed' }>();
  readonly cluster: TestCluster;
  readonly #listeners: ClusterListener[] = [];

  private constructor(cluster: TestCluster, primary: P) {
    this.cluster = cluster;
    this.primary = primary;
    primary.nodes = () => this.nodes;
    this.desk = new SecondaryDesk({
      ...{ registry: this.registry, clusterId, cluster: this, clock: this.clock },
      set: { offered: { set: '0a'.repeat(16), seal: 'shared' }, nodes: () => this.nodes },
    });
  }

  static start(options?: SiteOptions): Promise<TestSite>;
  static start<P extends PrimaryCluster>(options: SiteOptions & { readonly primary: P }): Promise<TestSite<P>>;
  static async start({
    nodes = 1,
    limits = {},
    primary = new TestPrimary(),
  }: SiteOptions & { readonly primary?: PrimaryCluster } = {}): Promise<TestSite<PrimaryCluster>> {
    const site = new TestSite<PrimaryCluster>(await testCluster(), primary);
    for (let number = 0; number < nodes; number++) await site.#open(number, { ...testLimits, ...limits });
    return site;
  }

  async signingAuthority() {
    return this.cluster.authority;
  }

  get nodes() {
    return { addresses: this.advertised ?? this.addresses, authorities: [this.cluster.authority.certificate] };
  }

  async #open(number: number, limits: SessionLimits): Promise<void> {
    const { identity } = await this.cluster.node(number + 1);
    const isActive = () => this.active === number;
    const activeAddress = () => this.addresses[this.active];
    const port = new ReplicationPort({
      ...{ registry: this.registry, desk: this.desk, primary: this.primary, limits, clock: this.clock, log: silent },
      role: {
        get isActive() {
          return isActive();
        },
      },
      cluster: {
        get activeMember() {
          const clusterAddress = activeAddress();
          return clusterAddress === undefined ? undefined : { clusterAddress };
        },
      },
    });
    const listener = new ClusterListener({
      members: { requireIdentity: () => identity, memberState: (fingerprint) => this.members.get(fingerprint) },
      calls: { 'POST /cluster/echo': async () => this.#handled('echo') },
      forwarded: { handle: (_req, res) => void res.end(this.#handled('forwarded')) },
      raft: {
        accept: (socket) => {
          this.#handled('raft');
          socket.terminate();
        },
        judge: () => 'in order',
      },
      guests: port,
      onFault: (error) => {
        throw error;
      },
      checkMs: 20,
    });
    this.addresses.push(`127.0.0.1:${await listener.listen({ host: '127.0.0.1', port: 0 })}`);
    this.ports.push(port);
    this.#listeners.push(listener);
  }

  #handled(name: string) {
    this.handled.push(name);
    return { status: 200, json: {} };
  }

  /** Issues a token and uses it. */
  async register(secondary = 'east'): Promise<PrimaryCredential> {
    const token = await readActivationToken(await this.desk.issueToken({ secondary }));
    return activate(token, await makeSecondaryRequest(secondary, 'c1'));
  }

  get registrations() {
    return (this.registry.current ?? emptyRegistry).registrations;
  }

  async stop(): Promise<void> {
    for (const port of this.ports) port.close();
    await Promise.all(this.#listeners.map((listener) => listener.close()));
  }
}
