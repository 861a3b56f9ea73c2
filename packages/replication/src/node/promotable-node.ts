import { setTimeout as delay } from 'node:timers/promises';
import type { Barrier } from '@transitd/barrier';
import { type Logger, type RecordClock, reasonOf } from '@transitd/process';
import type { LogIndex } from '@transitd/raft-core';
import type { ReplicationState } from '@transitd/storage-fsm';
import type { PromotableCluster, Promote } from '../roles/promotion-control.ts';
import type { KeptPromotion, KeptReports } from './kept-reports.ts';
import { newId, type ReplicationRole } from './replication-role.ts';
import type { SecondarySide } from './secondary-side.ts';

interface PromotableNodeOptions {
  readonly transfer: Barrier['transfer'];
  readonly secondary: SecondarySide;
  readonly reports: KeptReports;
  readonly clock: RecordClock;
  readonly log: Logger;
}

/** A promotion, and what this cluster knew of its primary then. Fields are absent if this node has not heard it since it became active. */
export interface Promotion extends Omit<Promote, 'kind'> {
  /** The newest position of which the primary has told. */
  readonly primaryPosition?: LogIndex;
  /** How far this cluster was behind at the last contact. */
  readonly lag?: { readonly entries: number; readonly ms?: number };
  /** Time since the last contact. */
  readonly silentMs?: number;
}

/** This node as the active node of a cluster that an operator promotes, or takes out of the set. */
export class PromotableNode implements PromotableCluster<Promotion> {
  readonly #role: ReplicationRole;
  readonly #options: PromotableNodeOptions;

  constructor(role: ReplicationRole, options: PromotableNodeOptions) {
    this.#role = role;
    this.#options = options;
  }

  get secondary(): SecondarySide {
    return this.#options.secondary;
  }

  activeTerm(): number | undefined {
    return this.#role.isActive ? this.#role.term : undefined;
  }

  state(): ReplicationState | undefined {
    return this.#role.state;
  }

  isCounted(): Promise<boolean> {
    return this.secondary.isCounted();
  }

  async promote(decision: Promote, force: boolean): Promise<Promotion | undefined> {
    const { transfer, clock, log } = this.#options;
    const [id, promotion] = [newId(), this.#described(decision)];
    const { from, ...report } = promotion;
    await this.#keep({ ...report, id, utcMs: clock.dueMs(), isForced: force, position: from.index });
    const writes = [await transfer.keyringForPromotion()];
    if ((await this.#role.commit({ kind: 'promote', from, id, writes })) !== 'committed') return undefined;
    log.warn({ force, ...flat(promotion) }, 'promoted this cluster: it is the primary now');
    return promotion;
  }

  async leave({ from }: Promote): Promise<boolean> {
    const { transfer, log } = this.#options;
    const writes = [await transfer.keyringForPromotion()];
    if ((await this.#role.commit({ kind: 'leave', from, writes })) !== 'committed') return false;
    log.warn({ position: from.index }, 'this cluster has left the replication set, and serves its state as one of its own');
    return true;
  }

  waits(waitMs: number): void {
    this.#options.log.info({ waitMs }, 'waiting until the fence of the primary has closed');
  }

  delay(ms: number): Promise<void> {
    return delay(ms);
  }

  /** A report that cannot be kept does not stop the promotion: the answer and the log have it too. */
  async #keep(promotion: KeptPromotion): Promise<void> {
    await this.#options.reports
      .keepPromotion(promotion)
      .catch((error: unknown) =>
        this.#options.log.warn({ reason: reasonOf(error) }, 'could not keep the report of the promotion'),
      );
  }

  #described({ from, lossless, missing, missesRestore }: Promote): Promotion {
    const { lastHeard, linkStatus } = this.secondary;
    const { lag, silentMs: quietMs } = linkStatus ?? {};
    const lagMs = lag?.ms === undefined || quietMs === undefined ? undefined : Math.max(0, lag.ms - quietMs);
    return {
      ...{ from, lossless, missing, missesRestore },
      ...(lastHeard && { primaryPosition: lastHeard.at.index, silentMs: this.#options.clock.nowMs() - lastHeard.heardMs }),
      ...(lag && { lag: { entries: lag.entries, ...(lagMs !== undefined && { ms: lagMs }) } }),
    };
  }
}

const flat = ({ from, lag, ...rest }: Promotion): object => ({
  ...{ position: from.index, ...rest },
  ...(lag && { lagEntries: lag.entries, lagMs: lag.ms }),
});
