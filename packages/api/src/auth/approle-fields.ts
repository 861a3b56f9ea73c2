import type { AppRole, AppRoleChange } from '@transitd/access';
import {
  bool,
  boolean,
  dataReply,
  duration,
  type Field,
  type FieldKind,
  type fields,
  int,
  integer,
  type JsonSchema,
  list,
  noContentReply,
  object,
  RequestError,
  string,
  text,
  texts,
  writtenReply,
} from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { type Call, type Params, pathParam, type Route } from '../operation/operation.ts';
import { cidrSpellings } from '../operation/spellings.ts';
import { type MethodContext, methodHandler, methodOperation, methodRoute } from './auth-method.ts';
import { cidrList } from './login-fields.ts';

const nameIn = (call: Pick<Call, 'params'>): string => pathParam(call, 'name');
const name = text('Name of the role', { required: true });

/** A field of a role that can be read and written at its own path below the role. */
interface RoleField<Kind extends FieldKind> {
  /** Path below the role. */
  readonly path: string;
  /** A second path for the same field below the role. */
  readonly twin?: string;
  /**
   * Names of the field in a body. A request may use any of them; the first name that is present counts. The response has all of them.
   */
  readonly members: readonly [string, ...string[]];
  readonly field: Field<Kind>;
  readonly schema: JsonSchema;
  readonly show: (role: AppRole) => unknown;
  readonly change: (value: ValueOf<Kind>) => AppRoleChange;
  /** The value after a DELETE. */
  readonly reset: ValueOf<Kind>;
}

type SameAs = (params: Params) => readonly string[];

type ValueOf<Kind extends FieldKind> = NonNullable<ReturnType<typeof fields<{ value: Field<Kind> }>>['values']['value']>;

const token = (change: AppRoleChange['token']): AppRoleChange => ({ token: change });
const role = (change: Omit<AppRoleChange, 'token'>): AppRoleChange => ({ ...change, token: {} });

async function requireRole({ services, mount }: MethodContext, call: Pick<Call, 'params'>): Promise<AppRole> {
  const found = await services.logins.approle.roles.find(mount.id, nameIn(call));
  if (found === undefined) throw new RequestError('not_found', '');
  return found.value;
}

/** Makes the route that reads, writes and resets one field of a role, as in the peers. */
function fieldRoute<Kind extends FieldKind>(of: RoleField<Kind>): Route {
  const { path, twin, members, field, schema, show, change, reset } = of;
  const [first] = members;
  const named = (member: string) => [member, member === first ? field : { ...field, aliasOf: first }] as const;
  const takes = { name, ...Object.fromEntries(members.map(named)) };
  const underAllNames = <T>(value: T) => Object.fromEntries(members.map((member) => [member, value]));
  const read = methodHandler({
    about: `Read \`${first}\` of a role`,
    takes: { name },
    answers: answers.data(object(underAllNames(schema))),
    run: async (context, call) => dataReply(underAllNames(show(await requireRole(context, call)))),
  });
  const write = methodHandler({
    about: `Set \`${first}\` of a role; other fields keep their values`,
    takes,
    answers: answers.written,
    run: async ({ services, mount }, { values, warnings, ...call }) => {
      const given: Readonly<Record<string, unknown>> = values;
      const value = members.map((member) => given[member]).find((one) => one !== undefined);
      if (value === undefined) throw new RequestError('invalid_request', `missing ${first}`);
      await services.logins.approle.update(mount, nameIn(call), change(value as ValueOf<Kind>)); // already converted to this kind
      return writtenReply(warnings);
    },
  });
  const remove = methodHandler({
    about: `Reset \`${first}\` of a role to its default`,
    takes: { name },
    answers: answers.written,
    run: async ({ services, mount }, call) => {
      if ((await services.logins.approle.roles.find(mount.id, nameIn(call))) === undefined) return noContentReply;
      await services.logins.approle.update(mount, nameIn(call), change(reset));
      return noContentReply;
    },
  });
  /**
   * `atTwin` returns the other path of the same field. `inWhole` adds the path of the whole role, because a write there can set the field
   * too.
   */
  const atTwin: SameAs = ({ method, name }) => (twin === undefined ? [] : [`auth/${method}/role/${name}/${twin}`]);
  const inWhole: SameAs = (params) => [`auth/${params.method}/role/${params.name}`, ...atTwin(params)];
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
  run: async (context, call) => {
    await requireRole(context, call);
    return dataReply({ local_secret_ids: false });
  },
});

/** Routes of single fields of a role. */
export const approleFieldRoutes: readonly Route[] = [
  fieldRoute({
    path: 'policies',
    members: ['token_policies', 'policies'],
    field: texts('Policies of the tokens'),
    schema: list(string),
    show: (role) => role.token.policies,
    change: (policies) => token({ policies }),
    reset: [],
  }),
  fieldRoute({
    path: 'bind-secret-id',
    members: ['bind_secret_id'],
    field: bool('Require a secret ID at login'),
    schema: boolean,
    show: (role) => role.bindSecretId,
    change: (bindSecretId) => role({ bindSecretId }),
    reset: true,
  }),
  fieldRoute({
    path: 'secret-id-num-uses',
    members: ['secret_id_num_uses'],
    field: int('Maximum number of uses of a secret ID; 0 for no limit', { min: 0 }),
    schema: integer,
    show: (role) => role.secretIdNumUses,
    change: (secretIdNumUses) => role({ secretIdNumUses }),
    reset: 0,
  }),
  fieldRoute({
    path: 'secret-id-ttl',
    members: ['secret_id_ttl'],
    field: duration('TTL of a secret ID; 0 for no expiry'),
    schema: integer,
    show: (role) => role.secretIdTtlS,
    change: (secretIdTtlS) => role({ secretIdTtlS }),
    reset: 0,
  }),
  ...(
    [
      ['secret-id-bound-cidrs', 'bound-cidr-list', 'secret_id_bound_cidrs'],
      ['bound-cidr-list', 'secret-id-bound-cidrs', 'bound_cidr_list'], // its alias
    ] as const
  ).map(([path, twin, member]) =>
    fieldRoute({
      path,
      twin,
      members: [member],
      field: texts('CIDR blocks from which secret IDs may be used', { spellings: cidrSpellings }),
      schema: list(string),
      show: (role) => role.secretIdBoundCidrs,
      change: (cidrs) => role({ secretIdBoundCidrs: cidrList(cidrs) }),
      reset: [],
    }),
  ),
  fieldRoute({
    path: 'token-bound-cidrs',
    members: ['token_bound_cidrs'],
    field: texts('CIDR blocks from which the tokens may be used', { spellings: cidrSpellings }),
    schema: list(string),
    show: (role) => role.token.boundCidrs,
    change: (cidrs) => token({ boundCidrs: cidrList(cidrs) }),
    reset: [],
  }),
  fieldRoute({
    path: 'token-num-uses',
    members: ['token_num_uses'],
    field: int('Maximum number of uses of a token; 0 for no limit', { min: 0 }),
    schema: integer,
    show: (role) => role.token.numUses,
    change: (numUses) => token({ numUses }),
    reset: 0,
  }),
  fieldRoute({
    path: 'token-ttl',
    members: ['token_ttl'],
    field: duration('Initial TTL of a token; 0 uses the default of the node'),
    schema: integer,
    show: (role) => role.token.ttlS,
    change: (ttlS) => token({ ttlS }),
    reset: 0,
  }),
  fieldRoute({
    path: 'token-max-ttl',
    members: ['token_max_ttl'],
    field: duration('Maximum TTL of a token, renewals included'),
    schema: integer,
    show: (role) => role.token.maxTtlS,
    change: (maxTtlS) => token({ maxTtlS }),
    reset: 0,
  }),
  fieldRoute({
    path: 'period',
    members: ['token_period', 'period'],
    field: duration('Period of a periodic token: each renewal sets its TTL to this value'),
    schema: integer,
    show: (role) => role.token.periodS,
    change: (periodS) => token({ periodS }),
    reset: 0,
  }),
  methodRoute('role/:name/local-secret-ids', { GET: methodOperation('approle-role-field-read', 'read', { approle: readLocal }) }),
];
