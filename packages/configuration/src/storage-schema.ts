import { z } from 'zod';
import { isLoopback } from './addresses.ts';
import type { Fault } from './faults.ts';
import { httpUrl } from './seal-schema.ts';

const etcd = z.strictObject({
  type: z.literal('etcd'),
  endpoints: z.array(httpUrl).min(1).max(16),
  prefix: z
    .string()
    .max(128)
    .regex(/^[\w.-]+(\/[\w.-]+)*$/, 'must be a path such as transitd/production: letters, digits, _, . and - between slashes')
    .default('transitd'),
  tls: z
    .strictObject({ ca_file: z.string().optional(), cert_file: z.string().optional(), key_file: z.string().optional() })
    .refine(
      (tls) => (tls.cert_file === undefined) === (tls.key_file === undefined),
      'needs both cert_file and key_file, or neither',
    )
    .optional(),
  username: z.string().min(1).optional(),
  password_file: z.string().optional(),
});

/**
 * A node serves reads for two intervals after etcd has answered it. A leader of etcd that has lost its quorum may still renew the lease of
 * the node's record, which its successor ends after 5 seconds. Nobody waits for a node without a record when rights are taken away. So two
 * intervals by the clock of the node must end before 5 seconds by the clock of that successor; see `outlastedBy`.
 */
const heartbeatMsMax = 2000;

/** Where the records of the cluster are: in the data directories of its nodes, or in an etcd cluster. */
export const storage = z.discriminatedUnion('type', [z.strictObject({ type: z.literal('raft') }), etcd]);

/** The storage, and the keys that have to go with it. */
interface StorageSettings {
  readonly storage: z.output<typeof storage>;
  readonly cluster_addr?: string | undefined;
  readonly cluster_heartbeat_interval: number;
  readonly retry_join: readonly unknown[];
  readonly non_voter: boolean;
}

/** Returns the faults of the storage in combination with other keys. Each key must already be valid by itself. */
export function storageFaults(config: StorageSettings): readonly Fault[] {
  const { storage: engine, cluster_addr, cluster_heartbeat_interval: heartbeatMs, retry_join, non_voter } = config;
  if (engine.type !== 'etcd') return [];
  const { endpoints, tls, username, password_file } = engine;
  const faults: Fault[] = [];
  const fault = (path: Fault['path'], text: string): void => void faults.push({ path, text });
  for (const [position, endpoint] of endpoints.entries()) {
    const { protocol, hostname, origin } = new URL(endpoint);
    if (endpoint !== origin && endpoint !== `${origin}/`)
      fault(['storage', 'endpoints', position], `must be only a scheme, a host and a port, such as ${origin}`);
    if (protocol !== 'https:' && !isLoopback(hostname.replace(/^\[|\]$/g, '')))
      fault(
        ['storage', 'endpoints', position],
        'must be an https URL, except on loopback: others could change the records on the way',
      );
  }
  if (tls !== undefined && endpoints.every((endpoint) => endpoint.startsWith('http:')))
    fault(['storage', 'tls'], 'is set, but no endpoint is an https URL');
  if ((username === undefined) !== (password_file === undefined))
    fault(
      ['storage', username === undefined ? 'username' : 'password_file'],
      'is missing: username and password_file go together',
    );
  if (cluster_addr === undefined)
    fault(['cluster_addr'], 'is required with storage.type etcd: the other nodes forward requests to this address');
  if (heartbeatMs > heartbeatMsMax)
    fault(
      ['cluster_heartbeat_interval'],
      `must be at most ${heartbeatMsMax / 1000}s with storage.type etcd: a node must stop serving reads before etcd forgets it`,
    );
  if (retry_join.length > 0) fault(['retry_join'], 'has no meaning with storage.type etcd: nodes find each other in etcd');
  if (non_voter) fault(['non_voter'], 'has no meaning with storage.type etcd: no node votes');
  return faults;
}
