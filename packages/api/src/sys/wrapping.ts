import { credential, dataReply, integer, object, type Reply, RequestError, string, time, unavailable } from '@transitd/http';
import type { Services } from '@transitd/node';
import { transactionBytesMax } from '@transitd/storage-fsm';
import * as answers from '../operation/answers.ts';
import {
  type GuardedOperation,
  guarded,
  type OpenOperation,
  type OperationDescription,
  open,
  type Route,
} from '../operation/operation.ts';
import { wrapReply } from '../operation/wrap-info.ts';

/**
 * Makes an operation on a wrapping token, which is sent in the body or as the token of the request. Possession of the wrapping token is
 * enough: no other token is needed or checked.
 */
const wrappingOperation = (
  name: string,
  description: Omit<OperationDescription, 'takes'>,
  run: (services: Services, token: string) => Promise<Reply>,
  more: Pick<OpenOperation, 'repeatsData'> = {},
): OpenOperation =>
  open({
    ...more,
    name,
    ...description,
    takes: { token: credential('Wrapping token; alternatively, send it as the token of the request') },
    where: 'leader',
    run: async (node, { values }, token = '') => {
      const { services } = node;
      if (services === undefined) throw unavailable(node);
      const wrappingToken = values.token || token;
      if (wrappingToken === '') throw new RequestError('invalid_request', 'missing wrapping token');
      return run(services, wrappingToken);
    },
  });

const notValid = (): RequestError => new RequestError('invalid_request', 'wrapping token is not valid or does not exist');

const lookUp = wrappingOperation(
  'wrapping-lookup',
  {
    about: 'Look up a wrapping token',
    answers: answers.data(object({ creation_path: string, creation_time: time, creation_ttl: integer })),
  },
  async ({ wrapping }, token) => {
    const found = await wrapping.lookUp(token);
    if (found === undefined) throw notValid();
    const { path, createdMs, ttlS } = found;
    return dataReply({ creation_path: path, creation_time: new Date(createdMs).toISOString(), creation_ttl: ttlS });
  },
);

const unwrap = wrappingOperation(
  'wrapping-unwrap',
  { about: 'Unwrap a response; works once', answers: answers.wrappedResponse },
  async ({ wrapping }, token) => {
    const found = await wrapping.unwrap(token);
    if (found === undefined) throw notValid();
    return { status: found.status, unwrapped: found.body };
  },
  { repeatsData: true },
);

/**
 * A wrapping token alone must not extend its own lifetime. So, as in the peers, this operation requires a capability of the caller's token,
 * and a wrapping token has no capabilities.
 */
const rewrap: GuardedOperation = guarded({
  name: 'wrapping-rewrap',
  about: 'Replace a wrapping token with a new one of the same TTL',
  takes: { token: credential('Wrapping token', { required: true }) },
  answers: answers.wrappingToken,
  capability: 'update',
  run: async ({ services: { wrapping } }, { values: { token = '' } }) => {
    if (token === '') throw new RequestError('invalid_request', 'missing wrapping token');
    const info = await wrapping.rewrap(token);
    if (info === undefined) throw notValid();
    return wrapReply(info);
  },
});

/** Wraps the request body. */
const wrap: GuardedOperation = {
  name: 'wrapping-wrap',
  access: 'token',
  about: 'Wrap the request body; requires the header `X-Service-Wrap-TTL`',
  body: object({}),
  answers: answers.wrappingToken,
  capability: 'update',
  bodyBytesMax: transactionBytesMax,
  run: (_context, { body, wrapTtlS }) => {
    if (wrapTtlS === undefined) throw new RequestError('invalid_request', 'endpoint requires response wrapping to be used');
    return dataReply(body);
  },
};

/** Routes of response wrapping. */
export const wrappingRoutes: readonly Route[] = [
  { path: 'sys/wrapping/wrap', operations: { POST: wrap } },
  { path: 'sys/wrapping/lookup', operations: { GET: lookUp, POST: lookUp } },
  { path: 'sys/wrapping/unwrap', operations: { POST: unwrap } },
  { path: 'sys/wrapping/rewrap', operations: { POST: rewrap } },
];
