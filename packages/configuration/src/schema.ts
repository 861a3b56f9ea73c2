import { isAbsolute, resolve } from 'node:path';
import { isCidr } from '@transitd/process';
import { outlastedBy } from '@transitd/raft-core';
import { z } from 'zod';
import { httpUrl, seal } from './seal-schema.ts';
import { storage } from './storage-schema.ts';
import { parseByteSize, parseDurationMs } from './units.ts';

/** The prefix of a mount's ciphertext strings, before `:v1:`. */
export const ciphertextPrefixPattern = /^[a-z][a-z0-9]{0,31}$/;

/** Bounds of a duration or a size, as the configuration has them. `orZero`: 0 is allowed too. */
interface Bounds {
  readonly min?: string;
  readonly max?: string;
  readonly orZero?: boolean;
}

/** Returns the bounds in words: `between 1s and 5m`, `0 or at least 24h`. */
const rangeText = ({ min, max, orZero = false }: Bounds): string => {
  const range = min === undefined ? `at most ${max}` : max === undefined ? `at least ${min}` : `between ${min} and ${max}`;
  return orZero ? `0 or ${range}` : range;
};

/** @param parse - returns the number of a text, or undefined */
const quantity =
  (kind: 'duration' | 'size', form: string, parse: (text: string | number) => number | undefined) =>
  (bounds: Bounds = {}) => {
    const limit = (text: string | undefined, absent: number): number =>
      text === undefined ? absent : (parse(text) ?? Number.NaN);
    const [min, max] = [limit(bounds.min, 0), limit(bounds.max, Number.POSITIVE_INFINITY)];
    const bounded = bounds.min !== undefined || bounds.max !== undefined;
    return z
      .union([z.string(), z.number()], { error: `must be ${form}` })
      .transform((text, context) => {
        const value = parse(text);
        if (value === undefined) context.addIssue({ code: 'custom', message: `must be ${form}` });
        return value ?? 0;
      })
      .refine(
        (value) => (value >= min && value <= max) || (bounds.orZero === true && value === 0),
        `must be ${rangeText(bounds)}`,
      )
      .meta({ kind, ...(bounded && { range: rangeText(bounds) }) });
  };

const givenDurationMs = quantity('duration', 'a duration such as 10s, 150ms or 1h', parseDurationMs);
const givenByteSize = quantity('size', 'a size such as 33554432 or 512MiB', parseByteSize);
const durationMs = (fallback: string, bounds?: Bounds) => givenDurationMs(bounds).prefault(fallback);
const optionalDurationMs = (bounds?: Bounds) => givenDurationMs(bounds).optional();
const byteSize = (fallback: string, bounds?: Bounds) => givenByteSize(bounds).prefault(fallback);

/** `host:port`; for port 0 the operating system chooses a free port. */
const listenAddress = z.string().transform((text, context) => {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65_535) {
    context.addIssue({ code: 'custom', message: 'must be an address such as 127.0.0.1:8200' });
    return { host: '', port: 0 };
  }
  return { host: match[1] ?? match[2] ?? '', port };
});

/** An address that other nodes connect to: both host and port are required. */
const peerAddress = z
  .string()
  .regex(/^(?:\[[0-9a-fA-F:.]+\]|[^:[\]\s/\\@?#%]{1,253}):[1-9]\d{0,4}$/, 'must be an address such as n1.example:8201')
  .refine((text) => Number(text.slice(text.lastIndexOf(':') + 1)) <= 65_535, 'must have a port up to 65535')
  .refine((text) => URL.canParse(`wss://${text.replace(/\d+$/, '1')}`), 'must have a host that may stand in a URL');

const tls = z
  .strictObject({
    cert_file: z.string(),
    key_file: z.string(),
    client_ca_file: z.string().optional(),
    client_crl_file: z.string().optional(),
    client_auth: z.enum(['required', 'optional']).optional(),
    min_version: z.enum(['1.2', '1.3']).default('1.2'),
  })
  .refine((value) => value.client_ca_file !== undefined || (value.client_crl_file ?? value.client_auth) === undefined, {
    message: 'needs client_ca_file for client_crl_file and client_auth',
  });

const listener = z
  .strictObject({
    address: listenAddress,
    tls: tls.optional(),
    tls_disable: z.boolean().default(false),
    max_request_size: byteSize('33554432', { max: '256MiB' }), // a text of V8 has at most 512 MiB
    headers_timeout: durationMs('10s', { min: '1s', max: '5m' }),
  })
  .refine((value) => value.tls !== undefined || value.tls_disable, { message: 'needs tls or tls_disable: true' })
  .refine((value) => value.tls === undefined || !value.tls_disable, { message: 'has both tls and tls_disable' });

const pkcs11Library = z.strictObject({
  name: z.string().regex(/^[\w-]{1,64}$/, 'must have 1 to 64 characters: letters, digits, _ and -'),
  path: z.string().refine(isAbsolute, 'must be an absolute path'),
});

const deviceName = z.string().regex(/^[\w-]{1,64}$/, 'must have 1 to 64 characters: letters, digits, _ and -');
const auditDevice = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('file'),
    name: deviceName,
    path: z.string().refine(isAbsolute, 'must be an absolute path'),
    mode: z
      .string()
      .regex(/^0?6[0-6][0-4]$/, 'must be a file mode such as "0600" or "0640"')
      .default('0600')
      .transform((text) => Number.parseInt(text, 8)),
    sync: z.boolean().default(false),
  }),
  z.strictObject({ type: z.literal('stdout'), name: deviceName }),
]);
/** The target of a device. Two devices may not share one: a hash chain has one writer. */
const targetOf = (device: z.output<typeof auditDevice>): string => (device.type === 'file' ? resolve(device.path) : device.type);

/** Limits of the requests in flight on one node. */
const limits = z.strictObject({
  reads: z.int().min(1).max(100_000).default(1024),
  changes: z.int().min(1).max(100_000).default(256),
  logins: z.int().min(1).max(100_000).default(64),
  waiting: z.int().min(0).max(100_000).default(1024),
  body_memory: byteSize('256MiB', { min: '1MiB' }),
  connections: z.int().min(16).max(1_000_000).default(4096),
});

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const log = z.strictObject({ level: z.enum(logLevels).default('info'), format: z.enum(['json', 'pretty']).default('json') });

const tokenTtl = durationMs('768h', { min: '1s', max: '3650d' });

/** Shortest election timeout of any node. The leases of all other nodes rely on it, whatever their own timeouts are. */
export const electionTimeoutMsMin = 1000;
/**
 * Longest leader lease. A lease is safe while the voters that granted it vote for no other node. Each voter promises this for its own
 * election timeout, so the longest lease ends before the shortest election timeout, by the clocks of any two nodes.
 */
export const leaseMsMax = outlastedBy(electionTimeoutMsMin);

const expiryTime = z.iso.datetime({ offset: true, error: 'must be a time such as 2030-01-01T00:00:00Z' });

/** The whole configuration: each key, its default and its range. Durations become milliseconds, sizes bytes. */
export const configSchema = z.strictObject({
  node_id: z.string().regex(/^[\w.-]{1,64}$/, 'must have 1 to 64 characters: letters, digits, _, . and -'),
  data_dir: z.string().min(1),
  api_addr: httpUrl.optional(),
  cluster_addr: peerAddress.optional(),
  cluster_listen: listenAddress.optional(),
  cluster_heartbeat_interval: durationMs('1s', { min: '100ms', max: '1m' }),
  feature_level_raise_after: durationMs('0s', { max: '3650d' }),
  retry_join: z.array(httpUrl).max(32).default([]),
  retry_join_ca_file: z.string().optional(),
  performance_standby: z.boolean().default(true),
  non_voter: z.boolean().default(false),
  listeners: z.array(listener).min(1),
  ui: z.boolean().default(false),
  telemetry: z
    .strictObject({
      address: listenAddress.optional(),
      prefix: z
        .string()
        .regex(/^[a-z][a-z0-9]{0,15}$/, 'must have 1 to 16 characters: lowercase letters and digits, a letter first')
        .default('svc'),
    })
    .prefault({}),
  tracing: z
    .strictObject({
      endpoint: httpUrl.optional(),
      ca_file: z.string().optional(),
      sample_one_in: z.int().min(1).max(1_000_000).default(100),
    })
    .prefault({}),
  seal: seal.default({ type: 'shamir' }),
  migrate_seal_from: seal.optional(),
  storage: storage.default({ type: 'raft' }),
  raft: z
    .strictObject({
      heartbeat: durationMs('50ms', { min: '20ms' }),
      election_timeout: durationMs('1s', { min: `${electionTimeoutMsMin / 1000}s`, max: '1m' }),
      lease: optionalDurationMs({ max: `${leaseMsMax}ms` }),
      snapshot_threshold: z.int().min(100).default(50_000),
      trailing_logs: z.int().min(0).default(10_000),
      disk_reserve: byteSize('512MiB'),
    })
    .refine((raft) => raft.election_timeout >= 3 * raft.heartbeat, {
      message: 'election_timeout must be at least three times heartbeat',
    })
    // Each compaction costs synced writes. If a compaction freed next to nothing, every write would cause another one.
    .refine((raft) => raft.trailing_logs <= raft.snapshot_threshold / 2, {
      message: 'trailing_logs must be at most half of snapshot_threshold',
    })
    // A lost or late heartbeat costs no lease. A longer lease would delay the election after the leader's process has ended.
    .transform((raft) => ({ ...raft, lease: raft.lease ?? Math.min(leaseMsMax, 3 * raft.heartbeat) }))
    .prefault({}),
  barrier_rotation: z
    .strictObject({
      max_operations: z.int().min(1_000_000).max(2_147_483_648).default(2_147_483_648),
      interval: durationMs('0', { min: '24h', orZero: true }),
    })
    .prefault({}),
  pkcs11_libraries: z
    .array(pkcs11Library)
    .default([])
    .refine((libraries) => new Set(libraries.map(({ name }) => name)).size === libraries.length, 'has the same name twice'),
  audit: z
    .array(auditDevice)
    .max(8)
    .default([])
    .refine((devices) => new Set(devices.map(({ name }) => name)).size === devices.length, 'has the same name twice')
    .refine(
      (devices) => new Set(devices.map(targetOf)).size === devices.length,
      'has the same file twice, or two devices of type stdout',
    ),
  ciphertext_prefix: z
    .string()
    .regex(ciphertextPrefixPattern, 'must have 1 to 32 characters: lowercase letters and digits, a letter first')
    .default('svc'),
  trusted_proxies: z.array(z.string().refine(isCidr, 'must be a CIDR block such as 10.0.0.0/8')).max(64).default([]),
  jwks_files: z
    .record(
      z.string().regex(/^[\w.-]{1,64}$/, 'must have a name of 1 to 64 characters: letters, digits, _, . and -'),
      z.string().min(1),
    )
    .default({}),
  workers: z
    .union([z.literal('auto'), z.int().min(0).max(64)], { error: 'must be auto or a whole number from 0 to 64' })
    .default('auto')
    .meta({ kind: 'integer or choice', range: '`auto`, 0 to 64' }),
  limits: limits.prefault({}),
  tokens: z
    .strictObject({ default_ttl: tokenTtl, max_ttl: tokenTtl })
    .refine((tokens) => tokens.default_ttl <= tokens.max_ttl, { message: 'default_ttl must be at most max_ttl' })
    .prefault({}),
  license: z.strictObject({ expiry_time: expiryTime.transform((text) => Date.parse(text)) }).optional(),
  log: log.prefault({}),
});

export type Config = z.output<typeof configSchema>;
export type ConfigInput = z.input<typeof configSchema>;
export type ListenerConfig = Config['listeners'][number];
export type LogConfig = Config['log'];
