import type { AppRoleChange } from '@transitd/access';
import { type Body, dataReply, type Field, type FieldSchema, object, RequestError } from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { keptIfOmitted, memberSchemas, membersIn, propertiesIn } from '../operation/kept-fields.ts';
import type { Params, Route } from '../operation/operation.ts';
import { name, ownFields, requireRole } from './approle.ts';
import { methodHandler, methodOperation, methodRoute } from './auth-method.ts';
import { tokenFields } from './login-fields.ts';

/** A field of a role that is also read and written at its own path below the role. */
interface FieldPath {
  /** Path below the role. */
  readonly path: string;
  /** Names of the field there. A request may use any of them; the first one that is present counts. The response has all of them. */
  readonly members: readonly [string, ...string[]];
  /** A second path of the same field. */
  readonly twin?: string;
}

const cidrPaths = ['secret-id-bound-cidrs', 'bound-cidr-list'] as const;
const fieldPaths: readonly FieldPath[] = [
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
export function rolePathsIn({ method, name }: Params, body: Body = {}): readonly string[] {
  const setsField = (member: string, { members: [first] }: FieldPath): boolean => fieldOf(member) === fieldOf(first);
  const pathsOf = (member: string): readonly string[] =>
    member === 'role_id' ? ['role-id'] : fieldPaths.filter((each) => setsField(member, each)).map(({ path }) => path);
  return Object.keys(body).flatMap((member) => pathsOf(member).map((path) => `auth/${method}/role/${name}/${path}`));
}

/** Makes the route that reads, writes and resets one field of a role, as in the peers. */
function fieldRoute({ path, members, twin }: FieldPath): Route {
  const [first] = members;
  const main = fieldOf(first);
  const { default: inForce, ...field } = roleFields[main] as Field;
  const schema = { [main]: field };
  const isOfToken = Object.hasOwn(tokenFields, main);
  const change = (value: unknown): AppRoleChange => {
    const properties = propertiesIn(schema, { [main]: value } as never); // already converted to the kind of the field
    return isOfToken ? { token: properties } : { ...properties, token: {} };
  };
  const underAllNames = <T>(value: T) => Object.fromEntries(members.map((member) => [member, value]));
  const read = methodHandler({
    about: `Read \`${first}\` of a role`,
    takes: { name },
    answers: answers.data(object(underAllNames(memberSchemas(schema)[main] ?? {}))),
    run: async (context, { values }) => {
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
    run: async ({ services, mount }, { values }) => {
      const given: Readonly<Record<string, unknown>> = values;
      const value = members.map((member) => given[member]).find((one) => one !== undefined);
      if (value === undefined) throw new RequestError('invalid_request', `missing ${first}`);
      await services.logins.approle.update(mount, values.name, change(value));
    },
  });
  const remove = methodHandler({
    about: `Reset \`${first}\` of a role to its default`,
    takes: { name },
    answers: answers.written,
    run: async ({ services, mount }, { values }) => {
      if ((await services.logins.approle.roles.find(mount.id, values.name)) === undefined) return;
      await services.logins.approle.update(mount, values.name, change(inForce ?? (field.kind === 'strings' ? [] : 0)));
    },
  });
  /**
   * `atTwin` returns the other path of the same field. `inWhole` adds the path of the whole role, because a write there can set the field
   * too.
   */
  const atTwin = ({ method, name }: Params) => (twin === undefined ? [] : [`auth/${method}/role/${name}/${twin}`]);
  const inWhole = (params: Params) => [`auth/${params.method}/role/${params.name}`, ...atTwin(params)];
  return methodRoute(`role/:name/${path}`, {
    GET: methodOperation('approle-role-field-read', 'read', { approle: read }, { sameAs: atTwin }),
    POST: methodOperation('approle-role-field-write', 'update', { approle: write }, { sameAs: inWhole }),
    DELETE: methodOperation('approle-role-field-reset', 'delete', { approle: remove }, { sameAs: inWhole }),
  });
}

const readLocal = methodHandler({
  about: 'Read `local_secret_ids` of a role; always false',
  takes: { name },
  answers: answers.data(object({ local_secret_ids: { const: false } })),
  run: async (context, { values }) => {
    await requireRole(context, values.name);
    return dataReply({ local_secret_ids: false });
  },
});

/** Routes of single fields of a role. */
export const approleFieldRoutes: readonly Route[] = [
  ...fieldPaths.map(fieldRoute),
  methodRoute('role/:name/local-secret-ids', { GET: methodOperation('approle-role-field-read', 'read', { approle: readLocal }) }),
];
