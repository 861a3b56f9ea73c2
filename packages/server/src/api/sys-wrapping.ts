import type { WrapInfo } from '@transitd/access';
import { dataReply, wrapReply } from '../http/envelope.ts';
import { RequestError } from '../http/error-answer.ts';
import { fields } from '../http/fields.ts';
import type { Reply } from '../http/reply.ts';
import { unavailable } from '../http/unavailable.ts';
import type { Service } from '../node/service.ts';
import type { Call, GuardedOperation, OpenOperation, Route } from './operation.ts';

/**
 * What is asked with a wrapping token, in the body or in the place of the caller's own. Whoever has it may: so nothing else is looked
 * at, and a token beside it is not needed.
 */
function operation(name: string, run: (service: Service, token: string) => Promise<Reply>): OpenOperation {
  return {
    name,
    access: 'open',
    where: 'leader',
    run: async (node, call, token) => {
      const { service } = node;
      if (service === undefined) throw unavailable(node);
      return run(service, wrappingToken(call, token));
    },
  };
}

function wrappingToken({ body }: Call, token = ''): string {
  const named = fields({ token: 'string' }, body).values.token ?? '';
  const shown = named === '' ? token : named;
  if (shown === '') throw new RequestError('invalid_request', 'missing wrapping token');
  return shown;
}

const notValid = (): RequestError => new RequestError('invalid_request', 'wrapping token is not valid or does not exist');

const lookUp = operation('wrapping-lookup', async ({ wrapping }, token) => {
  const found = await wrapping.look(token);
  if (found === undefined) throw notValid();
  const { path, createdMs, ttlS } = found;
  return dataReply(JSON.stringify({ creation_path: path, creation_time: new Date(createdMs).toISOString(), creation_ttl: ttlS }));
});

const unwrap = operation('wrapping-unwrap', async ({ wrapping }, token) => {
  const found = await wrapping.unwrap(token);
  if (found === undefined) throw notValid();
  return { status: found.status, body: found.body };
});

const rewrap = operation('wrapping-rewrap', async ({ wrapping }, token) => {
  const info: WrapInfo | undefined = await wrapping.rewrap(token);
  if (info === undefined) throw notValid();
  return wrapReply(200, info);
});

/** Whatever the caller sends comes back, wrapped. */
const wrap: GuardedOperation = {
  name: 'wrapping-wrap',
  access: 'token',
  capability: 'update',
  adds: true,
  run: (_context, { body, wrapTtlS }) => {
    if (wrapTtlS === undefined) throw new RequestError('invalid_request', 'endpoint requires response wrapping to be used');
    return dataReply(JSON.stringify(body));
  },
};

/** Answers that are fetched later, once, by whoever has the token for it. */
export const wrappingRoutes: readonly Route[] = [
  { path: 'sys/wrapping/wrap', operations: { POST: wrap } },
  { path: 'sys/wrapping/lookup', operations: { GET: lookUp, POST: lookUp } },
  { path: 'sys/wrapping/unwrap', operations: { POST: unwrap } },
  { path: 'sys/wrapping/rewrap', operations: { POST: rewrap } },
];
