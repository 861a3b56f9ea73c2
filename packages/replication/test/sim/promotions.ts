import { isDeepStrictEqual } from 'node:util';
import type { SimClock, SimRandom } from '@transitd/raft-sim';
import { cursorOf, type ReplicationState, type ReplicationStep, StoreError, type Write } from '@transitd/storage-fsm';
import { ReplicationError } from '../../src/replication-error.ts';
import { type PromotableCluster, type Promote, PromotionControl } from '../../src/roles/promotion-control.ts';
import { holds, type Oracle } from './oracle.ts';
import type { ActiveNode, Result, Site, SiteNode } from './site.ts';

const recentMs = 100;
/** How long an operator waits after a refusal before they ask again. */
const retryMs = 10;
/** A promotion takes the wait for the fence, and some attempts, by the clock of its cluster. */
const decidedMsMax = 600;

/** How an operator asks for a promotion. */
export interface PromotionRequest {
  readonly force: boolean;
  /** Until then they ask again. */
  readonly untilMs: number;
  /** The operator knows that no other cluster serves. */
  readonly isRepair?: boolean;
}

/** A promotion that was made: the decision, and the state before it. */
export interface MadePromotion {
  readonly site: Site;
  readonly state: ReplicationState;
  readonly decision: Promote;
  readonly force: boolean;
}

export interface PromotionsParts {
  readonly clock: SimClock;
  readonly random: SimRandom;
  readonly oracle: Oracle;
  /** Receives the errors that would otherwise end only a promotion. */
  readonly failures: unknown[];
  readonly newId: () => string;
  /** Returns the write that adds a key to the keyring. */
  readonly newKey: (site: Site, epoch: string) => Write;
  /** Called when a promotion was committed. */
  readonly onMade: (made: MadePromotion) => void;
}

/** Operators who promote clusters, and let them leave the set, through the control of each node. */
export class Promotions {
  readonly #parts: PromotionsParts;
  readonly #controls = new WeakMap<SiteNode, PromotionControl<MadePromotion>>();
  /** The promotions that are being decided. */
  readonly #undecided = new Set<{ readonly site: Site; readonly sinceMs: number }>();
  readonly counts = { promotions: 0, forced: 0, lossless: 0, lost: 0, beforeRestore: 0 };

  constructor(parts: PromotionsParts) {
    this.#parts = parts;
  }

  /** Lets the active nodes notice that they are. */
  tick(sites: readonly Site[]): void {
    for (const site of sites) if (site.active !== undefined && !site.isSuspended) this.#controlOf(site, site.active).noteTerm();
    for (const { site, sinceMs } of this.#undecided)
      holds('a promotion is decided soon', site.nowMs() - sinceMs < decidedMsMax, () => ({ site: site.name, sinceMs }));
  }

  /** Asks for a promotion until it is made, as an operator who waits does. */
  async ask(site: Site, { force, untilMs, isRepair = false }: PromotionRequest): Promise<void> {
    const { active } = site;
    while (active !== undefined && site.active === active && this.#parts.clock.now() <= untilMs) {
      // An operator who forces the promotion of a secondary that is not counted gives the protection of the fence up.
      const isSafe = site.isCounted || site.state?.fenceMs === undefined || site.state.role !== 'secondary';
      const isForced = force && (isRepair || isSafe);
      const undecided = { site, sinceMs: site.nowMs() };
      this.#undecided.add(undecided);
      const isMade = await this.#isMade(this.#controlOf(site, active).promote({ force: isForced }));
      this.#undecided.delete(undecided);
      if (isMade) return;
      await site.delay(retryMs);
    }
  }

  /** Lets a secondary leave the set; returns whether it has left. */
  async leave(site: Site): Promise<boolean> {
    const { active } = site;
    if (active === undefined || active.node.secondary.isPromoting) return false;
    return this.#isMade(this.#controlOf(site, active).leave({ force: true }));
  }

  /** Returns whether the operation was not refused. */
  async #isMade(operation: Promise<unknown>): Promise<boolean> {
    try {
      await operation;
      return true;
    } catch (error) {
      if (!(error instanceof ReplicationError || error instanceof StoreError)) this.#parts.failures.push(error);
      return false;
    }
  }

  #controlOf(site: Site, { node }: ActiveNode): PromotionControl<MadePromotion> {
    const known = this.#controls.get(node);
    if (known !== undefined) return known;
    const control = new PromotionControl(this.#cluster(site, node), { recentMs, clock: site });
    this.#controls.set(node, control);
    return control;
  }

  #cluster(site: Site, node: SiteNode): PromotableCluster<MadePromotion> {
    const { newId, newKey } = this.#parts;
    return {
      secondary: node.secondary,
      activeTerm: () => (site.active?.node === node ? site.active.term : undefined),
      state: () => site.state,
      isCounted: async () => site.isCounted,
      promote: async (decision, force) => {
        const { state } = site;
        const { from } = decision;
        const id = newId();
        const isMade = await this.#commit(site, { kind: 'promote', from, id, writes: [newKey(site, id)] });
        if (!isMade || state === undefined) return undefined;
        const made = { site, state, decision, force };
        this.#made(made);
        return made;
      },
      leave: ({ from }) => this.#commit(site, { kind: 'leave', from, writes: [newKey(site, 'alone')] }),
      waits: () => undefined,
      delay: (ms) => site.delay(ms),
    };
  }

  async #commit(site: Site, replication: ReplicationStep & { kind: 'promote' | 'leave' }): Promise<boolean> {
    const { from } = replication;
    const result = await new Promise<Result>((resolve) => site.propose({ replication }, resolve));
    if (result === 'unknown') throw new StoreError('outcome_unknown', 'the active node was replaced');
    const isPresent = isDeepStrictEqual(site.state && cursorOf(site.state), from);
    holds('a promotion at the present position is committed', result === 'committed' || !isPresent, () => ({
      ...{ site: site.name, from, state: site.state },
    }));
    return result === 'committed';
  }

  #made(made: MadePromotion): void {
    const { oracle, onMade } = this.#parts;
    const { from, lossless, missesRestore } = made.decision;
    const lost = oracle.acknowledged.filter(({ epoch, index }) => epoch === from.id && index > from.index);
    const isHandover = lossless && made.state.role === 'secondary';
    holds('a handover without loss loses nothing', !isHandover || lost.length === 0, () => ({ from, lost }));
    this.counts.promotions += 1;
    this.counts.lost += lost.length;
    if (made.force) this.counts.forced += 1;
    if (missesRestore) this.counts.beforeRestore += 1;
    if (isHandover) this.counts.lossless += 1;
    onMade(made);
  }
}
