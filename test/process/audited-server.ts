// A node with a configuration file and an audit file, initialized by its API.
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LiveEtcd } from '../../packages/storage-etcd/test/live-etcd.ts';
import { freePort } from '../cluster/harness/free-port.ts';
import type { LiveServer, StartOptions, Workbench } from './live-server.ts';

export interface AuditedServer {
  readonly server: LiveServer;
  readonly rootToken: string;
  readonly auditFile: string;
}

/**
 * @param sinks - replace the default audit file
 * @param settings - override the configuration
 * @param etcd - has the records of the node; without it, the node keeps them itself
 * @param folder - contains all files of the node, so that it can be started again
 */
export async function startAudited(
  bench: Workbench,
  {
    folder = bench.folder(),
    name = 'conformance',
    sinks,
    settings,
    etcd,
    ...options
  }: Partial<StartOptions> & {
    readonly folder?: string;
    readonly name?: string;
    readonly sinks?: readonly object[];
    readonly settings?: object;
    readonly etcd?: LiveEtcd | undefined;
  } = {},
): Promise<AuditedServer> {
  const auditFile = join(folder, 'logs/audit.log');
  const configFile = join(folder, 'transitd.json');
  const config = {
    node_id: 'n1',
    data_dir: join(folder, 'data'),
    listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
    seal: { type: 'static', key_id: 'test', key_env: 'TEST_SEAL_KEY' },
    audit: sinks ?? [{ type: 'file', name, path: auditFile }],
    ...(etcd && {
      storage: { type: 'etcd', endpoints: [etcd.endpoint], prefix: 'test' },
      cluster_addr: `127.0.0.1:${await freePort('127.0.0.1')}`,
    }),
    workers: 0,
    ...settings,
  };
  writeFileSync(configFile, JSON.stringify(config));
  const env = { TEST_SEAL_KEY: randomBytes(32).toString('base64'), ...options.env };
  const server = await bench.start({ ...options, dataDir: folder, command: ['server', '--config', configFile], env });
  const answer = await server.call('PUT', 'sys/init', { recovery_shares: 1, recovery_threshold: 1 }, null);
  const rootToken = answer.string('root_token');
  return { server, rootToken, auditFile };
}
