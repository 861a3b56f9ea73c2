import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { AuditDevices } from '@transitd/audit';
import { parseConfig } from '@transitd/configuration';
import { Node } from '@transitd/node';
import { pino } from 'pino';
import { freePort } from '../../../test/cluster/harness/free-port.ts';
import { authMethods } from '../src/auth/auth-methods.ts';
import { createRouter } from '../src/pipeline/router.ts';
import { allRoutes } from '../src/routes.ts';
import { TestMetrics } from './test-metrics.ts';

export interface RealNode {
  readonly node: Node;
  readonly url: string;
  readonly rootToken: string;
  /** The only recovery share. */
  readonly share: string;
  readonly routes: ReturnType<typeof allRoutes>;
  close(): Promise<void>;
}

/** A node in this process with storage, a static seal, a cluster of one and an audit file. Tests send requests to every route by HTTP. */
export async function realNode(): Promise<RealNode> {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-real-'));
  const keyFile = join(folder, 'seal.key');
  writeFileSync(keyFile, Buffer.alloc(32, 7), { mode: 0o600 });
  const config = parseConfig({
    node_id: 'n1',
    data_dir: join(folder, 'data'),
    listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
    cluster_addr: `127.0.0.1:${await freePort('127.0.0.1')}`,
    seal: { type: 'static', key_id: 'k', key_file: keyFile },
    audit: [{ type: 'file', name: 'file', path: join(folder, 'audit.log') }],
  });
  const log = pino({ level: 'silent' });
  const metrics = new TestMetrics();
  const audit = await AuditDevices.open({
    devices: config.audit,
    log,
    observer: { logged: () => undefined, failed: () => undefined, changed: () => undefined },
  });
  const onFatal = (error: Error): never => {
    throw error;
  };
  const routes = allRoutes(metrics, audit, { follow: () => Readable.from(['a line\n']) });
  const node = await Node.open({ config, log, authMethods, onFatal });
  const { rootToken, shares } = await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 });
  const server = createServer(createRouter({ node, log, metrics, routes, bodyBytesMax: 1_000_000, audit }));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    server.close();
    server.closeAllConnections();
    await node.stop();
    await audit?.close();
    rmSync(folder, { recursive: true });
  };
  const share = shares[0]?.toString('base64') ?? '';
  return { node, url: `http://127.0.0.1:${port}/v1`, rootToken, share, routes, close };
}
