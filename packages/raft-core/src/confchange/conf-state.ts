import type { ConfState, NodeId, SnapshotMeta } from '../types.ts';

/** Returns the configuration of a cluster of one. */
export const soleVoter = (nodeId: NodeId): ConfState => ({
  voters: [nodeId],
  votersOutgoing: [],
  learners: [],
  learnersNext: [],
  autoLeave: false,
  context: new Uint8Array(0),
});

/** Returns the base of a new cluster's log, before the first entry. The node that bootstraps the cluster is its only voter. */
export const bootstrapBase = (nodeId: NodeId): SnapshotMeta => ({ index: 0, term: 0, conf: soleVoter(nodeId), confIndex: 0 });

/** Returns every node that the configuration names, in any part. */
export const membersOf = (conf: ConfState): ReadonlySet<NodeId> =>
  new Set([...conf.voters, ...conf.votersOutgoing, ...conf.learners, ...conf.learnersNext]);

/** Returns whether the configuration is joint, so that both halves decide. */
export const isJoint = ({ votersOutgoing }: ConfState): boolean => votersOutgoing.length > 0;

/** Returns whether the node is a voter in either half. */
export const isVoter = ({ voters, votersOutgoing }: ConfState, id: NodeId): boolean =>
  voters.includes(id) || votersOutgoing.includes(id);

/** Returns every voter once. */
export const votersOf = ({ voters, votersOutgoing }: ConfState): readonly NodeId[] => [
  ...voters,
  ...votersOutgoing.filter((id) => !voters.includes(id)),
];

const parts = ['voters', 'votersOutgoing', 'learners', 'learnersNext'] as const;

function areAscendingIds(ids: readonly NodeId[]): boolean {
  let before = 0;
  for (const id of ids) {
    if (!Number.isSafeInteger(id) || id <= before || id >= 2 ** 48) return false;
    before = id;
  }
  return true;
}

/**
 * Returns why this is not a valid membership, or undefined if it is valid. Ids ascend, so that equal configurations have equal bytes; a
 * voter is not a learner; a voter that is being demoted is still a voter of the outgoing half (thesis §4.3).
 */
export function flawOf(conf: ConfState): string | undefined {
  const { voters, votersOutgoing, learners, learnersNext } = conf;
  for (const part of parts) if (!areAscendingIds(conf[part])) return `${part} are not ascending 48-bit ids`;
  if (voters.length === 0 && membersOf(conf).size > 0) return 'there are members but no voter';
  if (learners.some((id) => voters.includes(id) || votersOutgoing.includes(id))) return 'a voter is a learner';
  if (learnersNext.some((id) => voters.includes(id) || !votersOutgoing.includes(id)))
    return 'a voter that is being demoted must be a voter of the outgoing half only';
  if (conf.autoLeave && votersOutgoing.length === 0) return 'autoLeave without a joint configuration';
  return undefined;
}
