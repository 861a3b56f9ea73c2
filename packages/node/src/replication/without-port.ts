// Replication on a node without `cluster_addr`: no other cluster can reach it.

import type { Barrier } from '@transitd/barrier';
import type { Engine } from '@transitd/cluster';
import { type SecondaryConfirmation, TransitError } from '@transitd/transit-engine';
import { acknowledgePath } from './acknowledge-setting.ts';

/** No secondary confirms key material that such a node makes. */
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
