import { anything, boolean, dataReply, list, map, object, string } from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { guarded, type Route } from '../operation/operation.ts';

/** Reads the reports of all members, asked by this node; works without a leader too. */
const nodes = guarded({
  name: 'nodes',
  about: 'Read the state of every cluster member, as each reports it to this node',
  answers: answers.data(
    object({
      asked: string,
      nodes: list(
        object(
          { name: string, id: string, api_address: string, cluster_address: string, voter: boolean },
          { error: string, report: map(anything) },
        ),
      ),
    }),
  ),
  capability: 'read',
  where: 'here',
  run: async ({ node }) => dataReply(JSON.stringify(await node.reports.view())),
});

export const nodesRoutes: readonly Route[] = [{ path: 'sys/nodes', operations: { GET: nodes } }];
