import { anything, bool, boolean, dataReply, list, map, object, RequestError, string } from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { continuedRights } from '../operation/continued-rights.ts';
import { guarded, type Route } from '../operation/operation.ts';

const viewSchema = object({
  asked: string,
  nodes: list(
    object(
      { name: string, id: string, api_address: string, cluster_address: string, voter: boolean },
      { error: string, report: map(anything) },
    ),
  ),
});

/** Reads or follows the reports of all members, asked by this node; works without a leader too. */
const nodes = guarded({
  name: 'nodes',
  about: 'Read the state of every cluster member, as each reports it to this node',
  takes: {
    follow: bool('Send the state every second, each time as one line of JSON, until the caller disconnects or its rights end'),
  },
  answers: answers.either(answers.data(viewSchema), 'application/x-ndjson', viewSchema),
  capability: 'read',
  where: 'here',
  run: async (context, { wrapTtlS, values, ...call }) => {
    const { reports } = context.node.requireMember();
    if (values.follow !== true) return dataReply(await reports.view());
    if (wrapTtlS !== undefined) throw new RequestError('invalid_request', 'this response cannot be wrapped');
    const hasRights = continuedRights(context, call, 'read');
    // A cluster that becomes a secondary, or is demoted or superseded, refuses this path.
    const mayContinue = async (): Promise<boolean> => !context.node.eligibility.isSecondary && (await hasRights());
    return {
      status: 200,
      headers: { 'Content-Type': 'application/x-ndjson' },
      stream: reports.streams.follow({ caller: context.principal.id, mayContinue }),
    };
  },
});

export const nodesRoutes: readonly Route[] = [{ path: 'sys/nodes', operations: { GET: nodes } }];
