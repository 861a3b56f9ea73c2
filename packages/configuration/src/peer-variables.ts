import type { KeyPath } from './source.ts';

/** A key of the configuration and the variable that sets it. */
interface PeerSetting {
  readonly path: KeyPath;
  readonly value: unknown;
  readonly name: string;
}

/** How a variable sets a key: by its text, as true or false, or by its name, because it contains a secret. */
type Kind = 'text' | 'flag' | 'secret';
type Rows = readonly (readonly [key: string, names: readonly string[], kind?: Kind])[];

/** Returns both names of a variable of Vault and OpenBao. */
const both = (suffix: string): readonly string[] => [`VAULT_${suffix}`, `BAO_${suffix}`];

/** The keys of each type of seal, each with the variables of the peers in their order of precedence. */
const variables: Readonly<Record<string, Rows>> = {
  transit: [
    ['address', both('ADDR')],
    ['key_name', both('TRANSIT_SEAL_KEY_NAME')],
    ['mount_path', both('TRANSIT_SEAL_MOUNT_PATH')],
    ['namespace', both('NAMESPACE')],
    ['tls.ca_file', both('CACERT')],
    ['tls.cert_file', both('CLIENT_CERT')],
    ['tls.key_file', both('CLIENT_KEY')],
    ['tls.server_name', both('TLS_SERVER_NAME')],
    ['disable_renewal', both('TRANSIT_SEAL_DISABLE_RENEWAL'), 'flag'],
    ['tls.skip_verify', both('SKIP_VERIFY'), 'flag'],
    ['token_env', both('TOKEN'), 'secret'],
  ],
  awskms: [
    ['region', ['AWS_REGION', 'AWS_DEFAULT_REGION']],
    ['kms_key_id', both('AWSKMS_SEAL_KEY_ID')],
    ['endpoint', ['AWS_KMS_ENDPOINT']],
  ],
  azurekeyvault: [
    ['tenant_id', ['AZURE_TENANT_ID']],
    ['client_id', ['AZURE_CLIENT_ID']],
    ['environment', ['AZURE_ENVIRONMENT']],
    ['vault_name', both('AZUREKEYVAULT_VAULT_NAME')],
    ['key_name', both('AZUREKEYVAULT_KEY_NAME')],
    ['client_secret_env', ['AZURE_CLIENT_SECRET'], 'secret'],
  ],
  gcpckms: [
    ['project', ['GOOGLE_PROJECT']],
    ['region', ['GOOGLE_REGION']],
    ['key_ring', both('GCPCKMS_SEAL_KEY_RING')],
    ['crypto_key', both('GCPCKMS_SEAL_CRYPTO_KEY')],
    ['credentials_file', ['GOOGLE_CREDENTIALS', 'GOOGLE_APPLICATION_CREDENTIALS']],
  ],
};

/** Keys that replace each other: where one is set, no variable sets the other. */
const alternatives: Readonly<Record<string, string>> = { token_env: 'token_file', client_secret_env: 'client_secret_file' };

const flags: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
]);

/**
 * Returns settings of the seals for which the environment has a variable that Vault and OpenBao read, such as `AWS_REGION`. A key that is
 * set by the file or by a variable of this program keeps its value, because an operator may have set the variables for a command line.
 *
 * The variables also fill `migrate_seal_from`, unless both seals have the same type: then nothing shows which of the two seals a variable
 * means. Only `seal` gets its type from a variable.
 */
export function peerSettings(settings: unknown, environment: NodeJS.ProcessEnv): readonly PeerSetting[] {
  const given = settingAt(settings, ['seal', 'type']);
  const typeName = nameOf(both('SEAL_TYPE'), environment);
  const type = given ?? environment[typeName ?? ''];
  const before = settingAt(settings, ['migrate_seal_from', 'type']);
  const isNamed = given === undefined && typeName !== undefined && rowsOf(type).length > 0;
  return [
    ...(isNamed ? [{ path: ['seal', 'type'], value: type, name: typeName }] : []),
    ...keysOf('seal', rowsOf(type), settings, environment),
    ...(before === type ? [] : keysOf('migrate_seal_from', rowsOf(before), settings, environment)),
  ];
}

const rowsOf = (type: unknown): Rows =>
  typeof type === 'string' && Object.hasOwn(variables, type) ? (variables[type] ?? []) : [];

function keysOf(section: string, rows: Rows, settings: unknown, environment: NodeJS.ProcessEnv): readonly PeerSetting[] {
  return rows.flatMap(([key, names, kind = 'text']) => {
    const path = [section, ...key.split('.')];
    const name = nameOf(names, environment);
    const other = alternatives[key];
    const isSet = [path, ...(other === undefined ? [] : [[section, other]])].some(
      (each) => settingAt(settings, each) !== undefined,
    );
    if (name === undefined || isSet) return [];
    const text = environment[name] ?? '';
    const value = kind === 'secret' ? name : kind === 'flag' ? (flags.get(text.toLowerCase()) ?? text) : text;
    return [{ path, value, name }];
  });
}

const nameOf = (names: readonly string[], environment: NodeJS.ProcessEnv): string | undefined =>
  names.find((name) => (environment[name] ?? '') !== '');

const settingAt = (value: unknown, [first, ...rest]: KeyPath): unknown =>
  first === undefined
    ? value
    : settingAt(typeof value === 'object' && value !== null ? Reflect.get(value, first) : undefined, rest);
