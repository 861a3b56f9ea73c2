import type { Barrier } from '@transitd/barrier';
import type { Engine } from '@transitd/cluster';
import { JsonRecord, type Store } from '@transitd/storage-fsm';
import { type SecondaryConfirmation, TransitError } from '@transitd/transit-engine';
import { z } from 'zod';
import { ReplicationError } from '../replication-error.ts';
import { type AcknowledgeSettings, acknowledgeMsDefault, acknowledgeMsMax, acknowledgeMsMin } from '../roles/acknowledgement.ts';
import type { ReplicationRole } from './replication-role.ts';

/** Replicated, so that a promoted cluster has the same setting. */
export const acknowledgePath = 'core/acknowledge';
const setting = new JsonRecord<AcknowledgeSettings>(
  acknowledgePath,
  z.object({ timeoutMs: z.number(), onTimeout: z.enum(['refuse', 'degrade']) }),
);

/** The option `acknowledge: key_material` of a replication set. */
export class AcknowledgeSetting {
  readonly #role: ReplicationRole;
  readonly #store: Pick<Store, 'get' | 'commit'>;
  #last: AcknowledgeSettings | undefined;

  constructor(role: ReplicationRole, store: Pick<Store, 'get' | 'commit'>) {
    this.#role = role;
    this.#store = store;
  }

  /** The setting that was read last, for reports. */
  get last(): AcknowledgeSettings | undefined {
    return this.#last;
  }

  /** Returns the setting; undefined while the option is off. @throws StoreError, or an error for a record of an unknown format */
  async read(): Promise<AcknowledgeSettings | undefined> {
    this.#last = (await setting.read(this.#store))?.value;
    return this.#last;
  }

  /**
   * Changes the setting of this primary.
   * @param changed - absent fields get their defaults; undefined ends the option
   * @throws ReplicationError, StoreError
   */
  async write(changed: Partial<AcknowledgeSettings> | undefined): Promise<void> {
    this.#role.require('primary');
    const defaults: AcknowledgeSettings = { timeoutMs: acknowledgeMsDefault, onTimeout: 'refuse' };
    const settings = changed && { ...defaults, ...changed };
    if (settings !== undefined && !(settings.timeoutMs >= acknowledgeMsMin && settings.timeoutMs <= acknowledgeMsMax))
      throw new ReplicationError(
        'refused',
        `timeout must be from ${acknowledgeMsMin / 1000} to ${acknowledgeMsMax / 1000} seconds`,
      );
    const write = settings === undefined ? { path: acknowledgePath, value: null } : setting.written(settings);
    await this.#store.commit({ conditions: [], writes: [write] });
    await this.read();
  }
}

/** Of a node without `cluster_addr`, which no secondary can reach: none confirms the key material that it makes. */
export function unreachedSecondaries(
  engine: Pick<Engine, 'replication'>,
  { store }: Pick<Barrier, 'store'>,
): SecondaryConfirmation {
  const isAcknowledged = async (): Promise<boolean> =>
    engine.replication?.role === 'primary' && (await store.get(acknowledgePath)) !== undefined;
  return {
    required: async () => {
      if (!(await isAcknowledged())) return false;
      throw new TransitError(
        'unconfirmed',
        'without cluster_addr no secondary can reach this node: set cluster_addr and restart',
      );
    },
    of: async () => ((await isAcknowledged()) ? 'unconfirmed' : 'confirmed'),
  };
}
