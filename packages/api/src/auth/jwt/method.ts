import {
  any,
  anything,
  bool,
  credential,
  dataReply,
  duration,
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
  textMap,
  texts,
  unsupportedField,
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
import { urlSpellings } from '../../operation/spellings.ts';
import type { JwtConfig } from './config.ts';
import { type BoundClaims, JwtLogins } from './logins.ts';

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

const onlyJwt = 'logins in a browser do not exist';

/** Parses the settings for a provider. */
function provider(value: JsonValue | undefined): JwtConfig['provider'] {
  const { provider: name, ...more } = objectIn('provider_config', value);
  if (name === undefined && !isSet(more)) return '';
  if (name !== 'kubernetes') throw new RequestError('invalid_request', 'invalid provider_config: provider must be "kubernetes"');
  if (isSet(more)) throw new RequestError('invalid_request', 'invalid provider_config: kubernetes has no other settings');
  return name;
}

/** Settings of the configuration that cannot be set. */
export const unsupportedOfConfig = {
  jwks_pairs: unsupportedField('any', 'a method has one source of keys'),
  oidc_client_id: unsupportedField('string', onlyJwt),
  oidc_client_secret: unsupportedField('string', onlyJwt),
  oidc_response_mode: unsupportedField('string', onlyJwt),
  oidc_response_types: unsupportedField('strings', onlyJwt),
} as const satisfies FieldSchema;

/** Settings that matter only to logins in a browser, which do not exist here. */
const inertOfConfig = { namespace_in_state: inert('bool', { default: true }) } as const satisfies FieldSchema;

/** Settings of a role without effect. */
export const inertOfRole = {
  allowed_redirect_uris: inert('strings'),
  // In the peers, these two only replace a missing expiry or beginning of a token; here the expiry is required.
  expiration_leeway: inert('duration', { signed: true }),
  not_before_leeway: inert('duration', { signed: true }),
  oidc_scopes: inert('strings'),
  verbose_oidc_logging: inert('bool'),
} as const satisfies FieldSchema;

const configFields = {
  jwt_validation_pubkeys: any(
    'Public keys in PEM. Set exactly one source of keys: this, `jwks`, `jwks_file`, `jwks_url`, `oidc_discovery_url` or `provider_config`',
    { shape: { type: 'array', items: { type: 'string' } }, property: 'keys' },
  ),
  jwks: any('JSON Web Key Set, as an object or as JSON text', { shape: { type: ['object', 'string'] } }),
  jwks_file: text('Name of a key set in the configuration file of the node', { property: 'file' }),
  jwks_url: text('HTTPS URL of a key set', { spellings: urlSpellings, property: 'url' }),
  jwks_ca_pem: text('CA certificates in PEM, to verify the server of `jwks_url`', { property: 'urlCa' }),
  oidc_discovery_url: text('HTTPS URL of an issuer: its discovery document, which must name this issuer, names the key set', {
    spellings: urlSpellings,
    property: 'discoveryUrl',
  }),
  oidc_discovery_ca_pem: text('CA certificates in PEM, to verify the servers of the discovery document and of its key set', {
    property: 'discoveryCa',
  }),
  provider_config: any('Its `provider` is `kubernetes`: the keys are those of the Kubernetes cluster in which the nodes run', {
    shape: { type: 'object', properties: { provider: { const: 'kubernetes' } } },
    property: 'provider',
  }),
  bound_issuer: text('Required `iss` claim; `oidc_discovery_url` if omitted', { property: 'issuer' }),
  jwt_supported_algs: texts('Accepted signature algorithms; all asymmetric ones if omitted', { property: 'algorithms' }),
  default_role: text('Role for logins that name no role'),
  ...inertOfConfig,
  ...unsupportedOfConfig,
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

/** Fields of a role itself; `role_type` is always the same, and the settings of its tokens are `tokenFields`. */
const ownFields = {
  bound_audiences: texts('Accepted audiences: `aud` must contain one of them', { dropsEmpty: true, property: 'audiences' }),
  bound_subject: text('Required `sub` claim', { property: 'subject' }),
  user_claim: text('Claim that identifies the user'),
  user_claim_json_pointer: bool('Whether `user_claim` may be a JSON Pointer; the names of other claims always may', {
    default: false,
  }),
  bound_claims: any('Required claims: for each claim, a value or a list of accepted values', { shape: map(anything) }),
  bound_claims_type: text('How the values of `bound_claims` are compared; in a `glob`, each `*` matches any text', {
    oneOf: ['string', 'glob'],
    default: 'string',
  }),
  claim_mappings: textMap('Claims to copy into the token metadata: a metadata name for each claim'),
  groups_claim: text('Claim that lists the groups of the user; a token without it is refused'),
  group_policies: any('Additional policies for each group', { shape: map(list(string)) }),
  clock_skew_leeway: duration('Tolerated clock skew: 0 means a minute, -1 none', {
    signed: true,
    default: 0,
    property: 'leewayS',
  }),
  max_age: duration('Requires the claim `auth_time`, and that it is not longer ago; 0 for no requirement'),
} as const satisfies FieldSchema;

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
