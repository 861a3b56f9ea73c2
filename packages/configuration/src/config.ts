import { readFileSync, realpathSync } from 'node:fs';
import { isIP } from 'node:net';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { isCidr } from '@transitd/access';
import { StartError } from '@transitd/process';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { withEnvironment } from './environment.ts';
import { parseByteSize, parseDurationMs } from './units.ts';

/** The first part of a mount's ciphertext strings. */
export const ciphertextPrefixPattern = /^[a-z][a-z0-9]{0,31}$/;

const durationMs = (fallback: string) =>
  z
    .union([z.string(), z.number()])
    .default(fallback)
    .transform((text, context) => {
      const ms = parseDurationMs(text);
      if (ms === undefined) context.addIssue({ code: 'custom', message: 'is not a duration such as 10s, 150ms or 1h' });
      return ms ?? 0;
    });

const byteSize = (fallback: string) =>
  z
    .union([z.string(), z.number()])
    .default(fallback)
    .transform((text, context) => {
      const bytes = parseByteSize(text);
      if (bytes === undefined) context.addIssue({ code: 'custom', message: 'is not a size such as 33554432 or 512MiB' });
      return bytes ?? 0;
    });

/** `host:port`; port 0 asks the system for a free one. */
const listenAddress = z.string().transform((text, context) => {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (!match || port > 65_535) {
    context.addIssue({ code: 'custom', message: 'is not an address such as 127.0.0.1:8200' });
    return { host: '', port: 0 };
  }
  return { host: match[1] ?? match[2] ?? '', port };
});

/** What others connect to: a host with a name, and a port of its own. */
const peerAddress = z
  .string()
  .regex(/^(?:\[[0-9a-fA-F:.]+\]|[^:[\]\s/]{1,253}):[1-9]\d{0,4}$/, 'is not an address such as n1.example:8201')
  .refine((text) => Number(text.slice(text.lastIndexOf(':') + 1)) <= 65_535, 'has no such port');

const tls = z.strictObject({
  cert_file: z.string(),
  key_file: z.string(),
  client_ca_file: z.string().optional(),
  min_version: z.enum(['1.2', '1.3']).default('1.2'),
});

const listener = z
  .strictObject({
    address: listenAddress,
    tls: tls.optional(),
    tls_disable: z.boolean().default(false),
    max_request_size: byteSize('33554432'),
    headers_timeout: durationMs('10s').refine((ms) => ms >= 1000 && ms <= 5 * 60_000, 'is not between 1s and 5m'),
  })
  .refine((value) => value.tls !== undefined || value.tls_disable, { message: 'needs tls, or tls_disable: true' })
  .refine((value) => value.tls === undefined || !value.tls_disable, { message: 'has both tls and tls_disable' });

const staticKey = { key_id: z.string().min(1).max(128), key_file: z.string().optional(), key_env: z.string().optional() };
const oneSource = (value: { key_file?: string | undefined; key_env?: string | undefined }): boolean =>
  (value.key_file === undefined) !== (value.key_env === undefined);
const needsOneSource = { message: 'needs one of key_file and key_env' };

const seal = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('shamir') }),
  z
    .strictObject({
      type: z.literal('static'),
      ...staticKey,
      previous: z.strictObject(staticKey).refine(oneSource, needsOneSource).optional(),
    })
    .refine(oneSource, needsOneSource),
]);

const pkcs11Library = z.strictObject({
  name: z.string().regex(/^[\w-]{1,64}$/, 'has characters other than letters, digits, _ and - or is longer than 64'),
  path: z.string().refine(isAbsolute, 'is not an absolute path'),
});

const sinkName = z.string().regex(/^[\w-]{1,64}$/, 'has characters other than letters, digits, _ and - or is longer than 64');
const auditSink = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('file'),
    name: sinkName,
    path: z.string().refine(isAbsolute, 'is not an absolute path'),
    mode: z
      .string()
      .regex(/^0?6[0-6][0-4]$/, 'is no mode such as "0600"')
      .default('0600')
      .transform((text) => Number.parseInt(text, 8)),
    sync: z.boolean().default(false),
  }),
  z.strictObject({ type: z.literal('stdout'), name: sinkName }),
]);
/** A chain of entries has one writer. */
const whereTo = (sink: z.output<typeof auditSink>): string => (sink.type === 'file' ? resolve(sink.path) : sink.type);

/** What one node takes on at a time. */
const limits = z.strictObject({
  reads: z.int().min(1).max(100_000).default(1024),
  changes: z.int().min(1).max(100_000).default(256),
  logins: z.int().min(1).max(100_000).default(64),
  waiting: z.int().min(0).max(100_000).default(1024),
  body_memory: byteSize('256MiB').refine((bytes) => bytes >= 1024 * 1024, 'is less than 1MiB'),
  connections: z.int().min(16).max(1_000_000).default(4096),
});

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const log = z.strictObject({ level: z.enum(logLevels).default('info'), format: z.enum(['json', 'pretty']).default('json') });

const tokenTtl = durationMs('768h').refine((ms) => ms >= 1000 && ms <= 3650 * 86_400_000, 'is not between 1s and 3650d');

/** Of any node: the leases of the others rest on it, whatever their own is. */
export const electionTimeoutMsMin = 1000;
/**
 * A leader lease holds while the voters that gave it vote for nobody else, by their own election timeouts: it is shorter than the shortest
 * that any node may have, by more than clocks differ.
 */
export const leaseMsMax = 0.8 * electionTimeoutMsMin;

const schema = z.strictObject({
  node_id: z.string().regex(/^[\w.-]{1,64}$/, 'has characters other than letters, digits, _ . - or is longer than 64'),
  data_dir: z.string().min(1),
  api_addr: z.url({ protocol: /^https?$/ }).optional(),
  cluster_addr: peerAddress.optional(),
  cluster_listen: listenAddress.optional(),
  cluster_heartbeat_interval: durationMs('1s').refine((ms) => ms >= 100 && ms <= 60_000, 'is not between 100ms and 1m'),
  retry_join: z
    .array(z.url({ protocol: /^https?$/ }))
    .max(32)
    .default([]),
  retry_join_ca_file: z.string().optional(),
  performance_standby: z.boolean().default(true),
  non_voter: z.boolean().default(false),
  listeners: z.array(listener).min(1),
  telemetry: z
    .strictObject({
      address: listenAddress.optional(),
      prefix: z
        .string()
        .regex(/^[a-z][a-z0-9]{0,15}$/)
        .default('svc'),
    })
    .prefault({}),
  seal: seal.default({ type: 'shamir' }),
  raft: z
    .strictObject({
      heartbeat: durationMs('150ms').refine((ms) => ms >= 20, 'is less than 20ms'),
      election_timeout: durationMs('1s').refine((ms) => ms >= electionTimeoutMsMin && ms <= 60_000, 'is not between 1s and 1m'),
      lease: durationMs('800ms').refine((ms) => ms <= leaseMsMax, `is more than ${leaseMsMax}ms`),
      snapshot_threshold: z.int().min(100).default(50_000),
      trailing_logs: z.int().min(0).default(10_000),
      disk_reserve: byteSize('512MiB'),
    })
    .refine((raft) => raft.election_timeout >= 3 * raft.heartbeat, {
      message: 'election_timeout must be at least three times heartbeat',
    })
    // Each compaction costs synced writes: one that frees next to nothing would come with every write.
    .refine((raft) => raft.trailing_logs <= raft.snapshot_threshold / 2, {
      message: 'trailing_logs must be at most half of snapshot_threshold',
    })
    .prefault({}),
  barrier_rotation: z
    .strictObject({
      max_operations: z.int().min(1_000_000).max(2_147_483_648).default(2_147_483_648),
      interval: durationMs('0').refine((ms) => ms === 0 || ms >= 24 * 3_600_000, 'is neither 0 nor at least 24h'),
    })
    .prefault({}),
  pkcs11_libraries: z
    .array(pkcs11Library)
    .default([])
    .refine((libraries) => new Set(libraries.map(({ name }) => name)).size === libraries.length, 'has one name twice'),
  audit: z
    .array(auditSink)
    .max(8)
    .default([])
    .refine((sinks) => new Set(sinks.map(({ name }) => name)).size === sinks.length, 'has one name twice')
    .refine((sinks) => new Set(sinks.map(whereTo)).size === sinks.length, 'has one file twice, or two of the standard output'),
  ciphertext_prefix: z.string().regex(ciphertextPrefixPattern).default('svc'),
  trusted_proxies: z.array(z.string().refine(isCidr, 'is not a block of addresses such as 10.0.0.0/8')).max(64).default([]),
  jwks_files: z.record(z.string().regex(/^[\w.-]{1,64}$/), z.string().min(1)).default({}),
  limits: limits.prefault({}),
  tokens: z
    .strictObject({ default_ttl: tokenTtl, max_ttl: tokenTtl })
    .refine((tokens) => tokens.default_ttl <= tokens.max_ttl, { message: 'default_ttl must be at most max_ttl' })
    .prefault({}),
  log: log.prefault({}),
});

export type Config = z.output<typeof schema>;
export type ConfigInput = z.input<typeof schema>;
export type ListenerConfig = Config['listeners'][number];
export type LogConfig = Config['log'];

/**
 * The typed configuration, checked once: every key is known, every value in its range. The environment goes before `input`,
 * and `fixed` before both, whole sections at a time.
 * @throws StartError with one sentence that names the key
 */
export function parseConfig(input: unknown, environment: NodeJS.ProcessEnv = {}, fixed: Partial<ConfigInput> = {}): Config {
  const overlaid = withEnvironment(input ?? {}, environment);
  const result = schema.safeParse(Object.keys(fixed).length === 0 ? overlaid : { ...(overlaid as object), ...fixed });
  if (!result.success) {
    const issue = result.error.issues[0];
    const where = issue && issue.path.length > 0 ? issue.path.join('.') : 'the document';
    throw new StartError(`configuration: ${where}: ${issue?.message ?? 'is not valid'}`);
  }
  const config = result.data;
  if (config.cluster_addr === undefined && (config.retry_join.length > 0 || config.cluster_listen !== undefined))
    throw new StartError('configuration: cluster_addr: is missing, and without it no other node can be reached');
  const large = config.listeners.findIndex(({ max_request_size }) => max_request_size > config.limits.body_memory);
  if (large >= 0)
    throw new StartError(
      `configuration: limits.body_memory: is less than listeners.${large}.max_request_size: no such body would fit`,
    );
  const inside = sealKeyFiles(config).find((file) => isInside(file, config.data_dir));
  if (inside !== undefined) {
    throw new StartError(
      `configuration: seal: the key file ${inside} lies inside data_dir, where a copy of the disk would hold the lock and the key`,
    );
  }
  return config;
}

function sealKeyFiles({ seal }: Config): string[] {
  if (seal.type !== 'static') return [];
  return [seal.key_file, seal.previous?.key_file].filter((file) => file !== undefined);
}

function isInside(file: string, folder: string): boolean {
  const path = relative(realPath(folder), realPath(file));
  return path !== '..' && !path.startsWith(`..${sep}`);
}

/** Without symbolic links, as far as the path exists by now. */
function realPath(path: string): string {
  const absolute = resolve(path);
  try {
    return realpathSync(absolute);
  } catch {
    const parent = dirname(absolute);
    return parent === absolute ? absolute : join(realPath(parent), basename(absolute));
  }
}

/** Reads YAML, of which JSON is a subset. @throws StartError */
export function readConfigFile(file: string, environment: NodeJS.ProcessEnv = process.env): Config {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new StartError(`configuration: ${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`);
  }
  let input: unknown;
  try {
    input = parseYaml(text, { uniqueKeys: true });
  } catch (error) {
    throw new StartError(`configuration: ${file} is not valid YAML: ${(error as Error).message.split('\n')[0]}`);
  }
  return parseConfig(input, environment);
}

/** True for addresses that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** `host:port`, an IPv6 host in brackets: the form in which the configuration names an address. */
export const addressText = ({ host, port }: ListenerConfig['address']): string =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`;
