import { z } from 'zod';

export const httpUrl = z.url({ protocol: /^https?$/, error: 'must be a URL such as https://n1.example:8200' });

const staticKey = { key_id: z.string().min(1).max(128), key_file: z.string().optional(), key_env: z.string().optional() };
const oneSource = (value: { key_file?: string | undefined; key_env?: string | undefined }): boolean =>
  (value.key_file === undefined) !== (value.key_env === undefined);
const needsOneSource = { message: 'needs exactly one of key_file and key_env' };

const oneToken = (value: { token_file?: string | undefined; token_env?: string | undefined }): boolean =>
  (value.token_file === undefined) !== (value.token_env === undefined);
const providerTls = z
  .strictObject({
    ca_file: z.string().optional(),
    cert_file: z.string().optional(),
    key_file: z.string().optional(),
    server_name: z.string().min(1).max(253).optional(),
    skip_verify: z.boolean().default(false),
  })
  .refine((tls) => (tls.cert_file === undefined) === (tls.key_file === undefined), {
    message: 'needs both cert_file and key_file, or neither',
  });
/** Of a seal with a provider. */
const sealName = z
  .string()
  .regex(/^[\w-]{1,64}$/, 'must have 1 to 64 characters: letters, digits, _ and -')
  .optional();

const transitSeal = z
  .strictObject({
    type: z.literal('transit'),
    name: sealName,
    address: httpUrl,
    mount_path: z
      .string()
      .regex(/^\/?[\w.-]+(\/[\w.-]+)*\/?$/, 'must be a path such as transit')
      .max(100)
      .default('transit')
      .transform((path) => path.replace(/^\/|\/$/g, '')),
    key_name: z.string().regex(/^[\w.-]{1,100}$/, 'must have 1 to 100 characters: letters, digits, _, . and -'),
    namespace: z
      .string()
      .regex(/^[\x21-\x7e]{1,200}$/, 'must have 1 to 200 printable characters')
      .optional(),
    token_file: z.string().optional(),
    token_env: z.string().optional(),
    disable_renewal: z.boolean().default(false),
    tls: providerTls.prefault({}),
  })
  .refine(oneToken, { message: 'needs exactly one of token_file and token_env' });

const pkcs11Seal = z
  .strictObject({
    type: z.literal('pkcs11'),
    name: sealName,
    library: z.string(),
    slot: z.int().min(0).optional(),
    token_label: z.string().min(1).max(32).optional(),
    key_label: z.string().min(1).max(100).optional(),
    key_id: z
      .string()
      .regex(/^([0-9a-fA-F]{2}){1,32}$/, 'must have 1 to 32 bytes in hex')
      .optional(),
    pin_file: z.string().optional(),
    pin_env: z.string().optional(),
  })
  .refine((value) => (value.pin_file === undefined) !== (value.pin_env === undefined), {
    message: 'needs exactly one of pin_file and pin_env',
  })
  .refine((value) => value.slot !== undefined || value.token_label !== undefined, { message: 'needs slot, token_label or both' })
  .refine((value) => value.key_id !== undefined || value.key_label !== undefined, {
    message: 'needs key_label, key_id or both',
  });

const hostLabel = /^[a-z0-9-]{1,63}$/;
const label = (pattern: RegExp, words: string) => z.string().regex(pattern, `must have ${words}`);
const region = label(hostLabel, '1 to 63 lowercase letters, digits and -');

const awsKmsSeal = z
  .strictObject({
    type: z.literal('awskms'),
    name: sealName,
    // Names of endpoints, not of regions: the SDK refuses them at the first call, or AWS does.
    region: region.refine((name) => !/^fips-|-fips$|^aws-/.test(name), 'must be a region, such as us-east-1'),
    kms_key_id: label(/^[\w:/-]{1,2048}$/, '1 to 2048 characters of a key id, an ARN or an alias'),
    endpoint: httpUrl.optional(),
    credentials_file: z.string().optional(),
    profile: label(/^[^\s[\]]{1,128}$/, '1 to 128 characters without spaces').optional(),
    role_arn: label(
      /^arn:[a-z-]{1,32}:iam::\d{12}:role\/[\w+=,.@/-]{1,576}$/,
      'the form arn:aws:iam::111122223333:role/name',
    ).optional(),
    role_session_name: label(/^[\w+=,.@-]{2,64}$/, '2 to 64 letters, digits and +=,.@_-').optional(),
    web_identity_token_file: z.string().optional(),
  })
  .refine((value) => value.credentials_file === undefined || value.web_identity_token_file === undefined, {
    message: 'has both credentials_file and web_identity_token_file',
  })
  .refine(
    ({ role_arn, role_session_name, web_identity_token_file: file }) =>
      role_arn !== undefined || (role_session_name === undefined && file === undefined),
    { message: 'needs role_arn with role_session_name or web_identity_token_file' },
  );

const azureKeyVaultSeal = z
  .strictObject({
    type: z.literal('azurekeyvault'),
    name: sealName,
    vault_name: label(/^[a-zA-Z][a-zA-Z0-9-]{2,23}$/, '3 to 24 letters, digits and -, a letter first'),
    key_name: label(/^[a-zA-Z0-9-]{1,127}$/, '1 to 127 letters, digits and -'),
    tenant_id: label(/^[\w.-]{1,128}$/, '1 to 128 characters of an id or a domain').optional(),
    client_id: label(/^[\w-]{1,128}$/, '1 to 128 characters of an id').optional(),
    client_secret_file: z.string().optional(),
    client_secret_env: z.string().optional(),
    environment: z.enum(['AZUREPUBLICCLOUD', 'AZUREUSGOVERNMENTCLOUD', 'AZURECHINACLOUD']).default('AZUREPUBLICCLOUD'),
  })
  .refine((value) => value.client_secret_file === undefined || value.client_secret_env === undefined, {
    message: 'has both client_secret_file and client_secret_env',
  })
  .refine(
    ({ client_secret_file: file, client_secret_env: env, tenant_id, client_id }) =>
      (file === undefined && env === undefined) || (tenant_id !== undefined && client_id !== undefined),
    { message: 'needs tenant_id and client_id with a client secret' },
  );

const googleName = label(/^[a-zA-Z0-9_-]{1,63}$/, '1 to 63 letters, digits, _ and -');
const gcpKmsSeal = z.strictObject({
  type: z.literal('gcpckms'),
  name: sealName,
  project: label(/^[a-z0-9.:-]{1,63}$/, '1 to 63 characters of the id of a project'),
  region,
  key_ring: googleName,
  crypto_key: googleName,
  credentials_file: z.string().optional(),
});

/** The configuration of one seal. */
export const seal = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('shamir') }),
  z
    .strictObject({
      type: z.literal('static'),
      ...staticKey,
      previous: z.strictObject(staticKey).refine(oneSource, needsOneSource).optional(),
    })
    .refine(oneSource, needsOneSource),
  transitSeal,
  pkcs11Seal,
  awsKmsSeal,
  azureKeyVaultSeal,
  gcpKmsSeal,
]);
