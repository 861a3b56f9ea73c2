import { credential, RequestError, unavailable } from '@transitd/http';
import type { Node } from '@transitd/node';
import * as answers from '../../operation/answers.ts';
import { open, type Route } from '../../operation/operation.ts';
import { ceremonyRoutes } from '../token-ceremony.ts';
import { controlled } from './control.ts';

const path = 'sys/replication/dr/secondary';

/** @throws RequestError `invalid_request` on a cluster that serves its own clients */
function requireSecondary(node: Node): void {
  if (node.services === undefined) throw unavailable(node);
  if (!node.eligibility.isSecondary || node.member?.replication === undefined)
    throw new RequestError('invalid_request', 'operation tokens are made on a cluster that is a disaster-recovery secondary');
}

const ceremony = ceremonyRoutes({
  name: 'dr-operation-token',
  path: `${path}/generate-operation-token`,
  about: 'operation token generation on a secondary, with the shares of its primary',
  onSecondary: true,
  generation: (barrier) => barrier.operationTokenGeneration,
  check: requireSecondary,
  create: async ({ node }) => {
    const tokens = node.member?.replication?.operationTokens;
    if (tokens === undefined) throw unavailable(node);
    return { token: await tokens.issue() };
  },
});

const remove = open({
  name: 'dr-operation-token-delete',
  about: 'End an operation token',
  takes: { dr_operation_token: credential('The operation token', { required: true }) },
  answers: answers.written,
  where: 'leader',
  onSecondary: true,
  run: async (node, { values }) => {
    requireSecondary(node);
    await controlled(node, ({ operationTokens }) => operationTokens.delete(values.dr_operation_token ?? ''));
  },
});

/** Routes of operation tokens, which authorize operations on a secondary while the tokens of clients are the primary's. */
export const operationTokenRoutes: readonly Route[] = [
  ...ceremony,
  { path: `${path}/operation-token/delete`, operations: { POST: remove } },
];
