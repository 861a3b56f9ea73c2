import {
  anything,
  credential,
  dataReply,
  type FieldSchema,
  invalidField,
  isSet,
  type JsonValue,
  list,
  map,
  object,
  objectIn,
  RequestError,
  string,
  text,
  textList,
} from '@transitd/http';
import * as answers from '../../operation/answers.ts';
import {
  type AuthMethod,
  configPaths,
  login,
  type MethodContext,
  methodHandler,
  recordPaths,
} from '../../operation/auth-method.ts';
import { inert, inertIn, inertMembers } from '../../operation/inert-fields.ts';
import { memberSchemas, membersIn, propertiesIn } from '../../operation/kept-fields.ts';
import { tokenFields, tokenSettingsJson, tokenSettingsMembers, tokenSettingsOf } from '../../operation/login-fields.ts';
import { found } from '../../operation/operation.ts';
import { recordOperations } from '../../operation/records.ts';
import { configFields, inertOfConfig, type JwtConfig } from './config.ts';
import { JwtLogins } from './logins.ts';
import { type BoundClaims, ownFields } from './role.ts';

type Here = MethodContext<JwtLogins>;

function objectOf(field: string, value: JsonValue): readonly (readonly [string, JsonValue])[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidField(field, 'expected an object');
  return Object.entries(value);
}

/** Parses the required claims: an object with a value, or a list of values, for each claim. */
function boundClaims(value: JsonValue | undefined): BoundClaims | undefined {
  if (value === undefined || value === null) return undefined;
  const claims = objectOf('bound_claims', value).map(([name, values]) => {
    const listed: readonly JsonValue[] = Array.isArray(values) ? values : [values];
    const scalars = listed.filter((one) => typeof one === 'string' || typeof one === 'number' || typeof one === 'boolean');
    // An empty list would match no token, and ignoring an invalid element could match the wrong tokens.
    if (scalars.length !== listed.length || scalars.length === 0)
      throw invalidField('bound_claims', 'expected values, or lists of them, by claim');
    return [name, scalars] as const;
  });
  return Object.fromEntries(claims);
}

function groupPolicies(value: JsonValue | undefined): Readonly<Record<string, readonly string[]>> | undefined {
  if (value === undefined || value === null) return undefined;
  return Object.fromEntries(
    objectOf('group_policies', value).map(([group, policies]) => [group, textList('group_policies', policies) ?? []]),
  );
}

/** Parses the settings for a provider. */
function provider(value: JsonValue | undefined): JwtConfig['provider'] {
  const { provider: name, ...more } = objectIn('provider_config', value);
  if (name === undefined && !isSet(more)) return '';
  if (name !== 'kubernetes') throw new RequestError('invalid_request', 'invalid provider_config: provider must be "kubernetes"');
  if (isSet(more)) throw new RequestError('invalid_request', 'invalid provider_config: kubernetes has no other settings');
  return name;
}

/** Settings of a role without effect. */
export const inertOfRole = {
  allowed_redirect_uris: inert('strings'),
  // In the peers, these two only replace a missing expiry or beginning of a token; here the expiry is required.
  expiration_leeway: inert('duration', { signed: true }),
  not_before_leeway: inert('duration', { signed: true }),
  oidc_scopes: inert('strings'),
  verbose_oidc_logging: inert('bool'),
} as const satisfies FieldSchema;

const configure = methodHandler({
  about: 'Configure the keys and the issuer of accepted JWTs',
  takes: configFields,
  answers: answers.written,
  run: ({ method, mount }: Here, { values }) => {
    const { jwks, jwt_validation_pubkeys: pubkeys } = values;
    return method.configure(mount, {
      ...propertiesIn(configFields, values),
      // A string is not split at commas: PEM contains no commas, and clients send several keys as a list.
      keys: typeof pubkeys === 'string' ? [pubkeys] : textList('jwt_validation_pubkeys', pubkeys),
      jwks: jwks === undefined || typeof jwks === 'string' ? jwks : JSON.stringify(jwks),
      provider: provider(values.provider_config),
      inert: inertIn(inertOfConfig, values),
    });
  },
});

const readConfig = methodHandler({
  about: 'Read the configuration of the method',
  answers: answers.data(
    object({
      ...memberSchemas(configFields),
      jwt_validation_pubkeys: list(string),
      jwks: string,
      provider_config: map(string),
      ...inertMembers(inertOfConfig),
    }),
  ),
  run: async ({ method, mount }: Here) => {
    const config = found(await method.config(mount));
    const provider_config = config.provider === '' ? {} : { provider: config.provider };
    return dataReply({ ...membersIn(configFields, config), provider_config, namespace_in_state: true, ...config.inert });
  },
});

const roleFields = {
  role_type: text('Role type', { oneOf: ['jwt'], default: 'jwt' }),
  ...ownFields,
  ...inertOfRole,
  ...tokenFields,
} as const satisfies FieldSchema;

const roles = recordOperations({
  noun: 'role',
  name: 'Name of the role',
  takes: roleFields,
  shown: object(
    {
      role_type: { const: 'jwt' },
      ...memberSchemas(ownFields),
      bound_claims: map(list(anything)),
      group_policies: map(list(string)),
      ...tokenSettingsMembers,
    },
    inertMembers(inertOfRole),
  ),
  find: async ({ method, mount }: Here, name) => {
    const role = (await method.roles.find(mount.id, name))?.value;
    return role && { role_type: 'jwt', ...membersIn(ownFields, role), ...role.inert, ...tokenSettingsJson(role.token) };
  },
  list: ({ method, mount }) => method.roles.list(mount.id),
  write: ({ method, mount }, name, values) => {
    const { role_type: type = 'jwt', bound_claims_type: claimsType } = values;
    if (type !== 'jwt' && type !== '') throw new RequestError('invalid_request', 'invalid role_type, expected "jwt"');
    if (claimsType !== undefined && claimsType !== 'string' && claimsType !== 'glob')
      throw new RequestError('invalid_request', 'invalid bound_claims_type, expected "string" or "glob"');
    return method.write(mount, name, {
      ...propertiesIn(ownFields, values),
      boundClaims: boundClaims(values.bound_claims),
      boundClaimsType: claimsType,
      groupPolicies: groupPolicies(values.group_policies),
      inert: inertIn(inertOfRole, values),
      token: tokenSettingsOf(values),
    });
  },
  delete: ({ method, mount }, name) => method.roles.delete(mount.id, name),
});

const enter = login({
  about: 'Log in with a JWT',
  takes: {
    role: text('Role to log in with; `default_role` if omitted'),
    jwt: credential('Signed JWT', { required: true }),
  },
  roleOf: ({ method, mount }: Here, { role = '' }) => method.roleNameOf(mount, role),
  run: (method: JwtLogins, request, { jwt = '' }, role) => method.login(request, role, jwt),
});

/** Logins by JSON Web Tokens. */
export const jwt: AuthMethod = {
  type: 'jwt',
  open: (services) => new JwtLogins(services),
  paths: {
    ...configPaths(readConfig, configure),
    ...recordPaths('role', roles, { name: 'role-' }),
    login: { POST: enter },
  },
};
