import { randomBytes } from 'node:crypto';
import type { Barrier } from '@transitd/barrier';
import { z } from 'zod';
import { successionKeyBytes } from '../roles/meeting.ts';
import { LocalRecord } from './local-record.ts';

/** Replicated, so that each cluster of the set has the same key; a restore in the set keeps it. */
export const successionKeyPath = 'core/succession-key';

const schema = z.object({ key: z.string().regex(new RegExp(`^[0-9a-f]{${2 * successionKeyBytes}}$`)) });

/** The key with which the clusters of a set prove that they have its state, as this node has applied it. */
export class SuccessionKey {
  readonly #record: LocalRecord<z.infer<typeof schema>>;

  constructor(barrier: Pick<Barrier, 'store' | 'onStateChange'>) {
    const record = new LocalRecord({ store: barrier.store, path: successionKeyPath, schema });
    this.#record = record;
    barrier.onStateChange(({ sealed }) => {
      if (sealed) record.drop();
    });
  }

  /** Undefined if the set has none, and from a seal until the next `refresh`. */
  get present(): Uint8Array | undefined {
    const key = this.#record.present?.key;
    return key === undefined ? undefined : Buffer.from(key, 'hex');
  }

  refresh(): Promise<void> {
    return this.#record.refresh();
  }

  /** Stores the key of a new set. @throws StoreError */
  renew(): Promise<void> {
    return this.#record.write({ key: randomBytes(successionKeyBytes).toString('hex') });
  }

  close(): void {
    this.#record.close();
  }
}
