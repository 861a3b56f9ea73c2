import type { PrimaryLinkStatus } from '@transitd/cluster';
import { reasonOf } from '@transitd/process';
import type { LogIndex } from '@transitd/raft-core';
import { fenceOf, type PromotionDecision, type PromotionRefusal, promotionOf } from '@transitd/replication';
import { type Cursor, StoreError } from '@transitd/storage-fsm';
import type { KeptPromotion } from './kept-reports.ts';
import { newId } from './new-id.ts';
import { commitStep, type ReplicationParts } from './replication-parts.ts';
import { ReplicationRefused } from './replication-refused.ts';
import type { SecondarySide } from './secondary-side.ts';

/** The primary counts as alive if it was heard within this time. */
const recentMs = 10_000;
/** Attempts at a promotion while the last entries of the primary still arrive. */
const attemptsMax = 5;
/** How often a promotion that waits for the fence checks that this node is still active. */
const checkMs = 250;

export interface PromotionControlParts {
  readonly parts: ReplicationParts;
  readonly secondary: SecondarySide;
  /** Whether the fence of the primary counts this secondary. */
  readonly isCounted: () => Promise<boolean>;
  /** Keeps the report of a promotion that is about to be made. @throws StoreError */
  readonly keep: (promotion: KeptPromotion) => Promise<void>;
  /** Returns the connection to the primary. */
  readonly link: () => PrimaryLinkStatus | undefined;
}

type Promote = PromotionDecision & { readonly kind: 'promote' };

/** A promotion, and what this cluster knew of its primary then. Fields are absent if this node has not heard it since it became active. */
export interface Promotion extends Omit<Promote, 'kind'> {
  /** The newest position of which the primary has told. */
  readonly primaryPosition?: LogIndex;
  /** How far this cluster was behind at the last contact. */
  readonly lag?: { readonly entries: number; readonly ms?: number };
  /** Time since the last contact. */
  readonly silentMs?: number;
}

/**
 * Decides when this cluster may accept writes that its primary does not have, on its active node: as the next primary, or as a cluster that
 * has left the set.
 */
export class PromotionControl {
  readonly #options: PromotionControlParts;
  #activeTerm: number | undefined;
  #activeSinceMs = Number.POSITIVE_INFINITY;
  #promoting: Promise<Promotion> | undefined;
  #leaving: Promise<Cursor> | undefined;
  #waitUntilMs: number | undefined;

  constructor(options: PromotionControlParts) {
    this.#options = options;
  }

  /** Remaining time for which a promotion waits for the fence; undefined if none waits. */
  get waitMs(): number | undefined {
    return this.#waitUntilMs === undefined ? undefined : Math.max(0, this.#waitUntilMs - this.#options.parts.nowMs());
  }

  /** Another node may have heard the primary before this one became active. */
  noteTerm(): void {
    const { storage, isActive, nowMs } = this.#options.parts;
    const term = isActive() ? storage.driver.status().term : undefined;
    if (term !== this.#activeTerm) this.#activeSinceMs = nowMs();
    this.#activeTerm = term;
  }

  /**
   * Makes this cluster the primary. With a fence, waits first until the fence has closed, and answers no heartbeat in this time. A call
   * during the wait of another one gets the same result.
   * @throws ReplicationRefused with the reason, StoreError
   */
  async promote({ force }: { readonly force: boolean }): Promise<Promotion> {
    if (this.#leaving !== undefined) throw new ReplicationRefused('refused', 'this secondary is leaving the set');
    this.#promoting ??= this.#decided({ force, refusals }, (decision) => this.#promote(decision, force)).finally(() => {
      this.#promoting = undefined;
    });
    return this.#promoting;
  }

  /**
   * Ends replication on this secondary, which keeps its state and serves it as one of its own. The conditions, the wait and repeated calls
   * are those of a promotion: afterwards two clusters may accept writes under the same tokens.
   * @throws ReplicationRefused with the reason, StoreError
   */
  async leave({ force }: { readonly force: boolean }): Promise<void> {
    if (this.#promoting !== undefined) throw new ReplicationRefused('refused', 'this secondary is being promoted');
    this.#leaving ??= this.#decided({ force, refusals: leaveRefusals }, (decision) => this.#leave(decision)).finally(() => {
      this.#leaving = undefined;
    });
    await this.#leaving;
  }

  /** Runs `commit` once the decision is made, and again if it returns undefined because entries of the primary have arrived. */
  async #decided<T extends object>(
    { force, refusals: texts }: { readonly force: boolean; readonly refusals: Refusals },
    commit: (decision: Promote) => Promise<T | undefined>,
  ): Promise<T> {
    const { parts, secondary } = this.#options;
    secondary.isPromoting = true;
    try {
      for (let attempt = 0; attempt < attemptsMax; ) {
        if (!parts.isActive()) throw new StoreError('not_leader', 'this node is not the active one');
        const decision = await this.#decision(force);
        if (decision.kind === 'refuse') throw new ReplicationRefused('refused', texts[decision.reason]);
        if (decision.kind === 'wait') {
          await this.#wait(decision.waitMs);
          continue;
        }
        attempt += 1;
        const result = await commit(decision);
        if (result !== undefined) return result;
      }
      throw new ReplicationRefused('refused', 'entries of the primary still arrive: try again');
    } finally {
      secondary.isPromoting = false;
      this.#waitUntilMs = undefined;
    }
  }

  async #promote(decision: Promote, force: boolean): Promise<Promotion | undefined> {
    const { parts } = this.#options;
    const [id, promotion] = [newId(), this.#described(decision)];
    const { from, ...report } = promotion;
    await this.#keep({ ...report, id, utcMs: parts.utcMs(), isForced: force, position: from.index });
    const writes = [await parts.barrier.transfer.keyringForPromotion()];
    const { outcome } = await commitStep(parts, { kind: 'promote', from, id, writes });
    if (outcome !== 'committed') return undefined;
    parts.log.warn({ force, ...flat(promotion) }, 'promoted this cluster: it is the primary now');
    return promotion;
  }

  async #leave({ from }: Promote): Promise<Cursor | undefined> {
    const { parts } = this.#options;
    const writes = [await parts.barrier.transfer.keyringForPromotion()];
    const { outcome } = await commitStep(parts, { kind: 'leave', from, writes });
    if (outcome !== 'committed') return undefined;
    parts.log.warn({ position: from.index }, 'this cluster has left the replication set, and serves its state as one of its own');
    return from;
  }

  /** A report that cannot be kept does not stop the promotion: the answer and the log have it too. */
  async #keep(promotion: KeptPromotion): Promise<void> {
    const { parts, keep } = this.#options;
    await keep(promotion).catch((error: unknown) =>
      parts.log.warn({ reason: reasonOf(error) }, 'could not keep the report of the promotion'),
    );
  }

  #described({ from, lossless, missing, missesRestore }: Promote): Promotion {
    const { parts, secondary, link } = this.#options;
    const { lastHeard } = secondary;
    const { lag, silentMs: quietMs } = link() ?? {};
    const lagMs = lag?.ms === undefined || quietMs === undefined ? undefined : Math.max(0, lag.ms - quietMs);
    return {
      ...{ from, lossless, missing, missesRestore },
      ...(lastHeard && { primaryPosition: lastHeard.at.index, silentMs: parts.nowMs() - lastHeard.heardMs }),
      ...(lag && { lag: { entries: lag.entries, ...(lagMs !== undefined && { ms: lagMs }) } }),
    };
  }

  async #decision(force: boolean): Promise<PromotionDecision> {
    const { parts, secondary, isCounted } = this.#options;
    const counted = await isCounted();
    const state = parts.storage.machine.replication;
    if (state === undefined) throw new ReplicationRefused('wrong_mode', refusals.not_secondary);
    this.noteTerm();
    const { lastHeard, answeredMs } = secondary;
    const sinceMs = (ms = Number.NEGATIVE_INFINITY): number => parts.nowMs() - Math.max(ms, this.#activeSinceMs);
    return promotionOf({
      ...{ state, recentMs, fence: fenceOf(state), isCounted: counted, primary: lastHeard, force },
      silentMs: sinceMs(lastHeard?.heardMs),
      unansweredMs: sinceMs(answeredMs),
    });
  }

  async #wait(waitMs: number): Promise<void> {
    const { nowMs, log } = this.#options.parts;
    if (this.#waitUntilMs === undefined) log.info({ waitMs }, 'waiting until the fence of the primary has closed');
    this.#waitUntilMs = nowMs() + waitMs;
    await new Promise((resolve) => setTimeout(resolve, Math.min(waitMs, checkMs)));
  }
}

const flat = ({ from, lag, ...rest }: Promotion): object => ({
  ...{ position: from.index, ...rest },
  ...(lag && { lagEntries: lag.entries, lagMs: lag.ms }),
});

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
    'the fence of the primary does not wait for this secondary yet, so both could accept writes: let it connect once, or promote with force',
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
  not_counted:
    'the fence of the primary does not wait for this secondary yet, so both could accept writes: let it connect once, or leave with force',
};
