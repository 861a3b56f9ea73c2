import type { BoundClaims } from '@transitd/access';
import {
  any,
  anything,
  dataReply,
  duration,
  type FieldSchema,
  invalidField,
  type JsonValue,
  list,
  map,
  object,
  RequestError,
  string,
  text,
  textList,
  textMap,
  texts,
} from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { inertIn, inertMembers, inertOfJwt, inertOfJwtRole, unsupportedOfJwt } from '../operation/inert-fields.ts';
import { memberSchemas, membersIn, propertiesIn } from '../operation/kept-fields.ts';
import { found, type Route } from '../operation/operation.ts';
import { recordOperations } from '../operation/records.ts';
import { urlSpellings } from '../operation/spellings.ts';
import { type MethodContext, methodHandler, methodOperation, methodRoute } from './auth-method.ts';
import { tokenFields, tokenSettingsJson, tokenSettingsMembers, tokenSettingsOf } from './login-fields.ts';

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

const configFields = {
  jwt_validation_pubkeys: any(
    'Public keys in PEM. Set exactly one of `jwt_validation_pubkeys`, `jwks`, `jwks_file` and `jwks_url`',
    { shape: { type: 'array', items: { type: 'string' } }, property: 'keys' },
  ),
  jwks: any('JSON Web Key Set, as an object or as JSON text', { shape: { type: ['object', 'string'] } }),
  jwks_file: text('Name of a key set in the configuration file of the node', { property: 'file' }),
  jwks_url: text('HTTPS URL of a key set', { spellings: urlSpellings, property: 'url' }),
  jwks_ca_pem: text('CA certificates in PEM, to verify the server of `jwks_url`', { property: 'urlCa' }),
  bound_issuer: text('Required `iss` claim', { property: 'issuer' }),
  jwt_supported_algs: texts('Accepted signature algorithms', { property: 'algorithms' }),
  default_role: text('Role for logins that name no role'),
  ...inertOfJwt,
  ...unsupportedOfJwt,
} as const satisfies FieldSchema;

const configure = methodHandler({
  about: 'Configure the keys and the issuer of accepted JWTs',
  takes: configFields,
  answers: answers.written,
  run: ({ services, mount }, { values }) => {
    const { jwks, jwt_validation_pubkeys: pubkeys } = values;
    return services.logins.jwt.configure(mount, {
      ...propertiesIn(configFields, values),
      // A string is not split at commas: PEM contains no commas, and clients send several keys as a list.
      keys: typeof pubkeys === 'string' ? [pubkeys] : textList('jwt_validation_pubkeys', pubkeys),
      jwks: jwks === undefined || typeof jwks === 'string' ? jwks : JSON.stringify(jwks),
      inert: inertIn(inertOfJwt, values),
    });
  },
});

const readConfig = methodHandler({
  about: 'Read the configuration of the method',
  answers: answers.data(
    object({ ...memberSchemas(configFields), jwt_validation_pubkeys: list(string), jwks: string, ...inertMembers(inertOfJwt) }),
  ),
  run: async ({ services, mount }) => {
    const config = found(await services.logins.jwt.config(mount));
    return dataReply({ ...membersIn(configFields, config), namespace_in_state: true, ...config.inert });
  },
});

/** Fields of a role itself; `role_type` is always the same, and the settings of its tokens are `tokenFields`. */
const ownFields = {
  bound_audiences: texts('Accepted audiences: `aud` must contain one of them', { dropsEmpty: true, property: 'audiences' }),
  bound_subject: text('Required `sub` claim', { property: 'subject' }),
  user_claim: text('Claim that identifies the user'),
  bound_claims: any('Required claims: for each claim, a value or a list of accepted values', { shape: map(anything) }),
  bound_claims_type: text('How the values of `bound_claims` are compared; in a `glob`, each `*` matches any text', {
    oneOf: ['string', 'glob'],
    default: 'string',
  }),
  claim_mappings: textMap('Claims to copy into the token metadata: a metadata name for each claim'),
  groups_claim: text('Claim that lists the groups of the user'),
  group_policies: any('Additional policies for each group', { shape: map(list(string)) }),
  clock_skew_leeway: duration('Tolerated clock skew', { property: 'leewayS' }),
} as const satisfies FieldSchema;

const roleFields = {
  role_type: text('Role type', { oneOf: ['jwt'], default: 'jwt' }),
  ...ownFields,
  ...inertOfJwtRole,
  ...tokenFields,
} as const satisfies FieldSchema;

/** Exported because the roles of `approle` and `jwt` share their paths; see roles.ts. */
export const jwtRoles = recordOperations({
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
    inertMembers(inertOfJwtRole),
  ),
  find: async ({ services, mount }: MethodContext, name) => {
    const role = (await services.logins.jwt.roles.find(mount.id, name))?.value;
    return role && { role_type: 'jwt', ...membersIn(ownFields, role), ...role.inert, ...tokenSettingsJson(role.token) };
  },
  list: ({ services, mount }) => services.logins.jwt.roles.list(mount.id),
  write: ({ services, mount }, name, values) => {
    const { role_type: type = 'jwt', bound_claims_type: claimsType } = values;
    if (type !== 'jwt' && type !== '') throw new RequestError('invalid_request', 'invalid role_type, expected "jwt"');
    if (claimsType !== undefined && claimsType !== 'string' && claimsType !== 'glob')
      throw new RequestError('invalid_request', 'invalid bound_claims_type, expected "string" or "glob"');
    return services.logins.jwt.write(mount, name, {
      ...propertiesIn(ownFields, values),
      boundClaims: boundClaims(values.bound_claims),
      boundClaimsType: claimsType,
      groupPolicies: groupPolicies(values.group_policies),
      inert: inertIn(inertOfJwtRole, values),
      token: tokenSettingsOf(values),
    });
  },
  delete: ({ services, mount }, name) => services.logins.jwt.roles.delete(mount.id, name),
});

/** Route of the configuration. Roles and the login share their paths with `approle`; see roles.ts. */
export const jwtRoutes: readonly Route[] = [
  methodRoute('config', {
    GET: methodOperation('jwt-config-read', 'read', { jwt: readConfig }),
    POST: methodOperation('jwt-config-write', 'update', { jwt: configure }),
  }),
];
