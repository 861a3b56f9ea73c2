import { allows, policyName } from '@transitd/access';
import { dataReply, noContent, twiceReply } from '../http/envelope.ts';
import { permissionDenied } from '../http/error-answer.ts';
import { fields } from '../http/fields.ts';
import type { Reply } from '../http/reply.ts';
import type { Service } from '../node/service.ts';
import type { Call, GuardedOperation, Route } from './operation.ts';

function operation(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  run: (service: Service, call: Call) => Promise<Reply>,
): GuardedOperation {
  return {
    name,
    access: 'token',
    capability,
    run: async ({ service, principal }, call) => {
      // A name counts without case: other letters need the right on the policy that they come to.
      const { name: asked } = call.params;
      const meant = asked === undefined ? undefined : policyName(asked);
      if (asked !== undefined && meant !== undefined && meant !== asked) {
        const path = call.path.slice(0, -asked.length) + meant;
        if (!allows(principal, capability, path, call.body, call.wrapTtlS ?? 0)) throw permissionDenied();
      }
      return run(service, call);
    },
  };
}

const nameIn = ({ params }: Call): string => params['name'] ?? '';

/** Earlier clients write the text as `rules`. */
async function write({ policies }: Service, call: Call): Promise<Reply> {
  const asked = nameIn(call);
  const { values, warnings } = fields({ name: 'string', policy: 'string', rules: 'string' }, call.body, call.params);
  const idle = await policies.write(asked, values.policy ?? values.rules ?? '');
  const name = policyName(asked);
  const all = [...warnings, ...idle, ...(name === asked ? [] : [`policy name was converted to ${name}`])];
  return all.length === 0 ? noContent : dataReply('null', all);
}

const writeEither = operation('policy-write', 'update', write);

const remove = operation('policy-delete', 'delete', async ({ policies }, call) => {
  await policies.delete(nameIn(call));
  return noContent;
});

const readAcl = operation('policy-read', 'read', async ({ policies }, call) =>
  dataReply(JSON.stringify({ name: policyName(nameIn(call)), policy: await policies.read(nameIn(call)) })),
);

const readOld = operation('policy-read', 'read', async ({ policies }, call) =>
  twiceReply({ name: policyName(nameIn(call)), rules: await policies.read(nameIn(call)) }),
);

async function listTwice({ policies }: Service): Promise<Reply> {
  const keys = await policies.list();
  return twiceReply({ keys, policies: keys });
}

const listAcl = operation('policy-list', 'list', async ({ policies }) =>
  dataReply(JSON.stringify({ keys: await policies.list() })),
);

/** Policies, where they are now and where older clients look for them. */
export const policyRoutes: readonly Route[] = [
  { path: 'sys/policies/acl', operations: { LIST: listAcl } },
  {
    path: 'sys/policies/acl/:name',
    operations: {
      GET: readAcl,
      POST: writeEither,
      DELETE: remove,
    },
  },
  {
    path: 'sys/policy',
    operations: { GET: operation('policy-list', 'read', listTwice), LIST: operation('policy-list', 'list', listTwice) },
  },
  {
    path: 'sys/policy/:name',
    operations: {
      GET: readOld,
      POST: writeEither,
      DELETE: remove,
    },
  },
];
