import type { ConfState, NodeId, SnapshotMeta } from '../types.ts';

/** The configuration of a cluster of one. */
export const soleVoter = (nodeId: NodeId): ConfState => ({
  voters: [nodeId],
  votersOutgoing: [],
  learners: [],
  learnersNext: [],
  autoLeave: false,
  context: new Uint8Array(0),
});

/** Where the log of a new cluster begins: before its first entry, its founder the only voter. */
export const bootstrapBase = (nodeId: NodeId): SnapshotMeta => ({ index: 0, term: 0, conf: soleVoter(nodeId), confIndex: 0 });

/** Everyone the configuration names, in whatever part. */
export const membersOf = (conf: ConfState): ReadonlySet<NodeId> =>
  new Set([...conf.voters, ...conf.votersOutgoing, ...conf.learners, ...conf.learnersNext]);

/** Whether two halves decide. */
export const isJoint = ({ votersOutgoing }: ConfState): boolean => votersOutgoing.length > 0;

/** Whether the node has a vote, in either half. */
export const isVoter = ({ voters, votersOutgoing }: ConfState, id: NodeId): boolean =>
  voters.includes(id) || votersOutgoing.includes(id);

/** Everyone with a vote, each once. */
export const votersOf = ({ voters, votersOutgoing }: ConfState): readonly NodeId[] => [
  ...voters,
  ...votersOutgoing.filter((id) => !voters.includes(id)),
];

/**
 * Why this cannot be a membership, or undefined when it can. Ids ascend, so that equal configurations have equal bytes; no
 * voter is a learner; a voter on its way to learner is still a voter of the outgoing half (thesis §4.3).
 */
export function flawOf(conf: ConfState): string | undefined {
  const { voters, votersOutgoing, learners, learnersNext } = conf;
  for (const [part, ids] of Object.entries({ voters, votersOutgoing, learners, learnersNext })) {
    const good = ids.every((id, i) => Number.isSafeInteger(id) && id > (ids[i - 1] ?? 0) && id < 2 ** 48);
    if (!good) return `${part} are not ascending 48-bit ids`;
  }
  if (voters.length === 0 && membersOf(conf).size > 0) return 'there are members but no voter';
  if (learners.some((id) => voters.includes(id) || votersOutgoing.includes(id))) return 'a voter is a learner';
  if (learnersNext.some((id) => voters.includes(id) || !votersOutgoing.includes(id)))
    return 'a next learner is no outgoing voter';
  if (conf.autoLeave && votersOutgoing.length === 0) return 'autoLeave without a joint configuration';
  return undefined;
}
