import { type Body, credential, dataReply, type Field, type FieldSchema, object, RequestError } from '@transitd/http';
import * as answers from '../../operation/answers.ts';
import {
  type MethodContext,
  type MethodPaths,
  methodHandler,
  methodOperation,
  recordPaths,
} from '../../operation/auth-method.ts';
import { keptIfOmitted, memberSchemas, membersIn, propertiesIn, sorted } from '../../operation/kept-fields.ts';
import { tokenFields, tokenSettingsJson, tokenSettingsMembers, tokenSettingsOf } from '../../operation/login-fields.ts';
import { found, type Params } from '../../operation/operation.ts';
import { recordOperations } from '../../operation/records.ts';
import type { AppRoles } from './logins.ts';
import { type AppRole, type AppRoleChange, ownFields } from './role.ts';

export type Here = MethodContext<AppRoles>;

const roles = recordOperations({
  noun: 'role',
  name: 'Name of the role',
  takes: { role_id: credential('Role ID, which logins send; random if omitted'), ...ownFields, ...tokenFields },
  shown: object(sorted({ ...memberSchemas(ownFields), local_secret_ids: { const: false }, ...tokenSettingsMembers })),
  find: async ({ method, mount }: Here, name) => {
    const role = (await method.roles.find(mount.id, name))?.value;
    return role && sorted({ ...membersIn(ownFields, role), local_secret_ids: false, ...tokenSettingsJson(role.token) });
  },
  list: ({ method, mount }) => method.roles.list(mount.id),
  write: ({ method, mount }, name, values) =>
    method.write(mount, name, {
      ...propertiesIn(ownFields, values),
      roleId: values.role_id || undefined,
      token: tokenSettingsOf(values),
    }),
  delete: ({ method, mount }, name) => method.delete(mount, name),
});
export const { name } = roles.read.takes;

export const requireRole = async ({ method, mount }: Here, name: string): Promise<AppRole> =>
  found(await method.roles.find(mount.id, name)).value;

/** A field of a role that is also read and written at its own path below the role. */
interface FieldPath {
  /** Path below the role. */
  readonly path: string;
  /** Names of the field there. A request may use any of them; the later ones are aliases. The response has all of them. */
  readonly members: readonly [string, ...string[]];
  /** A second path of the same field. */
  readonly twin?: string;
}

const cidrPaths = ['secret-id-bound-cidrs', 'bound-cidr-list'] as const;
const fields: readonly FieldPath[] = [
  { path: 'policies', members: ['token_policies', 'policies'] },
  { path: 'bind-secret-id', members: ['bind_secret_id'] },
  { path: 'secret-id-num-uses', members: ['secret_id_num_uses'] },
  { path: 'secret-id-ttl', members: ['secret_id_ttl'] },
  { path: cidrPaths[0], members: ['secret_id_bound_cidrs'], twin: cidrPaths[1] },
  { path: cidrPaths[1], members: ['bound_cidr_list'], twin: cidrPaths[0] },
  { path: 'token-bound-cidrs', members: ['token_bound_cidrs'] },
  { path: 'token-num-uses', members: ['token_num_uses'] },
  { path: 'token-ttl', members: ['token_ttl'] },
  { path: 'token-max-ttl', members: ['token_max_ttl'] },
  { path: 'period', members: ['token_period', 'period'] },
];

const roleFields: FieldSchema = keptIfOmitted({ ...ownFields, ...tokenFields });

/** Returns the name of the field that a member sets. */
const fieldOf = (member: string): string => (Object.hasOwn(roleFields, member) && roleFields[member]?.aliasOf) || member;

/**
 * Returns the paths of the single fields that a write of a whole role sets, under any of their names. A denial of one of them refuses the
 * write.
 */
function fieldPathsIn({ method, name }: Params, body: Body = {}): readonly string[] {
  const setsField = (member: string, { members: [first] }: FieldPath): boolean => fieldOf(member) === fieldOf(first);
  const pathsOf = (member: string): readonly string[] =>
    member === 'role_id' ? ['role-id'] : fields.filter((each) => setsField(member, each)).map(({ path }) => path);
  return Object.keys(body).flatMap((member) => pathsOf(member).map((path) => `auth/${method}/role/${name}/${path}`));
}

/** Returns the path at which one field of a role is read, written and reset, as in the peers, and the operations there. */
function pathOf({ path, members, twin }: FieldPath): readonly [string, MethodPaths[string]] {
  const [first, ...aliases] = members;
  const main = fieldOf(first);
  const { default: inForce, ...field } = roleFields[main] as Field;
  const schema: FieldSchema = {
    [main]: field,
    ...Object.fromEntries(aliases.map((name) => [name, { ...field, aliasOf: main }])),
  };
  const isOfToken = Object.hasOwn(tokenFields, main);
  const change = (values: Readonly<Record<string, unknown>>): AppRoleChange => {
    const properties = propertiesIn(schema, values as never); // already converted to the kind of the field
    return isOfToken ? { token: properties } : { ...properties, token: {} };
  };
  const underAllNames = <T>(value: T) => Object.fromEntries(members.map((member) => [member, value]));
  const read = methodHandler({
    about: `Read \`${first}\` of a role`,
    takes: { name },
    answers: answers.data(object(underAllNames(memberSchemas(schema)[main] ?? {}))),
    run: async (context: Here, { values }) => {
      const role = await requireRole(context, values.name);
      const shown = { ...membersIn(ownFields, role), ...membersIn(tokenFields, role.token) };
      return dataReply(underAllNames(shown[main]));
    },
  });
  const write = methodHandler({
    about: `Set \`${first}\` of a role; other fields keep their values`,
    takes: {
      name,
      ...Object.fromEntries(members.map((member) => [member, member === first ? field : { ...field, aliasOf: first }])),
    },
    answers: answers.written,
    run: async ({ method, mount }: Here, { values }) => {
      const given: Readonly<Record<string, unknown>> = values;
      if (members.every((member) => given[member] === undefined)) throw new RequestError('invalid_request', `missing ${first}`);
      await method.update(mount, values.name, change({ ...given, [main]: given[first] }));
    },
  });
  const remove = methodHandler({
    about: `Reset \`${first}\` of a role to its default`,
    takes: { name },
    answers: answers.written,
    run: async ({ method, mount }: Here, { values }) => {
      if ((await method.roles.find(mount.id, values.name)) === undefined) return;
      await method.update(mount, values.name, change({ [main]: inForce ?? (field.kind === 'strings' ? [] : 0) }));
    },
  });
  /**
   * `atTwin` returns the other path of the same field. `inWhole` adds the path of the whole role, because a write there can set the field
   * too.
   */
  const atTwin = ({ method, name }: Params) => (twin === undefined ? [] : [`auth/${method}/role/${name}/${twin}`]);
  const inWhole = (params: Params) => [`auth/${params.method}/role/${params.name}`, ...atTwin(params)];
  return [
    `role/:name/${path}`,
    {
      GET: methodOperation('role-field-read', 'read', read, { sameAs: atTwin }),
      POST: methodOperation('role-field-write', 'update', write, { sameAs: inWhole }),
      DELETE: methodOperation('role-field-reset', 'delete', remove, { sameAs: inWhole }),
    },
  ];
}

const readLocal = methodHandler({
  about: 'Read `local_secret_ids` of a role; always false',
  takes: { name },
  answers: answers.data(object({ local_secret_ids: { const: false } })),
  run: async (context: Here, { values }) => {
    await requireRole(context, values.name);
    return dataReply({ local_secret_ids: false });
  },
});

/** Paths of roles and of their single fields. */
export const rolePaths: MethodPaths = {
  ...Object.fromEntries(fields.map(pathOf)),
  'role/:name/local-secret-ids': { GET: methodOperation('role-field-read', 'read', readLocal) },
  ...recordPaths('role', roles, { name: 'role-', sameAs: fieldPathsIn }),
};
