import { setImmediate } from 'node:timers/promises';
import { capabilitiesOf, type Principal } from '@transitd/access';
import { twiceReply } from '../http/envelope.ts';
import { RequestError } from '../http/error-answer.ts';
import { fields } from '../http/fields.ts';
import type { Reply } from '../http/reply.ts';
import { textList } from '../http/text-list.ts';
import type { Call, GuardedOperation, Route } from './operation.ts';

type Context = Parameters<GuardedOperation['run']>[0];

const schema = { path: 'any', paths: 'any', token: 'string', accessor: 'string' } as const;

/** More would hold up everyone else. */
const pathsMax = 1000;
/** Paths between which others have their turn. */
const pathsPerTurn = 100;

function operation(name: string, subject: (context: Context, call: Call) => Promise<Principal | undefined>): GuardedOperation {
  return {
    name,
    access: 'token',
    capability: 'update',
    where: 'replica',
    run: async (context, call) => capabilitiesReply(await subject(context, call), call),
  };
}

async function capabilitiesReply(principal: Principal | undefined, { body }: Call): Promise<Reply> {
  if (principal === undefined) throw new RequestError('invalid_request', 'invalid token or accessor');
  const { values } = fields(schema, body);
  const paths = textList('paths', values.paths) ?? textList('path', values.path) ?? [];
  if (paths.length === 0) throw new RequestError('invalid_request', "'paths' or 'path' must name a path");
  if (paths.length > pathsMax) throw new RequestError('invalid_request', `at most ${pathsMax} paths at once`);
  const data: Record<string, readonly string[]> = Object.create(null);
  for (const [at, path] of paths.entries()) {
    if (at > 0 && at % pathsPerTurn === 0) await setImmediate();
    data[path] = capabilitiesOf(principal, path);
  }
  const [first = ''] = paths;
  if (paths.length === 1) data['capabilities'] = capabilitiesOf(principal, first);
  return twiceReply(data);
}

const textField = ({ body }: Call, name: 'token' | 'accessor'): string => fields(schema, body).values[name] ?? '';

/** What a token may do on given paths. */
export const capabilityRoutes: readonly Route[] = [
  {
    path: 'sys/capabilities',
    operations: {
      POST: operation('capabilities', ({ service }, call) => service.registry.principal({ token: textField(call, 'token') })),
    },
  },
  { path: 'sys/capabilities-self', operations: { POST: operation('capabilities-self', async ({ principal }) => principal) } },
  {
    path: 'sys/capabilities-accessor',
    operations: {
      POST: operation('capabilities-accessor', ({ service }, call) =>
        service.registry.principal({ accessor: textField(call, 'accessor') }),
      ),
    },
  },
];
