import { setTimeout as pause } from 'node:timers/promises';
import { AppliedIndex, type Cluster, type Forwarder, type Storage } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import { isFresh } from '@transitd/health';
import { indexValue } from '@transitd/http';
import type { NodeObserver } from '@transitd/process';
import type { LogIndex, Term } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';

/** From where a request may be answered: as the active node, or from a replica that is fresh enough. */
export type ReadRole = 'active' | 'reader';

/** How often it is looked at who leads. */
const lookMs = 10;

/** How long a request waits for the state that its caller has seen elsewhere (decision 25). */
const reachedWithinMs = 1000;

export interface ReadEligibilityParts {
  readonly config: Config;
  readonly serves: () => boolean;
  readonly storage: () => Storage | undefined;
  readonly cluster: () => Cluster | undefined;
  readonly observer: NodeObserver;
}

/** By what state of the cluster a request may be answered here, and what becomes of it where it may not. */
export class ReadEligibility {
  readonly #parts: ReadEligibilityParts;

  constructor(parts: ReadEligibilityParts) {
    this.#parts = parts;
  }

  /** Unsealed and loaded, with records that were not shown to be others than the active node's. */
  get #serves(): boolean {
    return this.#parts.serves() && this.#parts.cluster()?.differs !== true;
  }

  /** Leads, has applied an entry of its term, and serves. */
  get active(): boolean {
    return this.#serves && (this.#parts.storage()?.driver.status().ready ?? false);
  }

  /** Active, as far as this process can know: one that stood still is asked before it has learnt that another one leads. */
  get activeForCertain(): boolean {
    return this.active && (this.#parts.storage()?.isAwake() ?? false);
  }

  /**
   * Whether a request may be answered from this node's own state at this very moment: as the active node under a lease, or as a
   * performance standby whose newest echo is fresh (decision 49).
   */
  get readRole(): ReadRole | undefined {
    if (!this.#serves) return undefined;
    if (this.active && this.#parts.storage()?.holdsLease() === true) return 'active';
    const { appliedSentMs } = this;
    const { cluster_heartbeat_interval: intervalMs } = this.#parts.config;
    return appliedSentMs !== undefined && isFresh(appliedSentMs, intervalMs, performance.now()) ? 'reader' : undefined;
  }

  /** When the newest answered echo was sent that shows this node's state to be fresh; undefined where it may serve nothing from it. */
  get appliedSentMs(): number | undefined {
    const [cluster, storage] = [this.#parts.cluster(), this.#parts.storage()];
    if (!this.#parts.config.performance_standby || storage === undefined || cluster?.agrees !== true) return undefined;
    const sentMs = cluster.heartbeats.appliedSentMs(storage.driver.status().appliedIndex);
    return sentMs !== undefined && sentMs > storage.clockJumpedMs() ? sentMs : undefined;
  }

  get clusterId(): string | undefined {
    return this.#parts.storage()?.driver.status().clusterId;
  }

  /**
   * Asks the other nodes whether this one still leads; if so, its state is what was acknowledged anywhere before the call.
   * @throws StoreError `busy` while the state store hangs: entries that may take rights away are committed and not applied
   */
  async leads(): Promise<boolean> {
    try {
      await this.#parts.storage()?.replica.fresh();
      return this.active;
    } catch (error) {
      if (error instanceof StoreError && error.code !== 'busy') return false;
      throw error;
    }
  }

  /**
   * Serves, and leads as far as it knows, ready or not, or is being elected (a quorum would vote for a candidate, or the leader before it has
   * transferred the leadership): there is nobody to forward requests to.
   */
  get mayLead(): boolean {
    const role = this.#parts.storage()?.driver.status().role;
    return this.#serves && (role === 'leader' || role === 'candidate');
  }

  /**
   * Waits at most a second until a node that is being elected, or was elected a moment ago, is ready, and answers whether it is the active
   * node: by its lease, or because a quorum says so when asked.
   */
  async begins(): Promise<boolean> {
    for (const endMs = performance.now() + reachedWithinMs; this.mayLead && performance.now() < endMs; await pause(lookMs))
      if (this.active) return this.readRole === 'active' || (await this.leads());
    return false;
  }

  /** Whether a later term than this one has an active node, or gets it within two election timeouts and a second. */
  async isLedAfter(before: Term): Promise<boolean> {
    const endMs = performance.now() + 2 * this.#parts.config.raft.election_timeout + reachedWithinMs;
    for (; performance.now() < endMs; await pause(lookMs)) {
      const status = this.#parts.storage()?.driver.status();
      if (status === undefined) return false;
      const isElsewhere = status.leader !== 0 && status.leader !== status.nodeId;
      if (status.term > before && (isElsewhere || this.active)) return true;
    }
    return false;
  }

  /** Whether this node has applied everything up to `index`, or does so within a second. */
  async reached(index: LogIndex): Promise<boolean> {
    const storage = this.#parts.storage();
    return storage !== undefined && new AppliedIndex(storage.replica).reached(index, reachedWithinMs);
  }

  /** Whether there is a way by which requests can be handed to another node. */
  get forwards(): boolean {
    return this.#parts.cluster() !== undefined;
  }

  /** Hands a request to the active node. @see Forwarder */
  async forward(...[req, res, options]: Parameters<Forwarder['forward']>): Promise<number> {
    const forwarder = this.#parts.cluster()?.forwarder;
    if (forwarder === undefined) throw new StoreError('not_leader', 'this node is not the active one');
    const { observer } = this.#parts;
    const begunMs = performance.now();
    try {
      const status = await forwarder.forward(req, res, options);
      observer.forwarded(performance.now() - begunMs);
      return status;
    } catch (error) {
      observer.forwardFailed();
      throw error;
    }
  }

  /**
   * What a request has changed is in force: unless it only `adds`, no node serves a state from before it any more. Answers with the
   * header that names this state.
   */
  async settled({ adds }: { readonly adds: boolean }): Promise<string | undefined> {
    const storage = this.#parts.storage();
    if (storage === undefined) return undefined;
    const { appliedIndex, clusterId } = storage.driver.status();
    if (!adds) await this.#parts.cluster()?.standbys.confirmed(appliedIndex);
    return indexValue(clusterId, appliedIndex);
  }
}
