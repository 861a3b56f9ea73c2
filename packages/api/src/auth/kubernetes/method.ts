import { loginName } from '@transitd/access';
import {
  boolean,
  credential,
  dataReply,
  type FieldSchema,
  list,
  object,
  string,
  text,
  textList,
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
import { configFields, ownFields, shownFields } from './fields.ts';
import { KubernetesLogins } from './logins.ts';

type Here = MethodContext<KubernetesLogins>;

const configure = methodHandler({
  about: 'Configure the API server that reviews tokens',
  takes: configFields,
  answers: answers.written,
  run: ({ method, mount }: Here, { values }) => {
    const { pem_keys: keys } = values;
    return method.configure(mount, {
      ...propertiesIn(configFields, values),
      // A string is not split at commas: PEM contains no commas, and clients send several keys as a list.
      pemKeys: typeof keys === 'string' && keys !== '' ? [keys] : textList('pem_keys', keys),
    });
  },
});

const readConfig = methodHandler({
  about: 'Read the configuration of the method, without its token',
  answers: answers.data(
    object({
      ...memberSchemas(shownFields),
      pem_keys: list(string),
      token_reviewer_jwt_set: boolean,
      use_annotations_as_alias_metadata: { const: false },
    }),
  ),
  run: async ({ method, mount }: Here) => {
    const config = found(await method.config(mount));
    return dataReply({
      ...membersIn(shownFields, config),
      token_reviewer_jwt_set: config.tokenReviewerJwt !== '',
      use_annotations_as_alias_metadata: false,
    });
  },
});

/** The name of an identity's alias matters only to identity entities, which do not exist here. */
const inertOfRole = {
  alias_name_source: inert('string', { default: 'serviceaccount_uid', oneOf: ['serviceaccount_uid', 'serviceaccount_name', ''] }),
} as const satisfies FieldSchema;

const roleFields = {
  ...ownFields,
  ...inertOfRole,
  bound_service_account_namespace_selector: unsupportedField(
    'string',
    'it would need the right to read every namespace of the cluster; list them in bound_service_account_namespaces',
  ),
  ...tokenFields,
} as const satisfies FieldSchema;

const { audience, ...alwaysShown } = memberSchemas(ownFields);

const roles = recordOperations({
  noun: 'role',
  name: 'Name of the role',
  takes: roleFields,
  shown: object(
    {
      ...alwaysShown,
      bound_service_account_namespace_selector: { const: '' },
      ...inertMembers(inertOfRole),
      ...tokenSettingsMembers,
    },
    { audience },
  ),
  find: async ({ method, mount }: Here, name) => {
    const role = (await method.roles.find(mount.id, name))?.value;
    if (role === undefined) return undefined;
    const { audience, ...members } = membersIn(ownFields, role);
    return {
      ...members,
      ...(audience !== '' && { audience }),
      bound_service_account_namespace_selector: '',
      alias_name_source: 'serviceaccount_uid',
      ...role.inert,
      ...tokenSettingsJson(role.token),
    };
  },
  list: ({ method, mount }) => method.roles.list(mount.id),
  write: ({ method, mount }, name, values) =>
    method.write(mount, name, {
      ...propertiesIn(ownFields, values),
      inert: inertIn(inertOfRole, values),
      token: tokenSettingsOf(values),
    }),
  delete: ({ method, mount }, name) => method.roles.delete(mount.id, name),
});

const enter = login({
  about: 'Log in with a token of a service account',
  takes: {
    role: text('Role to log in with', { required: true }),
    jwt: credential('Token of the service account', { required: true }),
  },
  roleOf: (_: Here, { role = '' }) => loginName(role),
  run: (method: KubernetesLogins, request, { role = '', jwt = '' }) => method.login(request, role, jwt),
});

/** Logins by tokens of service accounts, which the API server of a Kubernetes cluster reviews. */
export const kubernetes: AuthMethod = {
  type: 'kubernetes',
  open: (services) => new KubernetesLogins(services),
  paths: {
    ...configPaths(readConfig, configure),
    ...recordPaths('role', roles, { name: 'role-' }),
    login: { POST: enter },
  },
};
