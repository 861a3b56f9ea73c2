import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '@transitd/process';
import { StoreError } from '@transitd/storage-fsm';
import type { Keys } from '../copy/keys.ts';
import { type Etcd, EtcdError, type EtcdRow, type EtcdTxnAnswer } from '../etcd.ts';
import { LeaseEnd } from '../lease/lease-end.ts';
import { OtherHeartbeats } from './other-heartbeats.ts';
import type { StateFeed } from './state-feed.ts';

export interface ActiveRoleOptions {
  readonly etcd: Etcd;
  readonly keys: Keys;
  readonly feed: StateFeed;
  readonly nodeId: number;
  readonly leaseSeconds: number;
  /** Interval of the heartbeats of the active node. */
  readonly heartbeatMs: number;
  /**
   * How long a new active node waits after it saw the last heartbeat of its predecessor; the same on all nodes of a cluster. The
   * predecessor serves reads only for so long after it sent that heartbeat that it has stopped by then.
   */
  readonly holdMs: number;
  readonly retryMs: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Brings the state in order before this node serves as the active one. A rejection gives the role up. */
  readonly prepare: () => Promise<void>;
  readonly onFault: (error: Error) => void;
  /** The role was gained, is ready, or was lost. */
  readonly onChange: () => void;
}

/** Returns the owner of the active key for one run of a node. Two runs of one node have different owners. */
const newOwner = (nodeId: number): string => `${nodeId} ${randomBytes(8).toString('hex')}`;

/** Returns the id of the node that an owner of the active key names. */
export const nodeIdOf = (owner: string): number => Number(/^\d+/.exec(owner)?.[0] ?? 0);

interface Held {
  readonly lease: bigint;
  /** Aborted when the role is lost. */
  readonly lost: AbortController;
  /** Revision at which this node became active. */
  readonly since: number;
  /** Revision of the active key, which every write of the role compares. */
  activeRevision: number;
  /** Send time of the newest request whose answer showed that this node had the role. */
  confirmedMs: number;
  /** Whether the copy contains everything that earlier active nodes wrote, and none of them serves reads: only then this node serves. */
  isPrepared: boolean;
}

/**
 * Makes this node the active one while no other is. The key of the active node belongs to a lease, so etcd deletes it when the node is
 * silent. Two nodes may believe for a moment that they are active; the writes of the older one fail, because they compare the key.
 *
 * The time to live of the lease does not say how long the active node may serve reads: an etcd leader that has lost its quorum, or whose
 * disk hangs, still renews leases that its successor has ended (etcd issue 15247). The heartbeats say it instead. They are commits of etcd
 * that compare the active key, so each one proves that no other node was active after it was sent. A new active node waits until the last
 * heartbeat of its predecessor is so old that the predecessor serves no reads.
 */
export class ActiveRole {
  readonly #options: ActiveRoleOptions;
  readonly #leaseEnd = new LeaseEnd();
  readonly #closing = new AbortController();
  /** Unlike the node id, it tells two runs of one node apart. */
  readonly #owner: string;
  #held: Held | undefined;
  readonly #others: OtherHeartbeats;
  /** Whether a write that compared the present revision had an unknown outcome. */
  #isSuspect = false;
  #mayLead: boolean;
  /** Until then this node leaves the role to others. */
  #yieldsUntilMs = Number.NEGATIVE_INFINITY;
  /** Called when this node may take the role again. */
  readonly #wakes = new Set<() => void>();
  #renewal: Promise<void> | undefined;
  readonly #leads = Promise.withResolvers<void>();
  readonly #running: Promise<void>;
  readonly #unobserve: () => void;

  /** @param mayLead - @see ActiveRole.mayLead */
  constructor(options: ActiveRoleOptions, mayLead = true) {
    this.#options = options;
    this.#mayLead = mayLead;
    this.#owner = newOwner(options.nodeId);
    this.#others = new OtherHeartbeats(this.#owner);
    this.#noteHeartbeat();
    this.#unobserve = options.feed.observe(() => {
      this.#noteHeartbeat();
      this.#compareWithCopy();
    });
    this.#leads.promise.catch(() => undefined); // a rejection reaches the callers that await this promise; there may be none
    this.#running = this.#run();
  }

  /** Resolves when this node first serves as the active one; rejects when it stops before. */
  get leads(): Promise<void> {
    return this.#leads.promise;
  }

  /** Revision that the writes of the active node compare; undefined while this node is not active. */
  get activeRevision(): number | undefined {
    return this.#held?.activeRevision;
  }

  /** Revision at which this node became active; undefined while it is not. */
  get since(): number | undefined {
    return this.#held?.since;
  }

  /** Whether this node is active, and its copy contains everything that earlier active nodes wrote. */
  get isReady(): boolean {
    return this.#held?.isPrepared === true;
  }

  /** Whether this node takes the role while no node has it. False gives the role up. */
  set mayLead(mayLead: boolean) {
    this.#mayLead = mayLead;
    if (!mayLead) this.resign();
    else for (const wake of [...this.#wakes]) wake();
  }

  get mayLead(): boolean {
    return this.#mayLead;
  }

  /** Gives the role up, and leaves it to other nodes for this time. */
  yieldFor(ms: number): void {
    this.#yieldsUntilMs = this.#options.clock.nowMs() + ms;
    this.resign();
  }

  /** Until when no other node can serve as the active one, by this node's clock; negative infinity while this node cannot either. */
  get leaseEndMs(): number {
    return this.isReady ? this.#leaseEnd.ms : Number.NEGATIVE_INFINITY;
  }

  /** A write had an unknown outcome: it might take effect later, unless the active key is written again before. */
  suspect(): void {
    this.#isSuspect = true;
  }

  /**
   * Returns the revision that a write compares. After an unknown outcome it first writes the active key again: then every earlier write
   * has either taken effect, and is in the copy, or never will. A write does not wait for that until etcd is back.
   * @throws StoreError `not_leader`
   */
  async settledRevision(): Promise<number> {
    const held = this.#held;
    if (this.#isSuspect) await this.#settle();
    if (held === undefined || this.#held !== held) throw notActive(); // a write that was planned before the role was lost
    return held.activeRevision;
  }

  /** Call it when etcd refused a write because of its revision. @returns whether this node is still active, with a newer revision */
  async staysActive(activeRevision: number, answer: EtcdTxnAnswer): Promise<boolean> {
    const held = this.#held;
    if (held === undefined) return false;
    const row = answer.answers[0]?.rows?.[0];
    if (row === undefined || Buffer.from(row.value).toString() !== this.#owner) {
      this.#lose(held);
      return false;
    }
    if (held.activeRevision === activeRevision) held.activeRevision = row.modRevision;
    await this.#options.feed.reached(held.activeRevision, this.#options.timeoutMs);
    return true;
  }

  /** Ends the role unless this row, read linearizably, names this node. @param row - of the active key; undefined if it is absent */
  confirm(row: EtcdRow | undefined): void {
    const held = this.#held;
    if (held === undefined || (row !== undefined && Buffer.from(row.value).toString() === this.#owner)) return;
    this.#lose(held);
  }

  /** Gives the role up, for example because the state could not be brought in order. */
  resign(): void {
    if (this.#held !== undefined) this.#lose(this.#held);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#leads.reject(new StoreError('stopped', 'this node is stopping'));
    this.#unobserve();
    this.resign();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    const { retryMs, onFault } = this.#options;
    while (!signal.aborted) {
      try {
        await this.#vacant();
        await delay(Math.max(0, this.#yieldsUntilMs - this.#options.clock.nowMs()), undefined, { signal });
        if (this.#mayLead && this.#options.feed.copy.active === undefined) await this.#campaign();
      } catch (error) {
        if (!signal.aborted) onFault(error instanceof Error ? error : new Error(String(error)));
      }
      await delay(retryMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Resolves when the copy shows no active node, and this node may lead. */
  async #vacant(): Promise<void> {
    const { feed } = this.#options;
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      if ((this.#mayLead && feed.copy.active === undefined) || this.#closing.signal.aborted) resolve();
    };
    const end = feed.observe(look);
    this.#wakes.add(look);
    this.#closing.signal.addEventListener('abort', look, { once: true });
    look();
    await promise;
    end();
    this.#wakes.delete(look);
    this.#closing.signal.removeEventListener('abort', look);
  }

  /** Resolves when this node is no longer active, or another was faster. */
  async #campaign(): Promise<void> {
    const { etcd, keys, feed, leaseSeconds, timeoutMs, clock, prepare } = this.#options;
    const { id: lease } = await etcd.grantLease(leaseSeconds);
    let held: Held | undefined;
    try {
      const [value, confirmedMs] = [Buffer.from(this.#owner), clock.nowMs()];
      const answer = await etcd.txn({
        // Only a node that knows the feature level may become active. So it holds for every write that compares the active key.
        compares: [
          { key: keys.active, modRevision: 0 },
          { key: keys.level, modRevision: feed.copy.level.modRevision },
        ],
        success: [{ kind: 'put', key: keys.active, value, lease }],
        failure: [],
      });
      if (!answer.succeeded || !this.#mayLead || this.#closing.signal.aborted) return;
      this.#isSuspect = false;
      const { revision } = answer;
      held = { lease, lost: new AbortController(), since: revision, activeRevision: revision, confirmedMs, isPrepared: false };
      this.#held = held;
      const kept = this.#keep(held);
      try {
        await feed.reached(held.activeRevision, timeoutMs);
        await this.#outlastPredecessor(held);
        await prepare();
        await this.#beat(held);
        held.isPrepared = this.#held === held;
        if (held.isPrepared) this.#leads.resolve();
        this.#options.onChange();
        await kept;
      } finally {
        this.#lose(held);
        await kept;
      }
    } finally {
      // Without `isPrepared` a predecessor may still serve reads.
      if (held?.isPrepared === true) await this.#announceEnd(held);
      // Also after an unknown outcome: the key cannot come into being, or stay, without its lease.
      await this.#revoke(lease);
    }
  }

  /** Ends the lease, so that others can take the role as soon as etcd can be reached again. This node can take no role before. */
  async #revoke(lease: bigint): Promise<void> {
    const { etcd, retryMs } = this.#options;
    const { signal } = this.#closing;
    for (;;) {
      try {
        return await etcd.revokeLease(lease);
      } catch (error) {
        if (signal.aborted || (error instanceof EtcdError && error.kind === 'refused')) return; // it has ended
        await delay(retryMs, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  /** Waits until no predecessor serves reads. The copy contains all heartbeats of predecessors, since their key is gone. */
  async #outlastPredecessor({ lost }: Held): Promise<void> {
    const waitMs = this.#others.seenMs + this.#options.holdMs - this.#options.clock.nowMs();
    if (waitMs > 0) await delay(waitMs, undefined, { signal: lost.signal }).catch(() => undefined);
  }

  /**
   * Tells the next active node that this node no longer serves reads, so that it need not wait. If the write is lost, the next active node
   * waits.
   */
  async #announceEnd({ activeRevision }: Held): Promise<void> {
    const { etcd, keys } = this.#options;
    const success = [
      { kind: 'delete', key: keys.active } as const,
      { kind: 'put', key: keys.heartbeat, value: new Uint8Array() } as const,
    ];
    await etcd
      .txn({ compares: [{ key: keys.active, modRevision: activeRevision }], success, failure: [] })
      .catch(() => undefined);
  }

  /** Keeps the lease, confirms the role, and shows all nodes that their watches go on, until the role is lost. */
  async #keep(held: Held): Promise<void> {
    const { leaseSeconds, heartbeatMs } = this.#options;
    await Promise.all([
      this.#repeat(held, (leaseSeconds * 1000) / 3, () => this.#keepAlive(held)),
      this.#repeat(held, heartbeatMs, () => this.#beat(held)),
    ]);
  }

  async #repeat({ lost }: Held, everyMs: number, action: () => Promise<void>): Promise<void> {
    const { signal } = lost;
    while (!signal.aborted) {
      await delay(everyMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await action().catch((error: Error) => this.#options.onFault(error));
    }
  }

  /** A node that gets no answers must not keep the lease: its requests may still reach etcd, and no other node could become active. */
  async #keepAlive(held: Held): Promise<void> {
    const { etcd, leaseSeconds, clock } = this.#options;
    if (clock.nowMs() - held.confirmedMs > leaseSeconds * 1000) return this.#lose(held);
    const ttlSeconds = await etcd.keepAlive(held.lease);
    if (ttlSeconds <= 0) this.#lose(held);
  }

  /** A heartbeat of unknown outcome does no harm later, nor one that is sent twice. */
  async #beat(held: Held): Promise<void> {
    const { etcd, keys, feed, holdMs, clock } = this.#options;
    const { activeRevision } = held;
    const before = feed.copy.marker;
    const sentMs = clock.nowMs();
    const value = Buffer.from(this.#owner);
    const answer = await etcd.txn({
      compares: [{ key: keys.active, modRevision: activeRevision }],
      success: [
        { kind: 'put', key: keys.heartbeat, value },
        { kind: 'range', key: keys.marker },
      ],
      failure: [{ kind: 'range', key: keys.active }],
      mayRepeat: true,
    });
    if (this.#held !== held) return;
    if (answer.succeeded) feed.requireHistory(before, answer.answers[1]?.rows?.[0]); // a restored etcd may have the same active key
    if (answer.succeeded) {
      held.confirmedMs = sentMs;
      this.#leaseEnd.renewed({ sentMs, ttlSeconds: holdMs / 1000 });
    } else await this.staysActive(activeRevision, answer);
  }

  async #settle(): Promise<void> {
    const ended = new AbortController();
    const isLate = delay(this.#options.timeoutMs, true, { signal: ended.signal }).catch(() => true);
    try {
      while (this.#isSuspect && this.#held !== undefined) {
        this.#renewal ??= this.#rewriteKey(this.#held).finally(() => {
          this.#renewal = undefined;
        });
        if (await Promise.race([this.#renewal.then(() => false), isLate])) throw notActive();
      }
    } finally {
      ended.abort();
    }
  }

  async #rewriteKey(held: Held): Promise<void> {
    const { etcd, keys, feed, retryMs, timeoutMs, onFault } = this.#options;
    const value = Buffer.from(this.#owner);
    while (this.#held === held) {
      try {
        const answer = await etcd.txn({
          compares: [{ key: keys.active, modRevision: held.activeRevision }],
          success: [{ kind: 'put', key: keys.active, value, lease: held.lease }],
          failure: [{ kind: 'range', key: keys.active }],
        });
        if (answer.succeeded) held.activeRevision = answer.revision;
        else if (!(await this.staysActive(held.activeRevision, answer))) return;
        await feed.reached(held.activeRevision, timeoutMs);
        this.#isSuspect = false;
        return;
      } catch (error) {
        if (error instanceof EtcdError && error.kind !== 'unknown') this.#lose(held);
        onFault(error instanceof Error ? error : new Error(String(error)));
        await delay(retryMs, undefined, { signal: held.lost.signal }).catch(() => undefined);
      }
    }
  }

  #noteHeartbeat(): void {
    const { feed, clock } = this.#options;
    this.#others.note(feed.copy.heartbeat, clock.nowMs());
  }

  /** The lease has ended if the copy shows another active node, or none, at a revision after ours. */
  #compareWithCopy(): void {
    const { copy } = this.#options.feed;
    const held = this.#held;
    if (held !== undefined && copy.revision >= held.activeRevision && copy.active?.owner !== this.#owner) this.#lose(held);
  }

  #lose(held: Held): void {
    if (this.#held !== held) return;
    this.#held = undefined;
    this.#leaseEnd.ended();
    held.lost.abort();
    this.#options.onChange();
  }
}

export const notActive = (): StoreError => new StoreError('not_leader', 'this node is not the active node');
