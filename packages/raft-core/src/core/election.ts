import type { ConfHistory } from '../confchange/conf-history.ts';
import { invariant } from '../invariant.ts';
import type { NodeId } from '../types.ts';

/**
 * Whether a node may campaign without waiting for a leader's silence: only if neither the base nor any entry of the log,
 * committed or not, names another member. To be the only voter of the newest configuration is not enough: of {A, B}, leader
 * B removes itself, A stores that, restarts and would win at once, while B still answers reads by the lease that A gave it.
 */
export const isSoleMember = (confs: ConfHistory, id: NodeId): boolean => confs.everyone().every((member) => member === id);

/** One vote, its own, elects a node that is the only voter; any other configuration is refused rather than miscounted. */
export function requireSoleVoter(
  confs: ConfHistory,
  { id, lastIndex }: { readonly id: NodeId; readonly lastIndex: number },
): void {
  const { conf, index } = confs.asOf(lastIndex);
  invariant(isSoleMember(confs, id) && conf.voters.includes(id), 'this version runs a cluster whose only member is this node', {
    id,
    confIndex: index,
    members: confs.everyone(),
  });
}
