import { initialAccess, Policies, TokenRegistry, Tokens } from '@transitd/access';
import {
  Barrier,
  BarrierError,
  countsFor,
  type InitializeRequest,
  type InitialShares,
  type SealConfig,
  type SealStatus,
} from '@transitd/barrier';
import type { NodeStatus } from '@transitd/health';
import { type Replica, type ReplicaStatus, type Store, StoreError } from '@transitd/storage-fsm';
import { TransitEngine } from '@transitd/transit-engine';
import type { Config } from '../config.ts';
import { StartError } from '../exit.ts';
import type { Logger } from '../log.ts';
import { version } from '../version.ts';
import { managedKeysOf, type TokenManagedKeys } from './managed-keys.ts';
import { initialMounts, type Mount, readMounts } from './mounts.ts';
import { sealConfig } from './seal-key.ts';
import { DataDirectory, type Storage } from './storage.ts';
import { keepUp } from './upkeep.ts';

/** A cluster that exists: consensus, records and the barrier over them, sealed or not. */
export interface Member {
  readonly replica: Replica;
  readonly barrier: Barrier;
}

/** What serves while the node is unsealed. */
export interface Service {
  readonly tokens: Tokens;
  readonly policies: Policies;
  readonly registry: TokenRegistry;
  /** Engines by the path of their mount. */
  readonly engines: ReadonlyMap<string, TransitEngine>;
  readonly mounts: readonly Mount[];
  readonly managedKeys: TokenManagedKeys;
  /** When it began to serve, on the monotonic clock. */
  readonly sinceMs: number;
}

export interface Initialized extends InitialShares {
  readonly rootToken: string;
}

export interface NodeOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly onFatal: (error: Error) => void;
}

/** A single node has nobody to echo; without leading it says soon that it is cut off. */
const heartbeatIntervalMs = 1000;
const upkeepIntervalMs = 10_000;
/**
 * One node of a cluster: uninitialised, sealed or serving. Everything above it asks here what the node can do now; nothing above
 * it keeps a copy of the answer.
 */
export class Node {
  readonly config: Config;
  readonly #seal: SealConfig;
  readonly #log: Logger;
  readonly #onFatal: (error: Error) => void;
  readonly #directory: DataDirectory;
  #storage: Storage | undefined;
  #member: Member | undefined;
  #service: Service | undefined;
  #activeSince: Date | undefined;
  /** The load of the service that an unseal began; settles without error. */
  #loading: Promise<void> = Promise.resolve();
  /** Counts the changes between sealed and unsealed, so that a load that one of them overtook ends without effect. */
  #sealChanges = 0;
  #initializing: Promise<Initialized> | undefined;
  #stopping: Promise<void> | undefined;
  #listener: string | undefined;
  #upkeep: NodeJS.Timeout | undefined;
  #atUpkeep = false;

  private constructor({ config, log, onFatal }: NodeOptions, seal: SealConfig, directory: DataDirectory) {
    this.config = config;
    this.#seal = seal;
    this.#directory = directory;
    this.#log = log;
    this.#onFatal = onFatal;
  }

  /**
   * Takes `data_dir` and opens what it holds; a static seal is unsealed at once.
   * @throws StartError, StorageDamaged, StorageInUse, StorageFailed
   */
  static async open(options: NodeOptions): Promise<Node> {
    const { config } = options;
    const seal = sealConfig(config);
    const directory = await DataDirectory.open(config.data_dir);
    const node = new Node(options, seal, directory);
    try {
      if (await directory.holdsNode()) {
        await node.#join();
        await node.#autoUnseal();
      }
      return node;
    } catch (error) {
      await node.stop().catch(() => undefined); // the first error tells more
      throw error instanceof BarrierError ? new StartError(`seal: ${error.message}`) : error;
    }
  }

  /** Nothing before this node belongs to a cluster. */
  get member(): Member | undefined {
    return this.#member;
  }

  get initialized(): boolean {
    return this.#member?.barrier.state.initialized ?? false;
  }

  /** Nothing while the node is not initialised or sealed, or while what serves is still being loaded. */
  get service(): Service | undefined {
    return this.#service;
  }

  /** Leads, has applied an entry of its term, and serves. */
  get active(): boolean {
    return this.#service !== undefined && (this.#member?.replica.status().ready ?? false);
  }

  /** When this node became the active one. */
  get activeSince(): Date | undefined {
    return this.active ? this.#activeSince : undefined;
  }

  /** What clients and redirects use: as configured, else the first listener. */
  get apiAddress(): string {
    return this.config.api_addr ?? this.#listener ?? '';
  }

  /** A listener has begun to answer at this address. */
  listens(address: string): void {
    this.#listener ??= address;
  }

  get replicaStatus(): ReplicaStatus | undefined {
    return this.#member?.replica.status();
  }

  get sealStatus(): SealStatus {
    const type = this.config.seal.type;
    return (
      this.#member?.barrier.sealStatus ?? {
        type,
        initialized: false,
        sealed: true,
        t: 0,
        n: 0,
        progress: 0,
        nonce: '',
        recoverySeal: type === 'static',
      }
    );
  }

  /** Present as soon as the node belongs to a cluster that is initialised, sealed or not. */
  get cluster(): { readonly id: string; readonly name: string } | undefined {
    const id = this.initialized ? this.#member?.replica.status().clusterId : undefined;
    return id === undefined ? undefined : { id, name: `transitd-${id.slice(0, 8)}` };
  }

  /** What health reports, from the state as it is now. */
  get status(): NodeStatus {
    const common = { version, ...(this.cluster === undefined ? {} : { cluster: this.cluster }) };
    if (!this.initialized) return { state: 'uninitialized', ...common };
    if (this.#service === undefined) return { state: 'sealed', ...common };
    if (this.active) return { state: 'active', ...common, lastWal: this.replicaStatus?.commitIndex ?? 0 };
    const sinceMs = this.#service.sinceMs;
    return { state: 'standby', ...common, echoes: { intervalMs: heartbeatIntervalMs, sinceMs, durationMs: 0, clockSkewMs: 0 } };
  }

  /**
   * Founds a cluster of this one node. Its first records, the root token among them, are one transaction: a crash leaves an
   * uninitialised node or a whole one.
   * @throws BarrierError `already_initialized`, `invalid_seal_config`; StoreError
   */
  async initialize(request: InitializeRequest, rootTokenId?: string): Promise<Initialized> {
    // Two at once would both found a cluster in one directory.
    if (this.#initializing !== undefined) throw new StoreError('busy', 'this node is being initialized');
    this.#initializing = this.#initialize(request, rootTokenId);
    try {
      return await this.#initializing;
    } finally {
      this.#initializing = undefined;
    }
  }

  /** Forgets the shares given so far. @throws BarrierError `unsealed` */
  resetUnseal(): SealStatus {
    return this.#member?.barrier.resetUnseal() ?? this.sealStatus;
  }

  /** Takes a share; resolves when, with the last one, the node serves. @throws BarrierError, StoreError */
  async unseal(share: Uint8Array): Promise<SealStatus> {
    const status = await this.#requireMember().barrier.unseal(share);
    await this.#loading;
    return { ...status, ...this.sealStatus };
  }

  /** Drops every key at once. */
  seal(): void {
    this.#member?.barrier.seal();
  }

  /** Seals, finishes the writes that were taken, and lets go of the data directory. An initialisation under way ends `stopped`. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    clearInterval(this.#upkeep);
    this.#endService();
    this.#member?.barrier.close();
    await this.#storage?.stop();
    await this.#initializing?.catch(() => undefined);
    await this.#directory.close();
  }

  #refuseWhenStopping(): void {
    if (this.#stopping !== undefined) throw new StoreError('stopped', 'this node is stopping');
  }

  #requireMember(): Member {
    if (this.#member === undefined) throw new BarrierError('not_initialized', 'transitd is not initialized');
    return this.#member;
  }

  async #initialize(request: InitializeRequest, rootTokenId: string | undefined): Promise<Initialized> {
    this.#refuseWhenStopping();
    if (this.#member === undefined) {
      countsFor(this.#seal.type, request); // a refused request leaves no cluster behind
      if (!(await this.#directory.holdsNode())) await this.#directory.foundCluster();
      await this.#join();
    }
    const { barrier } = this.#requireMember();
    const { rootToken, writes } = initialAccess({
      now: Date.now(),
      ...(rootTokenId === undefined ? {} : { rootToken: rootTokenId }),
    });
    const shares = await barrier.initialize(request, [initialMounts(this.config.ciphertext_prefix), ...writes]);
    await this.#loading;
    return { ...shares, rootToken };
  }

  async #join(): Promise<void> {
    const storage = await this.#directory.openStorage({ raft: this.config.raft, onFatal: this.#onFatal });
    try {
      this.#refuseWhenStopping();
      this.#storage = storage;
      await storage.leads;
      const barrier = await this.#openBarrier(storage.replica);
      this.#refuseWhenStopping();
      this.#member = { replica: storage.replica, barrier };
    } catch (error) {
      this.#storage = undefined;
      await storage.stop().catch(() => undefined); // the first error tells more
      throw error;
    }
    this.#upkeep = setInterval(() => void this.#keepUp(), upkeepIntervalMs);
  }

  async #openBarrier(replica: Replica): Promise<Barrier> {
    const barrier = await Barrier.open({
      store: replica,
      seal: this.#seal,
      valuesWritten: () => replica.status().valuesWritten,
      now: Date.now,
      rotation: {
        enabled: true,
        maxOperations: this.config.barrier_rotation.max_operations,
        intervalMs: this.config.barrier_rotation.interval,
      },
    });
    barrier.onStateChange(({ sealed, reason }) => {
      this.#sealChanges += 1;
      if (sealed) {
        if (this.#service !== undefined) this.#log.warn({ reason }, 'sealed');
        this.#endService();
      } else {
        this.#loading = this.#load(barrier);
      }
    });
    return barrier;
  }

  /** Opens a static seal. One that is static in the data or in the configuration only is told as an error: it would stay sealed for ever. */
  async #autoUnseal(): Promise<void> {
    const { barrier } = this.#requireMember();
    const isStatic = this.#seal.type === 'static' || barrier.sealStatus.type === 'static';
    if (!barrier.state.initialized || !isStatic) return;
    await barrier.autoUnseal();
    await this.#loading;
  }

  async #load(barrier: Barrier): Promise<void> {
    const change = this.#sealChanges;
    try {
      const mounts = await readMounts(barrier.store);
      const { store } = barrier;
      const managedKeys = managedKeysOf(store, this.config.pkcs11_libraries);
      const engines = await openEngines(store, mounts, managedKeys);
      if (change !== this.#sealChanges) {
        for (const engine of engines.values()) engine.close();
        managedKeys.close();
        return;
      }
      const policies = new Policies({ store });
      const tokens = new Tokens({ store, policies, now: Date.now });
      const registry = new TokenRegistry({ store, tokens, policies, now: Date.now });
      this.#service = { tokens, policies, registry, engines, mounts, managedKeys, sinceMs: performance.now() };
      this.#activeSince = new Date();
      this.#log.info('unsealed');
    } catch (error) {
      if (change !== this.#sealChanges) return;
      this.#log.error(
        { reason: error instanceof Error ? error.message : String(error) },
        'what serves could not be loaded; the node seals itself',
      );
      barrier.seal();
    }
  }

  #endService(): void {
    const service = this.#service;
    this.#service = undefined;
    service?.tokens.close();
    service?.policies.close();
    for (const engine of service?.engines.values() ?? []) engine.close();
    service?.managedKeys.close();
  }

  async #keepUp(): Promise<void> {
    if (this.#atUpkeep) return; // a long round is not joined by another
    this.#atUpkeep = true;
    await this.upkeep().finally(() => {
      this.#atUpkeep = false;
    });
  }

  /** What the active node does from time to time; nothing while it is not active. */
  async upkeep(): Promise<void> {
    if (this.#service === undefined || !this.active || this.#member === undefined) return;
    await keepUp({ service: this.#service, barrier: this.#member.barrier, log: this.#log, isActive: () => this.active });
  }
}

/** One engine for each mount, by its path. */
async function openEngines(
  store: Store,
  mounts: readonly Mount[],
  managed: TokenManagedKeys,
): Promise<ReadonlyMap<string, TransitEngine>> {
  const engines = new Map<string, TransitEngine>();
  for (const { path, id, ciphertextPrefix } of mounts) {
    // No mount lists managed keys yet: it may use those that are for any mount.
    const managedKeys = managed.forMount(() => []);
    const engine = new TransitEngine({ store, mountId: id, ciphertextPrefix, now: Date.now, managedKeys });
    engines.set(path, engine);
    await engine.open();
  }
  return engines;
}
