import type { ReplicationState, Store } from '@transitd/storage-fsm';
import { z } from 'zod';
import { LocalRecord } from './local-record.ts';

const index = z.int().min(0);
const milliseconds = z.number().min(0);

/** A promotion of this cluster, and its knowledge of the former primary at that moment. */
const promotionSchema = z.object({
  /** The id of the epoch that it began. */
  id: z.string(),
  utcMs: milliseconds,
  isForced: z.boolean(),
  position: index,
  lossless: z.boolean(),
  missing: index,
  missesRestore: z.boolean(),
  primaryPosition: index.optional(),
  lag: z.object({ entries: index, ms: milliseconds.optional() }).optional(),
  silentMs: milliseconds.optional(),
});
export type KeptPromotion = z.infer<typeof promotionSchema>;

/** The changes of this former primary that its successor's state has taken back: how many, and where they are listed. */
const divergenceSchema = z.object({
  /** Name of the node that has the archive in `diverged/`. */
  node: z.string(),
  archive: z.string(),
  utcMs: milliseconds,
  point: index,
  position: index,
  written: index,
  deleted: index,
  keyVersions: index,
  tokens: index,
  revokedTokens: index,
});
export type KeptDivergence = z.infer<typeof divergenceSchema>;

/** Reports of promotions and losses in records of this cluster, so that they survive a restart and a change of the active node. */
export class KeptReports {
  readonly #promotion: LocalRecord<KeptPromotion>;
  readonly #divergence: LocalRecord<KeptDivergence>;

  constructor(store: Pick<Store, 'get' | 'commit' | 'watch'>) {
    this.#promotion = new LocalRecord({ store, path: 'core/replication/promotion', schema: promotionSchema });
    this.#divergence = new LocalRecord({ store, path: 'core/replication/divergence', schema: divergenceSchema });
  }

  /**
   * Returns the newest promotion of this cluster. The record is written before the promotion, so it counts only if the cluster has its
   * epoch.
   */
  promotion({ epochs }: Pick<ReplicationState, 'epochs'>): KeptPromotion | undefined {
    const { present } = this.#promotion;
    return epochs.some(({ id }) => id === present?.id) ? present : undefined;
  }

  get divergence(): KeptDivergence | undefined {
    return this.#divergence.present;
  }

  /** Reads what has changed. Call it on an unsealed node from time to time. */
  async refresh(): Promise<void> {
    await Promise.all([this.#promotion.refresh(), this.#divergence.refresh()]);
  }

  /** @throws StoreError */
  keepPromotion(promotion: KeptPromotion): Promise<void> {
    return this.#promotion.write(promotion);
  }

  /** @throws StoreError */
  keepDivergence(divergence: KeptDivergence): Promise<void> {
    return this.#divergence.write(divergence);
  }

  close(): void {
    this.#promotion.close();
    this.#divergence.close();
  }
}
