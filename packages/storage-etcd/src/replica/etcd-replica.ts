import { randomBytes } from 'node:crypto';
import { type Clock, systemClock } from '@transitd/process';
import {
  type Changes,
  type Command,
  type CommitResult,
  decodeCommand,
  encodeCommand,
  type FeatureLevel,
  type LevelRange,
  type PathPage,
  type RangePage,
  type RangeQuery,
  type Replica,
  type ReplicaStatus,
  type StoredRecord,
  StoreError,
  supportedLevels,
  type UnsupportedLevel,
} from '@transitd/storage-fsm';
import { CommitOrder } from '../commit/commit-order.ts';
import {
  type EtcdCommand,
  isReserved,
  isStaged,
  mustBeStaged,
  type Plan,
  planCommit,
  reservation,
  unpackingOf,
} from '../commit/plan.ts';
import { type Keys, keysBelow } from '../copy/keys.ts';
import { pathsPage, recordsPage } from '../copy/pages.ts';
import type { Etcd, EtcdRow, EtcdTxnAnswer } from '../etcd.ts';
import { ActiveRole, nodeIdOf, notActive } from './active-role.ts';
import { ActiveWrites, isDone } from './active-writes.ts';
import { LevelGuard } from './level-guard.ts';
import { openFeed } from './open-feed.ts';
import { Registration } from './registration.ts';
import { type ReplicaState, stateOf } from './replica-state.ts';
import { Restores } from './restores.ts';
import type { StateFeed } from './state-feed.ts';

/** Values that a node reserves at once. A node that stops wastes the rest of its range, so the count of values is an upper bound. */
const reservedAtOnce = 65_536;

export interface EtcdReplicaOptions {
  readonly etcd: Etcd;
  /** Path below which all keys of this cluster are. Two clusters must not have prefixes of which one begins with the other. */
  readonly prefix: string;
  readonly nodeId: number;
  /** Time after which a silent active node is replaced. */
  readonly leaseSeconds?: number;
  /** Interval of the active node's heartbeats, which show the other nodes that their watches still work. */
  readonly heartbeatMs?: number;
  /** @see ActiveRoleOptions.holdMs */
  readonly holdMs?: number;
  readonly retryMs?: number;
  /** Longest wait for this node's watch. */
  readonly timeoutMs?: number;
  readonly clock?: Clock;
  /** Whether this node takes the active role while no node has it; can be changed later. */
  readonly mayLead?: boolean;
  /** The feature levels that this program supports. */
  readonly levels?: LevelRange;
  /** The cluster has been raised to a level that this program does not support: this node must end. Called once. */
  readonly onUnsupported?: (error: UnsupportedLevel) => void;
  /** Reports a fault of etcd after which this node tries again. */
  readonly onFault?: (error: Error) => void;
}

/** A replica whose consensus is an etcd cluster. Its index and its revisions are revisions of etcd, so they rise with gaps. */
export class EtcdReplica implements Replica {
  readonly #etcd: Etcd;
  readonly #keys: Keys;
  readonly #feed: StateFeed;
  readonly #role: ActiveRole;
  readonly #registration: Registration;
  readonly #writes: ActiveWrites;
  readonly #restores: Restores;
  readonly #observers = new Set<() => void>();
  readonly #order = new CommitOrder();
  readonly #nodeId: number;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  /** Number of values that this node has reserved and not written yet. */
  #unused = 0;
  /** Ends with the last reservation of values; the next one waits for it. */
  #reserving: Promise<void> = Promise.resolve();
  readonly #level: LevelGuard;
  #isClosed = false;

  private constructor(options: Required<EtcdReplicaOptions>, keys: Keys, feed: StateFeed) {
    // First, because it throws if this node must not run.
    this.#level = new LevelGuard({
      ...{ feed, prefix: options.prefix, levels: options.levels },
      onUnsupported: (error) => {
        this.#role.mayLead = false;
        this.#registration.set(undefined); // so it serves nothing as a standby
        options.onUnsupported(error);
      },
    });
    this.#etcd = options.etcd;
    this.#keys = keys;
    this.#feed = feed;
    this.#nodeId = options.nodeId;
    this.#timeoutMs = options.timeoutMs;
    this.#clock = options.clock;
    const onChange = (): void => {
      for (const observer of [...this.#observers]) observer();
    };
    this.#registration = new Registration({ ...options, key: keys.node(options.nodeId), onEnded: onChange });
    this.#role = new ActiveRole({ ...options, keys, feed, prepare: () => this.#prepare(), onChange }, options.mayLead);
    const parts = { etcd: this.#etcd, keys, feed, role: this.#role };
    this.#writes = new ActiveWrites({ ...parts, timeoutMs: this.#timeoutMs });
    this.#restores = new Restores({
      ...{ ...parts, writes: this.#writes, order: this.#order, newAttempt },
      onSwap: () => {
        this.#unused = 0;
      },
    });
  }

  /**
   * Reads the whole state below the prefix; creates the cluster if the prefix is empty.
   * @throws EtcdError, CopyFault, TypeError, UnsupportedLevel
   */
  static async open(options: EtcdReplicaOptions): Promise<EtcdReplica> {
    const { heartbeatMs = 1000, retryMs = 250, onFault = () => undefined } = options;
    const all = {
      mayLead: true,
      levels: supportedLevels,
      onUnsupported: () => undefined,
      leaseSeconds: 10,
      holdMs: 3000,
      timeoutMs: 10_000,
      clock: systemClock,
      ...options,
      heartbeatMs,
      retryMs,
      onFault,
    };
    const keys = keysBelow(options.prefix);
    const feed = await openFeed({ etcd: options.etcd, keys, retryMs, onFault, idleMs: 3 * heartbeatMs }, all.levels.newest);
    try {
      return new EtcdReplica(all, keys, feed);
    } catch (error) {
      await feed.close();
      throw error;
    }
  }

  async get(path: string): Promise<StoredRecord | undefined> {
    const record = this.#feed.copy.get(path);
    return record && { value: Buffer.from(record.value), revision: record.revision };
  }

  async range(query: RangeQuery): Promise<RangePage> {
    return recordsPage(this.#feed.copy, query);
  }

  async paths(query: RangeQuery): Promise<PathPage> {
    return pathsPage(this.#feed.copy, query);
  }

  watch(prefix: string, listener: (changes: Changes) => void): () => void {
    return this.#feed.watch(prefix, listener);
  }

  /** Every acknowledged commit has written the marker, so the copy is fresh once it contains the newest marker. */
  async fresh(): Promise<void> {
    try {
      const { active, marker } = await this.#newest();
      await this.#feed.reached(Math.max(marker?.modRevision ?? 0, active?.modRevision ?? 0), this.#timeoutMs);
    } catch (error) {
      if (this.#isClosed) throw new StoreError('stopped', 'this node is stopping');
      throw new StoreError('not_leader', 'etcd does not answer, or this node is behind it', { cause: error });
    }
  }

  async commit(command: Command): Promise<CommitResult> {
    // Checks the command as Raft's store does, and keeps no reference to the caller's bytes, which the caller may wipe.
    const own = decodeCommand(encodeCommand(command));
    if ('replication' in own) throw new TypeError('the store in etcd supports no replication');
    if (this.#isClosed) throw new StoreError('stopped', 'this node is stopping');
    if ('restore' in own) return this.#restores.apply(own.restore);
    // A raise touches no path: it waits for all others.
    const leave = await this.#order.enter('raise' in own || mustBeStaged(own, this.#keys) ? 'all' : own);
    const settled = this.#commit(own);
    // After a staged commit nobody else may commit until its records are at their keys.
    void settled
      .then(() => this.#unpack())
      .then(leave, () => {
        if (this.#feed.copy.staged !== undefined) this.#role.resign(); // the next active node unpacks
        leave();
      });
    return settled;
  }

  status(): ReplicaStatus {
    const { copy } = this.#feed;
    const { revision } = copy.marker;
    const isActive = this.#role.activeRevision !== undefined;
    const isCandidate = this.#role.mayLead && copy.active === undefined;
    return {
      clusterId: copy.cluster,
      nodeId: this.#nodeId,
      role: isActive ? 'leader' : isCandidate ? 'candidate' : 'follower',
      ready: this.#role.isReady,
      term: copy.active?.createRevision ?? 0,
      leader: copy.active === undefined ? 0 : nodeIdOf(copy.active.owner),
      lastIndex: revision,
      commitIndex: revision,
      appliedIndex: revision,
      flushedIndex: revision,
      valuesWritten: copy.reserved - this.#unused,
      diskLow: false,
    };
  }

  /** Whether a read now is linearizable because no other node can have become active. */
  holdsLease(): boolean {
    return this.#clock.nowMs() < this.leaseEndMs;
  }

  /** Until when reads are linearizable; negative infinity if they are not. */
  get leaseEndMs(): number {
    return this.#role.leaseEndMs;
  }

  /**
   * Reads the index of the newest commit of any node. A node whose applied index is as high has everything that was acknowledged before
   * the call.
   * @throws EtcdError, CopyFault
   */
  async newestIndex(): Promise<number> {
    return (await this.#newest()).marker?.modRevision ?? 0;
  }

  /** Name of the restore attempt that made this state; undefined if it was never replaced. */
  get restoredBy(): string | undefined {
    return this.#feed.copy.restoredBy || undefined;
  }

  /** The level of the cluster. */
  get featureLevel(): FeatureLevel {
    return this.#feed.copy.level.level;
  }

  /** Whether this node takes the active role while no node has it. False gives the role up. */
  set mayLead(mayLead: boolean) {
    this.#role.mayLead = mayLead && !this.#level.isUnsupported;
  }

  /** Gives the active role up, and leaves it to other nodes for this time. */
  yieldFor(ms: number): void {
    this.#role.yieldFor(ms);
  }

  /** The records of all nodes that are known, this one included, by their ids. */
  get nodes(): ReadonlyMap<number, Uint8Array> {
    return this.#feed.copy.nodes;
  }

  /** Makes this node known to the others by this record; undefined ends that. */
  register(record: Uint8Array | undefined): void {
    this.#registration.set(record);
  }

  /** Until when every node that has seen the newest commit knows this node; negative infinity if some do not. */
  get registeredUntilMs(): number {
    return this.nodes.has(this.#nodeId) ? this.#registration.heldUntilMs(this.#feed.copy.revision) : Number.NEGATIVE_INFINITY;
  }

  /** Returns all records as of one commit. */
  state(): ReplicaState {
    return { ...stateOf(this.#feed.copy), valuesWritten: this.status().valuesWritten };
  }

  /** Deletes what ended restores have left, but not the restore that is `underWay`. @throws StoreError */
  clearRestores(underWay?: string): Promise<void> {
    return this.#restores.clear(underWay);
  }

  /**
   * Calls `observer` when the active role, the known nodes or the state may have changed; returns a function that ends that. A role or a
   * registration that this node ends is reported before etcd learns of that.
   */
  observe(observer: () => void): () => void {
    this.#observers.add(observer);
    const end = this.#feed.observe(observer);
    return () => {
      this.#observers.delete(observer);
      end();
    };
  }

  /** Resolves when this node first serves as the active one; rejects when it stops before. */
  get leads(): Promise<void> {
    return this.#role.leads;
  }

  /** Ends the role of the active node, so that another one takes it at once. The caller closes its {@link Etcd}. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.#role.close(), this.#registration.close(), this.#feed.close()]); // the role may wait for the feed
  }

  /**
   * Reads the active key and the marker at one revision: they are neighbors, but for the id of the cluster. The role ends if another node
   * has it, or none.
   * @throws EtcdError, CopyFault
   */
  async #newest(): Promise<{ readonly active: EtcdRow | undefined; readonly marker: EtcdRow | undefined }> {
    const { active, marker } = this.#keys;
    const wasActive = this.#role.activeRevision !== undefined;
    const before = this.#feed.copy.marker;
    const { rows } = await this.#etcd.range({ key: active, end: `${marker}\0` });
    const activeRow = rows.find(({ key }) => key === active);
    const markerRow = rows.find(({ key }) => key === marker);
    if (wasActive) this.#role.confirm(activeRow);
    this.#feed.requireHistory(before, markerRow);
    return { active: activeRow, marker: markerRow };
  }

  async #commit(command: EtcdCommand): Promise<CommitResult> {
    const values = 'raise' in command ? 0 : command.writes.filter(({ value }) => value !== null).length;
    if (!this.#role.isReady) throw notActive();
    await this.#reserve(values);
    this.#unused -= values;
    for (;;) {
      const activeRevision = await this.#role.settledRevision();
      // A staged transaction of unknown outcome took effect. The next active node, perhaps this one, writes it to its records first.
      if (this.#feed.copy.staged !== undefined) this.#role.resign();
      if (!this.#role.isReady) throw notActive();
      const plan = planCommit({ command, copy: this.#feed.copy, keys: this.#keys, attempt: newAttempt() });
      const answer = await this.#carryOut(plan, activeRevision);
      if (!answer.succeeded) {
        if (await this.#role.staysActive(activeRevision, answer)) continue; // etcd did nothing, so it may be asked again
        throw notActive();
      }
      await this.#writes.seen(answer.revision);
      const done = isDone(answer);
      if (plan.kind === 'staged' && !done) throw new StoreError('busy', 'another commit came between; commit again');
      const committed = done && !(plan.kind === 'direct' && plan.isConflict);
      return { outcome: committed ? 'committed' : 'conflict', index: answer.revision, revision: answer.revision };
    }
  }

  /** Only the last transaction of a staged plan takes effect; chunks of a plan that fails are deleted by the next active node. */
  async #carryOut(plan: Plan, activeRevision: number): Promise<EtcdTxnAnswer> {
    for (const chunk of plan.kind === 'staged' ? plan.chunks : []) {
      const answer = await this.#writes.send(activeRevision, { compares: [], success: [chunk], failure: [] });
      if (!answer.succeeded) return answer;
    }
    return this.#writes.send(activeRevision, plan.body);
  }

  /** Reserves a range of values if the present one is too short for this commit. */
  #reserve(values: number): Promise<void> {
    const reserved = this.#reserving.then(async () => {
      if (this.#unused >= values) return;
      await this.#role.settledRevision(); // a restore of unknown outcome may have raised the count
      const more = Math.max(reservedAtOnce, values);
      const parts = { copy: this.#feed.copy, keys: this.#keys };
      await this.#writes.write([reservation(this.#keys, parts.copy.reserved + more)], [isReserved(parts)]);
      this.#unused += more;
    });
    this.#reserving = reserved.catch(() => undefined);
    return reserved;
  }

  /** Brings the state in order for a node that has just become active: nothing of its predecessors is half done. */
  async #prepare(): Promise<void> {
    this.#unused = 0;
    await this.#unpack();
    if (this.#feed.copy.hasChunks)
      await this.#writes.write([{ kind: 'delete', key: this.#keys.chunks, end: this.#keys.chunksEnd }]);
    await this.#reserve(1);
  }

  async #unpack(): Promise<void> {
    const { staged } = this.#feed.copy;
    if (staged === undefined || this.#role.activeRevision === undefined) return;
    const compares = [isStaged(staged, this.#keys)];
    for (const body of unpackingOf(staged, this.#feed.copy.space, this.#keys, newAttempt))
      await this.#writes.write(body, compares);
  }
}

const newAttempt = (): string => randomBytes(8).toString('hex');
