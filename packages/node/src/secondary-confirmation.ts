import { type SecondaryConfirmation, TransitError } from '@transitd/transit-engine';
import type { NodeMember } from './member.ts';
import { acknowledgePath } from './replication/acknowledge-setting.ts';

/** Returns the secondaries of a node's cluster, for its engines, which are opened before the node knows whether it has a cluster port. */
export const confirmationOf = (member: () => Pick<NodeMember, 'store' | 'engine'>): SecondaryConfirmation => {
  const present = (): SecondaryConfirmation => member().store?.replication?.material ?? withoutPort(member());
  return { required: () => present().required(), of: (index, wait) => present().of(index, wait) };
};

/** No secondary can reach a node without a cluster port, so none confirms key material that the node makes. */
function withoutPort({ store, engine }: Pick<NodeMember, 'store' | 'engine'>): SecondaryConfirmation {
  const isAcknowledged = async (): Promise<boolean> =>
    engine?.replication?.role === 'primary' && (await store?.barrier.store.get(acknowledgePath)) !== undefined;
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
