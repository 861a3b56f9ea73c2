import type { IncomingHttpHeaders } from 'node:http';
import { type Body, permissionDenied, RequestError, tokenOf, withoutWarnings, withWarnings, wrapTtlOf } from '@transitd/http';
import type { Node } from '@transitd/node';
import { isOperationToken, ReplicationError } from '@transitd/replication';
import type { Call, GuardedOperation } from '../operation/operation.ts';

/**
 * Returns the operation token of a request: in the body, or in place of a token, for requests without a body. Undefined if it has none.
 * @throws RequestError if the response is to be wrapped
 */
export function operationTokenOf(body: Body, headers: IncomingHttpHeaders): string | undefined {
  const given = body['dr_operation_token'];
  const shown = tokenOf(headers);
  const token = typeof given === 'string' && given !== '' ? given : shown;
  if (token === undefined || (token === shown && !isOperationToken(token))) return undefined;
  if (wrapTtlOf(headers) > 0) throw new RequestError('invalid_request', 'this response cannot be wrapped');
  return token;
}

const invalidOperationToken = { constraint: 'dr_operation_token' };

/** Runs an operation that an operation token authorizes. @throws RequestError `permission_denied`; errors of the operation */
export async function runByOperationToken(
  node: Node,
  { use, run }: NonNullable<GuardedOperation['byOperationToken']>,
  call: Call,
  token: string,
) {
  const tokens = node.member?.replication?.operationTokens;
  if (tokens === undefined) throw permissionDenied(invalidOperationToken);
  let warnings: readonly string[] = [];
  try {
    return await tokens.use(token, use, async () => {
      try {
        return await run(node, call);
      } catch (thrown) {
        const { failure, warnings: given } = withoutWarnings(thrown);
        warnings = given;
        throw failure; // it decides whether the token is used up
      }
    });
  } catch (error) {
    const isOfToken = error instanceof ReplicationError && error.code === 'operation_token';
    throw isOfToken ? permissionDenied(invalidOperationToken) : withWarnings(error, warnings);
  }
}
