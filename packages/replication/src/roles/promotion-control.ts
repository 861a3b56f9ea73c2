import { type ReplicationState, StoreError } from '@transitd/storage-fsm';
import { ReplicationError } from '../replication-error.ts';
import { fenceOf, type MonotonicClock } from './fence.ts';
import { type PromotionDecision, type PromotionRefusal, promotionOf, type ReportedPosition } from './promotion.ts';

/** Attempts at a promotion while the last entries of the primary still arrive. */
const attemptsMax = 5;
/** How often a promotion that waits for the fence checks that this node is still active. */
const checkMs = 250;

/** The newest heartbeat of the primary that a node has heard. */
export interface Heard extends ReportedPosition {
  readonly heardMs: number;
}

/** The decision that this cluster may accept writes that its primary does not have. */
export type Promote = PromotionDecision & { readonly kind: 'promote' };

/** A node of a cluster that may be promoted, as the control of promotions uses it. `Report` describes a promotion that was made. */
export interface PromotableCluster<Report extends object> {
  /** The term in which this node is the active one; undefined while it is not. */
  activeTerm(): number | undefined;
  state(): ReplicationState | undefined;
  readonly secondary: {
    /** While true, this node answers no heartbeats. */
    isPromoting: boolean;
    readonly lastHeard: Heard | undefined;
    /** When this node last answered a heartbeat. */
    readonly answeredMs: number | undefined;
  };
  /** Whether this secondary counts, as its primary knows: see {@link SecondaryCluster.counted}. */
  isCounted(): Promise<boolean>;
  /** Makes this cluster the primary. Returns undefined if entries of the primary have arrived since the decision. @throws StoreError */
  promote(decision: Promote, force: boolean): Promise<Report | undefined>;
  /** Ends replication on this cluster. Returns false if entries of the primary have arrived since the decision. @throws StoreError */
  leave(decision: Promote): Promise<boolean>;
  /** Called when a promotion begins to wait for the fence. */
  waits(waitMs: number): void;
  /** Resolves after this time. */
  delay(ms: number): Promise<void>;
}

interface PromotionSettings {
  /** The primary counts as alive if it was heard within this time. */
  readonly recentMs: number;
  readonly clock: MonotonicClock;
}

/**
 * Decides when this cluster may accept writes that its primary does not have, on its active node: as the next primary, or as a cluster that
 * has left the set.
 */
export class PromotionControl<Report extends object> {
  readonly #cluster: PromotableCluster<Report>;
  readonly #settings: PromotionSettings;
  #activeTerm: number | undefined;
  #activeSinceMs = Number.POSITIVE_INFINITY;
  #promoting: Promise<Report> | undefined;
  #leaving: Promise<true> | undefined;

  constructor(cluster: PromotableCluster<Report>, settings: PromotionSettings) {
    this.#cluster = cluster;
    this.#settings = settings;
  }

  /** Another node may have heard the primary before this one became active. */
  noteTerm(): void {
    const term = this.#cluster.activeTerm();
    if (term !== this.#activeTerm) this.#activeSinceMs = this.#settings.clock.nowMs();
    this.#activeTerm = term;
  }

  /**
   * Makes this cluster the primary. With a fence, waits first until the fence has closed, and answers no heartbeat in this time. A call
   * during the wait of another one gets the same result.
   * @throws ReplicationError `refused`, StoreError
   */
  async promote({ force }: { readonly force: boolean }): Promise<Report> {
    if (this.#leaving !== undefined) throw new ReplicationError('refused', 'this secondary is leaving the set');
    this.#promoting ??= this.#decided({ force, refusals, isPromotion: true }, (decision) =>
      this.#cluster.promote(decision, force),
    ).finally(() => {
      this.#promoting = undefined;
    });
    return this.#promoting;
  }

  /**
   * Ends replication on this secondary, which keeps its state and serves it as one of its own. The conditions, the wait and repeated calls
   * are those of a promotion: afterwards two clusters may accept writes under the same tokens.
   * @throws ReplicationError `refused`, StoreError
   */
  async leave({ force }: { readonly force: boolean }): Promise<void> {
    if (this.#promoting !== undefined) throw new ReplicationError('refused', 'this secondary is being promoted');
    const commit = async (decision: Promote) => (await this.#cluster.leave(decision)) || undefined;
    this.#leaving ??= this.#decided({ force, refusals: leaveRefusals, isPromotion: false }, commit).finally(() => {
      this.#leaving = undefined;
    });
    await this.#leaving;
  }

  /** Runs `commit` once the decision is made, and again if it returns undefined because entries of the primary have arrived. */
  async #decided<T>(
    { refusals: texts, ...asked }: { readonly force: boolean; readonly refusals: Refusals; readonly isPromotion: boolean },
    commit: (decision: Promote) => Promise<T | undefined>,
  ): Promise<T> {
    const { secondary } = this.#cluster;
    secondary.isPromoting = true;
    let isWaiting = false;
    try {
      for (let attempt = 0; attempt < attemptsMax; ) {
        if (this.#cluster.activeTerm() === undefined) throw new StoreError('not_leader', 'this node is not the active one');
        const decision = await this.#decision(asked);
        if (decision.kind === 'refuse') throw new ReplicationError('refused', texts[decision.reason]);
        if (decision.kind === 'wait') {
          if (!isWaiting) this.#cluster.waits(decision.waitMs);
          isWaiting = true;
          await this.#cluster.delay(Math.min(decision.waitMs, checkMs));
          continue;
        }
        attempt += 1;
        const result = await commit(decision);
        if (result !== undefined) return result;
      }
      throw new ReplicationError('refused', 'entries of the primary still arrive: try again');
    } finally {
      secondary.isPromoting = false;
    }
  }

  async #decision(asked: { readonly force: boolean; readonly isPromotion: boolean }): Promise<PromotionDecision> {
    const { recentMs, clock } = this.#settings;
    const isCounted = await this.#cluster.isCounted();
    const state = this.#cluster.state();
    if (state === undefined) return { kind: 'refuse', reason: 'not_secondary' };
    this.noteTerm();
    const { lastHeard, answeredMs } = this.#cluster.secondary;
    const sinceMs = (ms = Number.NEGATIVE_INFINITY): number => clock.nowMs() - Math.max(ms, this.#activeSinceMs);
    return promotionOf({
      ...{ ...asked, state, recentMs, fence: fenceOf(state), isCounted, primary: lastHeard },
      silentMs: sinceMs(lastHeard?.heardMs),
      unansweredMs: sinceMs(answeredMs),
    });
  }
}

type Refusals = Readonly<Record<PromotionRefusal, string>>;

const refusals: Refusals = {
  not_secondary: 'this cluster is not a secondary',
  no_state: 'this secondary has not received the state of its primary yet',
  primary_alive:
    'the primary was heard a moment ago: demote it first, or promote with force and lose the writes that it has not sent',
  behind:
    'the primary was demoted at a later position: wait until this secondary has it, or promote with force and lose the rest',
  misses_restore:
    'the primary was restored from a backup, and this secondary still has the state from before: ' +
    'wait until it has received the restored state, or promote with force and continue with the state from before',
  superseded: 'another cluster of the set was promoted after this one: promote with force to give up its writes',
  not_counted:
    'this secondary has not caught up with its primary yet, which may have used key versions that it lacks, and may still accept writes: ' +
    'let it connect and catch up once, or promote with force',
};

const leaveRefusals: Refusals = {
  ...refusals,
  primary_alive:
    'the primary was heard in the last ten seconds: revoke this secondary there and try again, or leave with force while it goes on serving',
  behind:
    'the primary was demoted at a later position: wait until this secondary has it, or leave with force and without the rest',
  misses_restore:
    'the primary was restored from a backup, and this secondary still has the state from before: ' +
    'wait until it has received the restored state, or leave with force and with the state from before',
  superseded: 'another cluster of the set was promoted after this one: leave with force and without its writes',
  not_counted:
    'this secondary has not caught up with its primary yet, whose fence may not wait for it, so both could accept writes: ' +
    'let it connect and catch up once, or leave with force',
};
