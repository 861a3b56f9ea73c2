import { canonicalPolicyName } from '@transitd/access';
import {
  dataReply,
  type FieldSchema,
  integer,
  list,
  noContentReply,
  object,
  orNull,
  type Reply,
  string,
  text,
  texts,
  topLevelDataReply,
} from '@transitd/http';
import type { Services } from '@transitd/node';
import * as answers from '../operation/answers.ts';
import { checkGivenPaths } from '../operation/given-paths.ts';
import {
  type Call,
  type GuardedOperation,
  guarded,
  none,
  type OperationDescription,
  type Params,
  pathParam,
  type Route,
  type TypedCall,
  withFields,
} from '../operation/operation.ts';
import { policySpellings } from '../operation/spellings.ts';

function policyOperation<S extends FieldSchema = Record<never, never>>(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  description: OperationDescription<S>,
  run: (services: Services, call: TypedCall<S>) => Promise<Reply>,
): GuardedOperation {
  return {
    name,
    access: 'token',
    capability,
    ...description,
    ...(description.takes !== undefined && 'name' in description.takes && { sameAs: atBothPaths }),
    run: ({ services }, call) => withFields(description.takes ?? none<S>(), call, (typed) => run(services, typed)),
  };
}

/** Returns both paths of a policy; clients use either. */
const atBothPaths = ({ name }: Params): readonly string[] => [`sys/policies/acl/${name}`, `sys/policy/${name}`];

const names = { name: canonicalPolicyName };

const nameIn = (call: Pick<Call, 'params'>): string => pathParam(call, 'name');
const name = text('Policy name, case-insensitive', { required: true });

const writeFields = {
  name,
  policy: text('Policy in HCL or JSON, as plain text or in base64', { long: true, spellings: policySpellings }),
  rules: text('Alias of `policy`', { aliasOf: 'policy', long: true, spellings: policySpellings }),
} as const satisfies FieldSchema;

/** Older clients send the policy as `rules`. */
async function write({ policies }: Services, { values, warnings, ...call }: TypedCall<typeof writeFields>): Promise<Reply> {
  const name = nameIn(call);
  const idle = await policies.write(name, values.policy || (values.rules ?? ''));
  const all = [...warnings, ...idle, ...(call.written === call.path ? [] : [`policy name was converted to ${name}`])];
  return all.length === 0 ? noContentReply : dataReply(null, all);
}

const writeEither: GuardedOperation = {
  ...policyOperation(
    'policy-write',
    'update',
    { about: 'Create or replace a policy', takes: writeFields, answers: answers.written },
    write,
  ),
  parsesText: true,
};

const remove = policyOperation(
  'policy-delete',
  'delete',
  { about: 'Delete a policy', takes: { name }, answers: answers.written },
  async ({ policies }, call) => {
    await policies.delete(nameIn(call));
    return noContentReply;
  },
);

const readAcl = policyOperation(
  'policy-read',
  'read',
  { about: 'Read a policy', takes: { name }, answers: answers.data(object({ name: string, policy: string })) },
  async ({ policies }, call) => dataReply({ name: nameIn(call), policy: await policies.read(nameIn(call)) }),
);

const readOld = policyOperation(
  'policy-read',
  'read',
  { about: 'Read a policy', takes: { name }, answers: answers.topLevelData(object({ name: string, rules: string })) },
  async ({ policies }, call) => topLevelDataReply({ name: nameIn(call), rules: await policies.read(nameIn(call)) }),
);

async function listTwice({ policies }: Services): Promise<Reply> {
  const keys = await policies.list();
  return topLevelDataReply({ keys, policies: keys });
}

const listed = {
  about: 'List policy names',
  answers: answers.topLevelData(object({ keys: list(string), policies: list(string) })),
};

const listAcl = policyOperation(
  'policy-list',
  'list',
  { about: 'List policy names', answers: answers.names },
  async ({ policies }) => dataReply({ keys: await policies.list() }),
);

/** Each path is compared with all rules of the policy. */
const pathsMax = 100;

/** Validates a policy and evaluates it on paths, without writing it. */
const check = guarded({
  name: 'policy-check',
  about: 'Validate a policy and evaluate it alone on paths, without writing it',
  takes: {
    policy: text('Policy in HCL or JSON, as plain text or in base64', { required: true, long: true }),
    paths: texts('Paths to evaluate; with a slash at the end for a list'),
  },
  answers: answers.data(
    object({
      rules: integer,
      decisions: list(object({ path: string, capabilities: list(string), rule: orNull(string) })),
    }),
  ),
  capability: 'update',
  where: 'replica',
  parsesText: true,
  run: async ({ services }, { values: { policy = '', paths = [] }, warnings }) => {
    checkGivenPaths(paths, pathsMax);
    const { rules, notices, decisions } = await services.policies.check(policy, paths);
    const rows = decisions.map(({ path, capabilities, rule = null }) => ({ path, capabilities, rule }));
    return dataReply({ rules, decisions: rows }, [...warnings, ...notices]);
  },
});

/** Routes of policies, at the current path and at the path that older clients use. */
export const policyRoutes: readonly Route[] = [
  { path: 'sys/policies/acl', operations: { LIST: listAcl } },
  {
    path: 'sys/policies/acl/*name',
    names,
    operations: {
      GET: readAcl,
      POST: writeEither,
      DELETE: remove,
    },
  },
  {
    path: 'sys/policy',
    operations: {
      GET: policyOperation('policy-list', 'read', listed, listTwice),
      LIST: policyOperation('policy-list', 'list', listed, listTwice),
    },
  },
  {
    path: 'sys/policy/*name',
    names,
    operations: {
      GET: readOld,
      POST: writeEither,
      DELETE: remove,
    },
  },
  { path: 'sys/policies/check', operations: { POST: check } },
];
