import { type Changed, type InertSettings, newTokenSettings, type RoleChange, type TokenSettings } from '@transitd/access';
import { any, bool, credential, type FieldSchema, text, texts, unsupportedField } from '@transitd/http';
import { newRecord, type RecordOf } from '../../operation/kept-fields.ts';
import { serverSpellings } from '../../operation/spellings.ts';

/** Fields of the configuration that an answer shows. */
export const shownFields = {
  kubernetes_host: text('API server: its URL, or its host with or without a port. HTTPS, except on loopback', {
    required: true,
    spellings: serverSpellings,
  }),
  kubernetes_ca_cert: text('CA certificates in PEM, to verify the API server; if empty, those of the pod of the node'),
  disable_local_ca_jwt: bool(
    'Do not use the CA certificates and the token of the pod: without values here, the default CA certificates and the reviewed token itself are used',
    { default: false },
  ),
  pem_keys: any('Public keys or certificates in PEM, one of which must have signed the token', {
    shape: { type: 'array', items: { type: 'string' } },
  }),
  issuer: text('Required `iss` claim; `kubernetes/serviceaccount` if empty'),
  disable_iss_validation: bool('Accept any issuer', { default: true }),
} as const satisfies FieldSchema;

export const configFields = {
  ...shownFields,
  token_reviewer_jwt: credential('Token with which the API server is called; if empty, that of the pod, or the reviewed token'),
  use_annotations_as_alias_metadata: unsupportedField('bool', 'there are no identity entities, so nobody would read them'),
} as const satisfies FieldSchema;

export interface KubernetesConfig extends RecordOf<typeof configFields> {
  readonly pemKeys: readonly string[];
}

export type KubernetesConfigChange = Changed<KubernetesConfig>;

export const newConfig: KubernetesConfig = { ...newRecord(configFields), pemKeys: [] };

/** Fields of a role itself; the settings of its tokens are `tokenFields`. */
export const ownFields = {
  bound_service_account_names: texts('Accepted names of service accounts; each `*` matches any text', { dropsEmpty: true }),
  bound_service_account_namespaces: texts('Accepted namespaces; each `*` matches any text', { dropsEmpty: true }),
  audience: text('Required audience: `aud` must contain it'),
} as const satisfies FieldSchema;

export interface KubernetesRole extends RecordOf<typeof ownFields> {
  readonly inert: InertSettings;
  readonly token: TokenSettings;
}

export type KubernetesRoleChange = RoleChange<KubernetesRole>;

export const newRole: KubernetesRole = { ...newRecord(ownFields), inert: {}, token: newTokenSettings };
