import type { InertSettings } from '@transitd/access';
import {
  type Field,
  type FieldKind,
  type FieldSchema,
  ignoredField,
  type JsonSchema,
  RequestError,
  unsupportedField,
} from '@transitd/http';
import { schemaOfKind } from './kept-fields.ts';

/** A field that is stored and returned, but has no effect. @param detail - `default`: the value that is in force */
export const inert = <Kind extends FieldKind>(
  kind: Kind,
  detail: Pick<Field, 'default' | 'oneOf' | 'signed'> = {},
): Field<Kind> & { readonly ignored: true } => ({
  ...ignoredField(kind),
  ...detail,
  about: 'Stored and returned, but has no effect',
});

/** Settings of mounts and auth methods. */
export const inertOfMount = {
  allowed_response_headers: inert('strings'),
  audit_non_hmac_request_keys: inert('strings'),
  audit_non_hmac_response_keys: inert('strings'),
  delegated_auth_accessors: inert('strings'),
  force_no_cache: inert('bool'),
  identity_token_key: inert('string'),
  listing_visibility: inert('string', { default: 'hidden', oneOf: ['hidden', 'unauth', ''] }),
  passthrough_request_headers: inert('strings'),
  token_type: inert('string', {
    default: 'default-service',
    oneOf: ['default-service', 'default-batch', 'service', 'batch', ''],
  }),
  trim_request_trailing_slashes: inert('bool'),
} as const satisfies FieldSchema;

/** Version of the plugin of a mount or an auth method. */
export const plugin_version = unsupportedField('string', 'each plugin has only the version that is built in');

/** Settings of mounts and auth methods that cannot be set. */
export const unsupportedOfMount = {
  plugin_version,
  user_lockout_config: unsupportedField('any', 'five wrong passwords lock a name for 15 minutes, at every auth method'),
} as const satisfies FieldSchema;

/** Returns the schemas of inert settings in an answer. */
export const inertMembers = (declared: FieldSchema): Readonly<Record<string, JsonSchema>> =>
  Object.fromEntries(Object.entries(declared).map(([name, { kind }]) => [name, schemaOfKind[kind]]));

/** Returns the inert settings among the values of a request. @throws RequestError `invalid_request` */
export function inertIn(declared: FieldSchema, values: Readonly<Record<string, unknown>>): InertSettings {
  const given = Object.entries(values).filter(([name, value]) => Object.hasOwn(declared, name) && value !== undefined);
  for (const [name, value] of given) {
    const allowed = declared[name]?.oneOf;
    if (allowed !== undefined && !allowed.includes(String(value)))
      throw new RequestError('invalid_request', `${name} must be one of ${allowed.filter((one) => one !== '').join(', ')}`);
  }
  return Object.fromEntries(given) as InertSettings; // already converted to their kinds
}
