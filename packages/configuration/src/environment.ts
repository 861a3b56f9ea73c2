import { didYouMean } from '@transitd/access';
import { type Fault, isTextAt, type SectionSchema } from './faults.ts';
import { peerSettings } from './peer-variables.ts';
import type { Config } from './schema.ts';
import type { KeyPath } from './source.ts';

/** Variables with the prefix `TRANSITD_` that are not configuration: those of the client, and the fault injection of tests. */
const notConfiguration = new Set([
  'TRANSITD_ADDR',
  'TRANSITD_TOKEN',
  'TRANSITD_CACERT',
  'TRANSITD_CAPATH',
  'TRANSITD_CLIENT_CERT',
  'TRANSITD_CLIENT_KEY',
  'TRANSITD_TLS_SERVER_NAME',
  'TRANSITD_SKIP_VERIFY',
  'TRANSITD_NAMESPACE',
  'TRANSITD_FORMAT',
  'TRANSITD_SOURCE_TOKEN',
  'TRANSITD_FAILPOINTS',
]);

/** The setting of each environment variable: `TRANSITD_LOG_LEVEL` → `log.level`. Lists need the file, except the first listener. */
const variables: Readonly<Record<string, readonly [keyof Config, ...(string | number)[]]>> = {
  TRANSITD_NODE_ID: ['node_id'],
  TRANSITD_DATA_DIR: ['data_dir'],
  TRANSITD_API_ADDR: ['api_addr'],
  TRANSITD_CLUSTER_ADDR: ['cluster_addr'],
  TRANSITD_CLUSTER_LISTEN: ['cluster_listen'],
  TRANSITD_CLUSTER_HEARTBEAT_INTERVAL: ['cluster_heartbeat_interval'],
  TRANSITD_FEATURE_LEVEL_RAISE_AFTER: ['feature_level_raise_after'],
  TRANSITD_RETRY_JOIN_CA_FILE: ['retry_join_ca_file'],
  TRANSITD_PERFORMANCE_STANDBY: ['performance_standby'],
  TRANSITD_NON_VOTER: ['non_voter'],
  TRANSITD_LISTEN_ADDRESS: ['listeners', 0, 'address'],
  TRANSITD_LISTEN_TLS_CERT_FILE: ['listeners', 0, 'tls', 'cert_file'],
  TRANSITD_LISTEN_TLS_KEY_FILE: ['listeners', 0, 'tls', 'key_file'],
  TRANSITD_LISTEN_TLS_CLIENT_CA_FILE: ['listeners', 0, 'tls', 'client_ca_file'],
  TRANSITD_LISTEN_TLS_CLIENT_CRL_FILE: ['listeners', 0, 'tls', 'client_crl_file'],
  TRANSITD_LISTEN_TLS_CLIENT_AUTH: ['listeners', 0, 'tls', 'client_auth'],
  TRANSITD_LISTEN_TLS_MIN_VERSION: ['listeners', 0, 'tls', 'min_version'],
  TRANSITD_LISTEN_TLS_DISABLE: ['listeners', 0, 'tls_disable'],
  TRANSITD_LISTEN_MAX_REQUEST_SIZE: ['listeners', 0, 'max_request_size'],
  TRANSITD_LISTEN_HEADERS_TIMEOUT: ['listeners', 0, 'headers_timeout'],
  TRANSITD_UI: ['ui'],
  TRANSITD_TELEMETRY_ADDRESS: ['telemetry', 'address'],
  TRANSITD_TELEMETRY_PREFIX: ['telemetry', 'prefix'],
  TRANSITD_TRACING_ENDPOINT: ['tracing', 'endpoint'],
  TRANSITD_TRACING_CA_FILE: ['tracing', 'ca_file'],
  TRANSITD_TRACING_SAMPLE_ONE_IN: ['tracing', 'sample_one_in'],
  TRANSITD_SEAL_TYPE: ['seal', 'type'],
  TRANSITD_SEAL_NAME: ['seal', 'name'],
  TRANSITD_SEAL_KEY_ID: ['seal', 'key_id'],
  TRANSITD_SEAL_KEY_FILE: ['seal', 'key_file'],
  TRANSITD_SEAL_KEY_ENV: ['seal', 'key_env'],
  TRANSITD_SEAL_PREVIOUS_KEY_ID: ['seal', 'previous', 'key_id'],
  TRANSITD_SEAL_PREVIOUS_KEY_FILE: ['seal', 'previous', 'key_file'],
  TRANSITD_SEAL_PREVIOUS_KEY_ENV: ['seal', 'previous', 'key_env'],
  TRANSITD_SEAL_LIBRARY: ['seal', 'library'],
  TRANSITD_SEAL_SLOT: ['seal', 'slot'],
  TRANSITD_SEAL_TOKEN_LABEL: ['seal', 'token_label'],
  TRANSITD_SEAL_KEY_LABEL: ['seal', 'key_label'],
  TRANSITD_SEAL_PIN_FILE: ['seal', 'pin_file'],
  TRANSITD_SEAL_PIN_ENV: ['seal', 'pin_env'],
  TRANSITD_SEAL_ADDRESS: ['seal', 'address'],
  TRANSITD_SEAL_MOUNT_PATH: ['seal', 'mount_path'],
  TRANSITD_SEAL_KEY_NAME: ['seal', 'key_name'],
  TRANSITD_SEAL_NAMESPACE: ['seal', 'namespace'],
  TRANSITD_SEAL_TOKEN_FILE: ['seal', 'token_file'],
  TRANSITD_SEAL_TOKEN_ENV: ['seal', 'token_env'],
  TRANSITD_SEAL_DISABLE_RENEWAL: ['seal', 'disable_renewal'],
  TRANSITD_SEAL_REGION: ['seal', 'region'],
  TRANSITD_SEAL_KMS_KEY_ID: ['seal', 'kms_key_id'],
  TRANSITD_SEAL_ENDPOINT: ['seal', 'endpoint'],
  TRANSITD_SEAL_CREDENTIALS_FILE: ['seal', 'credentials_file'],
  TRANSITD_SEAL_PROFILE: ['seal', 'profile'],
  TRANSITD_SEAL_ROLE_ARN: ['seal', 'role_arn'],
  TRANSITD_SEAL_ROLE_SESSION_NAME: ['seal', 'role_session_name'],
  TRANSITD_SEAL_WEB_IDENTITY_TOKEN_FILE: ['seal', 'web_identity_token_file'],
  TRANSITD_SEAL_VAULT_NAME: ['seal', 'vault_name'],
  TRANSITD_SEAL_TENANT_ID: ['seal', 'tenant_id'],
  TRANSITD_SEAL_CLIENT_ID: ['seal', 'client_id'],
  TRANSITD_SEAL_CLIENT_SECRET_FILE: ['seal', 'client_secret_file'],
  TRANSITD_SEAL_CLIENT_SECRET_ENV: ['seal', 'client_secret_env'],
  TRANSITD_SEAL_ENVIRONMENT: ['seal', 'environment'],
  TRANSITD_SEAL_PROJECT: ['seal', 'project'],
  TRANSITD_SEAL_KEY_RING: ['seal', 'key_ring'],
  TRANSITD_SEAL_CRYPTO_KEY: ['seal', 'crypto_key'],
  TRANSITD_SEAL_TLS_CA_FILE: ['seal', 'tls', 'ca_file'],
  TRANSITD_SEAL_TLS_CERT_FILE: ['seal', 'tls', 'cert_file'],
  TRANSITD_SEAL_TLS_KEY_FILE: ['seal', 'tls', 'key_file'],
  TRANSITD_SEAL_TLS_SERVER_NAME: ['seal', 'tls', 'server_name'],
  TRANSITD_SEAL_TLS_SKIP_VERIFY: ['seal', 'tls', 'skip_verify'],
  TRANSITD_STORAGE_TYPE: ['storage', 'type'],
  TRANSITD_STORAGE_PREFIX: ['storage', 'prefix'],
  TRANSITD_STORAGE_TLS_CA_FILE: ['storage', 'tls', 'ca_file'],
  TRANSITD_STORAGE_TLS_CERT_FILE: ['storage', 'tls', 'cert_file'],
  TRANSITD_STORAGE_TLS_KEY_FILE: ['storage', 'tls', 'key_file'],
  TRANSITD_STORAGE_USERNAME: ['storage', 'username'],
  TRANSITD_STORAGE_PASSWORD_FILE: ['storage', 'password_file'],
  TRANSITD_RAFT_HEARTBEAT: ['raft', 'heartbeat'],
  TRANSITD_RAFT_ELECTION_TIMEOUT: ['raft', 'election_timeout'],
  TRANSITD_RAFT_LEASE: ['raft', 'lease'],
  TRANSITD_RAFT_SNAPSHOT_THRESHOLD: ['raft', 'snapshot_threshold'],
  TRANSITD_RAFT_TRAILING_LOGS: ['raft', 'trailing_logs'],
  TRANSITD_RAFT_DISK_RESERVE: ['raft', 'disk_reserve'],
  TRANSITD_BARRIER_ROTATION_MAX_OPERATIONS: ['barrier_rotation', 'max_operations'],
  TRANSITD_BARRIER_ROTATION_INTERVAL: ['barrier_rotation', 'interval'],
  TRANSITD_CIPHERTEXT_PREFIX: ['ciphertext_prefix'],
  TRANSITD_WORKERS: ['workers'],
  TRANSITD_LIMITS_READS: ['limits', 'reads'],
  TRANSITD_LIMITS_CHANGES: ['limits', 'changes'],
  TRANSITD_LIMITS_WAITING: ['limits', 'waiting'],
  TRANSITD_LIMITS_BODY_MEMORY: ['limits', 'body_memory'],
  TRANSITD_LIMITS_CONNECTIONS: ['limits', 'connections'],
  TRANSITD_TOKENS_DEFAULT_TTL: ['tokens', 'default_ttl'],
  TRANSITD_TOKENS_MAX_TTL: ['tokens', 'max_ttl'],
  TRANSITD_LOG_LEVEL: ['log', 'level'],
  TRANSITD_LOG_FORMAT: ['log', 'format'],
};

/** The names of all variables of the configuration. */
export const variableNames: readonly string[] = Object.keys(variables);

/** A configuration with the settings of the environment merged into it. */
export interface Overlaid {
  readonly settings: unknown;
  /** Returns the variable that set a key; undefined if none did. */
  readonly variableOf: (path: KeyPath) => string | undefined;
  /** One for each unknown variable with the prefix `TRANSITD_`. */
  readonly faults: readonly Fault[];
}

/**
 * Merges the settings of the environment into a configuration. The value of a key that is always a string stays a string, such as a name
 * of digits. Any other value is parsed as in YAML: a boolean, a number or a string.
 * @param schemaOf - returns the schema of a section
 */
export function withEnvironment(
  input: unknown,
  environment: NodeJS.ProcessEnv,
  schemaOf: (section: keyof Config) => SectionSchema,
): Overlaid {
  let settings = input;
  const unknown: string[] = [];
  const used = new Map<string, string>();
  for (const [name, text] of Object.entries(environment)) {
    if (!name.startsWith('TRANSITD_') || notConfiguration.has(name) || text === undefined) continue;
    const path = variables[name];
    if (path === undefined) {
      unknown.push(name);
      continue;
    }
    const [section, ...rest] = path;
    const value = /^(true|false|0|[1-9]\d*)$/.test(text) && !isTextAt(schemaOf(section), rest) ? JSON.parse(text) : text;
    settings = withValueAt(settings, path, value);
    used.set(path.join('.'), name);
  }
  for (const { path, value, name } of peerSettings(settings, environment)) {
    settings = withValueAt(settings, path, value);
    used.set(path.join('.'), name);
  }
  const faults = unknown
    // The variable that a key such as `token_env` names holds a secret. Its name is known only after the whole configuration has been read.
    .filter((name) => !namesKeyVariable(settings, name))
    .map((name) => ({
      path: [name],
      text: `is not an environment variable of the configuration: correct its name or unset it${didYouMean(name, variableNames)}`,
    }));
  return { settings, variableOf: (path) => used.get(path.join('.')), faults };
}

/** Returns the environment variable of a key, with list positions; undefined if the key needs the file. */
export const variableNameOf = (path: KeyPath): string | undefined =>
  Object.entries(variables).find(([, other]) => other.join('.') === path.join('.'))?.[0];

/** The keys that name a variable with a secret. */
const secretVariableKeys: ReadonlySet<string> = new Set(['key_env', 'token_env', 'pin_env', 'client_secret_env']);

function namesKeyVariable(input: unknown, name: string): boolean {
  if (typeof input !== 'object' || input === null) return false;
  return Object.entries(input).some(
    ([key, value]) => (secretVariableKeys.has(key) && value === name) || namesKeyVariable(value, name),
  );
}

function withValueAt(target: unknown, [first, ...rest]: readonly (string | number)[], value: unknown): unknown {
  if (first === undefined) return value;
  if (typeof first === 'number') {
    const list = Array.isArray(target) ? [...target] : [];
    list[first] = withValueAt(list[first], rest, value);
    return list;
  }
  const record = typeof target === 'object' && target !== null ? (target as Readonly<Record<string, unknown>>) : {};
  return { ...record, [first]: withValueAt(record[first], rest, value) };
}
