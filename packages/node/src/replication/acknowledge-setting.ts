import type { Barrier } from '@transitd/barrier';
import type { Engine } from '@transitd/cluster';
import {
  type AcknowledgeSettings,
  acknowledgeMsDefault,
  acknowledgeMsMax,
  acknowledgeMsMin,
  ReplicationError,
} from '@transitd/replication';
import type { Store } from '@transitd/storage-fsm';
import { type SecondaryConfirmation, TransitError } from '@transitd/transit-engine';
import { z } from 'zod';
import type { ReplicationRole } from './replication-role.ts';

/** Replicated, so that a promoted cluster has the same setting. */
export const acknowledgePath = 'core/acknowledge';
const format = 1;
const schema = z.object({
  format: z.literal(format),
  timeoutMs: z.number(),
  onTimeout: z.enum(['refuse', 'degrade']),
});

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
    const record = await this.#store.get(acknowledgePath);
    this.#last = record && settingsIn(record.value);
    return this.#last;
  }

  /**
   * Changes the setting of this primary.
   * @param changed - absent fields get their defaults; undefined ends the option
   * @throws ReplicationError, StoreError
   */
  async write(changed: Partial<AcknowledgeSettings> | undefined): Promise<void> {
    this.#role.require('primary');
    const settings = changed && { timeoutMs: acknowledgeMsDefault, onTimeout: 'refuse', ...changed };
    if (settings !== undefined && !(settings.timeoutMs >= acknowledgeMsMin && settings.timeoutMs <= acknowledgeMsMax))
      throw new ReplicationError(
        'refused',
        `timeout must be from ${acknowledgeMsMin / 1000} to ${acknowledgeMsMax / 1000} seconds`,
      );
    const value = settings === undefined ? null : Buffer.from(JSON.stringify({ format, ...settings }));
    await this.#store.commit({ conditions: [], writes: [{ path: acknowledgePath, value }] });
    await this.read();
  }
}

/** Returns the settings in a record. @throws Error for an unknown format */
function settingsIn(bytes: Uint8Array): AcknowledgeSettings {
  const { timeoutMs, onTimeout } = schema.parse(JSON.parse(Buffer.from(bytes).toString()));
  return { timeoutMs, onTimeout };
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
