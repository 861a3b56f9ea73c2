import type { LogIndex, NodeId, Term } from '@transitd/raft-core';
import type { Pauses } from '../ports/pauses.ts';
import type { HeartbeatRequest } from './heartbeat-wire.ts';
import type { PermissionClock } from './permission-clock.ts';

/** A node's report about itself in a heartbeat. */
export interface StandbyReport extends Readonly<Omit<HeartbeatRequest, 'name' | 'intervalMs' | 'differs' | 'listIndex'>> {
  /** Fingerprint of the certificate that the node used. */
  readonly certificate: string;
}

export interface StandbysOptions {
  /** How long a node may serve after an answered heartbeat, by that node's clock. */
  readonly servesForMs: number;
  readonly clock: Pick<PermissionClock, 'nowMs' | 'leftMs'>;
  readonly pauses: Pick<Pauses, 'pause'>;
  /** Asks a node to confirm that it has applied `index`; resolves with its applied index. Any failure rejects. */
  readonly confirm: (id: NodeId, index: LogIndex) => Promise<LogIndex>;
}

interface Standby extends StandbyReport {
  readonly heardMs: number;
  /** When this node last answered a heartbeat that lets the standby serve. */
  readonly servingMs: number;
}

const confirmRetryMs = 50;
/** Before all that this process has seen. */
const never = Number.NEGATIVE_INFINITY;

/**
 * The active node's knowledge of the other nodes: it decides when none of them can serve an older state (decision 50). Each must
 * have confirmed that it applied the new state, or its permission to serve must have expired.
 */
export class Standbys {
  readonly #options: StandbysOptions;
  readonly #known = new Map<NodeId, Standby>();
  /** Indexes confirmed by nodes that have sent no heartbeat in this term. */
  readonly #confirmedWithoutHeartbeat = new Map<NodeId, LogIndex>();
  readonly #confirming = new Map<NodeId, Promise<void>>();
  /** Highest index that a caller waits for. */
  #waitedForIndex: LogIndex = 0;
  /** When this term began. Any node may have received permission to serve from the former leader just before this time. */
  #termStartMs = never;
  #others: () => readonly NodeId[] = () => [];
  /** The leader that this node follows or followed last; id 0 for none. */
  #followed: { readonly id: NodeId; readonly term: Term; readonly sinceMs: number } = { id: 0, term: 0, sinceMs: never };
  /**
   * The former leader, if it led for so long that any permission to serve that it got as a standby has expired; otherwise 0. It has lost
   * its lease too, so it serves nothing.
   */
  #formerLeader: NodeId = 0;

  constructor(options: StandbysOptions) {
    this.#options = options;
  }

  /** Records that `leader` leads. Any permission to serve that `leader` got as a standby was granted before now. */
  leaderFound(leader: NodeId, term: Term): void {
    if (this.#followed.term === term) return;
    this.#followed = { id: leader, term, sinceMs: this.#options.clock.nowMs() };
  }

  /**
   * Begins this node's term as leader. The former leader got no permission to serve after it was elected, so this node does not wait for a
   * leader that died. That holds no matter how many elections failed since: only a leader that committed an entry of its term answers
   * heartbeats, and this node's log would contain that entry.
   * @param others - the other members, and recently removed ones
   * @param termBefore - the term of the last entry before this node's term
   */
  termBegins(others: () => readonly NodeId[], termBefore: Term): void {
    const followed = this.#followed;
    const isOver = this.#leftMs(followed.sinceMs) < 0;
    this.#formerLeader = isOver && termBefore <= followed.term ? followed.id : 0;
    this.#known.clear();
    this.#confirmedWithoutHeartbeat.clear();
    this.#waitedForIndex = 0;
    this.#termStartMs = this.#options.clock.nowMs();
    this.#others = others;
  }

  /** Records a heartbeat of a standby. Call this before the heartbeat is answered, because the answer permits the standby to serve. */
  heartbeatReceived(id: NodeId, report: StandbyReport): void {
    const heardMs = this.#options.clock.nowMs();
    const servingMs = report.serves ? heardMs : (this.#known.get(id)?.servingMs ?? never);
    this.#known.set(id, { ...report, heardMs, servingMs });
  }

  /** Returns the newest report of a node in this term, and its age. */
  report(id: NodeId): (StandbyReport & { readonly agoMs: number }) | undefined {
    const known = this.#known.get(id);
    return known && { ...known, agoMs: this.#options.clock.nowMs() - known.heardMs };
  }

  /** Resolves when no node can serve a state from before `index`. */
  async confirmed(index: LogIndex): Promise<void> {
    this.#waitedForIndex = Math.max(this.#waitedForIndex, index);
    // A node removed in this term may still serve for a while.
    const ids = new Set([...this.#others(), ...this.#known.keys()]);
    await Promise.all([...ids].map((id) => this.#confirmedBy(id, index)));
  }

  /** Resolves when a node's permission to serve has expired. Call this only after the node's heartbeats are no longer answered. */
  async servingEnded(id: NodeId): Promise<void> {
    const leftMs = (): number => this.#leftMs(this.#grantedMs(id));
    while (leftMs() >= 0) await this.#options.pauses.pause(leftMs() + 1);
  }

  /**
   * Waits only for permissions to serve that were granted before this call. The answer to a later heartbeat has a commit index at or above
   * `index`, and a standby serves only once it has applied that.
   */
  async #confirmedBy(id: NodeId, index: LogIndex): Promise<void> {
    const grantedMs = this.#grantedMs(id);
    while (this.#leftMs(grantedMs) >= 0 && this.#appliedBy(id) < index) {
      let confirming = this.#confirming.get(id);
      if (confirming === undefined) {
        confirming = this.#confirm(id).finally(() => this.#confirming.delete(id));
        this.#confirming.set(id, confirming);
      }
      await Promise.race([confirming, this.#options.pauses.pause(this.#leftMs(grantedMs) + 1)]);
    }
  }

  /** One request serves all waiting callers; those that arrive while it is in flight share the next one. */
  async #confirm(id: NodeId): Promise<void> {
    const { confirm, pauses } = this.#options;
    const applied = await confirm(id, this.#waitedForIndex).catch(() => undefined);
    if (applied === undefined) return pauses.pause(confirmRetryMs);
    const known = this.#known.get(id);
    if (known !== undefined) this.#known.set(id, { ...known, appliedIndex: Math.max(known.appliedIndex, applied) });
    else this.#confirmedWithoutHeartbeat.set(id, applied);
  }

  #appliedBy(id: NodeId): LogIndex {
    return Math.max(this.#known.get(id)?.appliedIndex ?? 0, this.#confirmedWithoutHeartbeat.get(id) ?? 0);
  }

  /** Returns when this node or the former leader last let a node serve, at the latest; negative infinity if they did not. */
  #grantedMs(id: NodeId): number {
    const beforeTermMs = id === this.#formerLeader ? never : this.#termStartMs;
    return Math.max(beforeTermMs, this.#known.get(id)?.servingMs ?? never);
  }

  #leftMs(grantedMs: number): number {
    return this.#options.clock.leftMs(grantedMs, this.#options.servesForMs);
  }
}
