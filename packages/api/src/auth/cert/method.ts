import { loginName } from '@transitd/access';
import { duration, type FieldSchema, object, text, unsupportedField } from '@transitd/http';
import { type AuthMethod, login, type MethodContext, recordPaths } from '../../operation/auth-method.ts';
import { memberSchemas, membersIn, propertiesIn } from '../../operation/kept-fields.ts';
import { tokenFields, tokenSettingsJson, tokenSettingsMembers, tokenSettingsOf } from '../../operation/login-fields.ts';
import { recordOperations } from '../../operation/records.ts';
import { CertLogins } from './logins.ts';
import { ownFields } from './role.ts';

type Here = MethodContext<CertLogins>;

const noOcsp = 'revocation is checked with client_crl_file of the listener';
const noExtensions = 'only names are compared';

/** Settings of a role that cannot be set. */
const unsupportedOfCertRole = {
  required_extensions: unsupportedField('strings', noExtensions),
  allowed_metadata_extensions: unsupportedField('strings', noExtensions),
  ocsp_enabled: unsupportedField('bool', noOcsp),
  ocsp_ca_certificates: unsupportedField('string', noOcsp),
  ocsp_servers_override: unsupportedField('strings', noOcsp),
  ocsp_fail_open: unsupportedField('bool', noOcsp),
  ocsp_query_all_servers: unsupportedField('bool', noOcsp),
  ocsp_max_retries: unsupportedField('int', noOcsp),
  ocsp_this_update_max_age: unsupportedField('duration', noOcsp),
} as const satisfies FieldSchema;

/** An older alias, which other methods do not have. */
const lease = duration('Alias of `token_ttl`', { aliasOf: 'token_ttl' });

const roles = recordOperations({
  noun: 'certificate role',
  name: 'Name of the role',
  takes: { ...ownFields, ...unsupportedOfCertRole, ...tokenFields, lease },
  shown: object({ ...memberSchemas(ownFields), ...tokenSettingsMembers }),
  find: async ({ method, mount }: Here, name) => {
    const role = (await method.roles.find(mount.id, name))?.value;
    return role && { ...membersIn(ownFields, role), ...tokenSettingsJson(role.token) };
  },
  list: ({ method, mount }) => method.roles.list(mount.id),
  write: ({ method, mount }, name, values) =>
    method.write(mount, name, {
      ...propertiesIn(ownFields, values),
      token: tokenSettingsOf({ ...values, ttl: values.ttl ?? values.lease }),
    }),
  delete: ({ method, mount }, name) => method.roles.delete(mount.id, name),
});

const enter = login({
  about: 'Log in with the TLS certificate of the connection',
  takes: { name: text('Name of the role; default: the first role that the certificate matches') },
  roleOf: async ({ method }: Here, { name = '' }, request) =>
    name === '' ? (await method.roleOf(request, '')).name : loginName(name),
  run: (method: CertLogins, request, _, role) => method.login(request, role),
});

/** Logins by TLS client certificates. */
export const cert: AuthMethod = {
  type: 'cert',
  open: (services) => new CertLogins(services),
  paths: { ...recordPaths('certs', roles), login: { POST: enter } },
};
