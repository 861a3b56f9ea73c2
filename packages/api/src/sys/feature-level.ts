import { dataReply, int, integer, list, object, string } from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { guarded, type Route } from '../operation/operation.ts';

const range = { oldest: integer, newest: integer };

/** Reads the feature level of the cluster and the levels that each member announced last. */
const status = guarded({
  name: 'feature-level',
  about: 'Read the feature level of the cluster, and the levels that each member supports',
  answers: answers.data(
    object({
      level: integer,
      highest: integer,
      supported: object(range),
      members: list(object({ node_id: string, ...range })),
      waits_for: list(string),
    }),
  ),
  capability: 'read',
  where: 'leader',
  onSecondary: true, // a secondary has a level of its own, and raises it before its primary does
  run: async ({ node }) => {
    const { level, highest, supported, members, waitsFor } = node.requireMember().featureLevel.status;
    const rows = members.map(({ name, levels }) => ({ node_id: name, oldest: levels.oldest, newest: levels.newest }));
    return dataReply({ level, highest, supported, members: rows, waits_for: waitsFor });
  },
});

const raise = guarded({
  name: 'feature-level-raise',
  about: 'Raise the feature level of the cluster; no member can go back to an earlier release afterwards',
  takes: {
    level: int('The level to raise to; by default the highest one that all members support', { min: 1, max: 2 ** 32 - 1 }),
  },
  answers: answers.data(object({ level: integer })),
  capability: 'update',
  sudo: true,
  onSecondary: true,
  run: async ({ node }, { values }) => dataReply({ level: await node.requireMember().featureLevel.raise(values.level) }),
});

/** Routes of the feature level. */
export const featureLevelRoutes: readonly Route[] = [
  { path: 'sys/feature-level', operations: { GET: status } },
  { path: 'sys/feature-level/raise', operations: { POST: raise } },
];
