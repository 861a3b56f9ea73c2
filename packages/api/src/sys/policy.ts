import { canonicalPolicyName, type Policies } from '@transitd/access';
import {
  dataReply,
  type FieldSchema,
  integer,
  list,
  object,
  orNull,
  pathText,
  type Reply,
  string,
  text,
  texts,
  topLevelDataReply,
  writtenReply,
} from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { checkGivenPaths } from '../operation/given-paths.ts';
import { type Context, guarded, operationsOn, type Params, type Route, type TypedCall } from '../operation/operation.ts';
import { namesReply, pageFields, pageOf } from '../operation/pages.ts';
import { policySpellings } from '../operation/spellings.ts';

const policyOperation = operationsOn(({ services }: Context) => services.policies);

/** Returns both paths of a policy; clients use either. */
const atBothPaths = ({ name }: Params): readonly string[] => [`sys/policies/acl/${name}`, `sys/policy/${name}`];

const bothLists = (): readonly string[] => ['sys/policies/acl/', 'sys/policy/'];

const names = { name: canonicalPolicyName };

const name = pathText('Policy name, case-insensitive');

const writeFields = {
  name,
  policy: text('Policy in HCL or JSON, as plain text or in base64', { long: true, spellings: policySpellings }),
  rules: text('Alias of `policy`', { aliasOf: 'policy', long: true, spellings: policySpellings }),
} as const satisfies FieldSchema;

/** Older clients send the policy as `rules`. */
const write = policyOperation(
  'policy-write',
  'update',
  {
    about: 'Create or replace a policy',
    takes: writeFields,
    answers: answers.written,
    sameAs: atBothPaths,
    parsesText: true,
  },
  async (policies, { values: { name, policy, rules = '' }, path, written }) => {
    const idle = await policies.write(name, policy || rules);
    return writtenReply(written === path ? idle : [...idle, `policy name was converted to ${name}`]);
  },
);

const remove = policyOperation(
  'policy-delete',
  'delete',
  { about: 'Delete a policy', takes: { name }, answers: answers.written, sameAs: atBothPaths },
  (policies, { values }) => policies.delete(values.name),
);

const ofOne = { about: 'Read a policy', takes: { name }, sameAs: atBothPaths };
const readAcl = policyOperation(
  'policy-read',
  'read',
  { ...ofOne, answers: answers.data(object({ name: string, policy: string })) },
  async (policies, { values: { name } }) => dataReply({ name, policy: await policies.read(name) }),
);

const readOld = policyOperation(
  'policy-read',
  'read',
  { ...ofOne, answers: answers.topLevelData(object({ name: string, rules: string })) },
  async (policies, { values: { name } }) => topLevelDataReply({ name, rules: await policies.read(name) }),
);

async function listTwice(policies: Policies, { values }: TypedCall<typeof pageFields>): Promise<Reply> {
  const keys = pageOf(await policies.list(), values);
  return topLevelDataReply({ keys, policies: keys });
}

const listed = {
  about: 'List policy names',
  takes: pageFields,
  sameAs: bothLists,
  answers: answers.topLevelData(object({ keys: list(string), policies: list(string) })),
};

const listAcl = policyOperation(
  'policy-list',
  'list',
  { about: 'List policy names', takes: pageFields, answers: answers.names, sameAs: bothLists },
  async (policies, { values }) => namesReply(await policies.list(), values),
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
  run: async ({ services }, { values: { policy = '', paths = [] } }) => {
    checkGivenPaths(paths, pathsMax);
    const { rules, notices, decisions } = await services.policies.check(policy, paths);
    const rows = decisions.map(({ path, capabilities, rule = null }) => ({ path, capabilities, rule }));
    return dataReply({ rules, decisions: rows }, notices);
  },
});

/** Routes of policies, at the current path and at the path that older clients use. */
export const policyRoutes: readonly Route[] = [
  { path: 'sys/policies/acl', operations: { LIST: listAcl } },
  {
    path: 'sys/policies/acl/*name',
    names,
    operations: { GET: readAcl, POST: write, DELETE: remove },
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
    operations: { GET: readOld, POST: write, DELETE: remove },
  },
  { path: 'sys/policies/check', operations: { POST: check } },
];
