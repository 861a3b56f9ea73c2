import { setImmediate } from 'node:timers/promises';
import { capabilitiesOf, type Principal } from '@transitd/access';
import { twiceReply } from '../http/envelope.ts';
import { RequestError } from '../http/error-answer.ts';
import { type FieldSchema, text, texts } from '../http/field.ts';
import { list, map, string } from '../http/json-schema.ts';
import type { Reply } from '../http/reply.ts';
import { twice } from './answers.ts';
import { type Asked, type Context, type GuardedOperation, guarded, type Route } from './operation.ts';

const schema = {
  path: texts('older name of `paths`'),
  paths: texts('the paths'),
  token: text('whose rights'),
  accessor: text('the same, by its accessor'),
} as const satisfies FieldSchema;

/** More would hold up everyone else. */
const pathsMax = 1000;
/** Paths between which others have their turn. */
const pathsPerTurn = 100;

const operation = (
  name: string,
  about: string,
  subject: (context: Context, values: Asked<typeof schema>['values']) => Promise<Principal | undefined>,
): GuardedOperation =>
  guarded({
    name,
    about,
    takes: schema,
    answers: twice(map(list(string))),
    capability: 'update',
    where: 'replica',
    run: async (context, { values }) => capabilitiesReply(await subject(context, values), values),
  });

async function capabilitiesReply(principal: Principal | undefined, values: Asked<typeof schema>['values']): Promise<Reply> {
  if (principal === undefined) throw new RequestError('invalid_request', 'invalid token or accessor');
  const paths = values.paths ?? values.path ?? [];
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

/** What a token may do on given paths. */
export const capabilityRoutes: readonly Route[] = [
  {
    path: 'sys/capabilities',
    operations: {
      POST: operation('capabilities', 'what a token may do', ({ service }, { token = '' }) =>
        service.registry.principal({ token }),
      ),
    },
  },
  {
    path: 'sys/capabilities-self',
    operations: { POST: operation('capabilities-self', 'what the caller may do', async ({ principal }) => principal) },
  },
  {
    path: 'sys/capabilities-accessor',
    operations: {
      POST: operation('capabilities-accessor', 'what a token may do', ({ service }, { accessor = '' }) =>
        service.registry.principal({ accessor }),
      ),
    },
  },
];
