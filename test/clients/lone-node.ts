import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../cluster/harness/free-port.ts';
import type { LiveServer, Workbench } from '../process/live-server.ts';

const host = '127.0.0.1';

/** A node with production settings, alone in its cluster: not initialized, with a cluster port. */
export async function startLoneNode(bench: Workbench): Promise<LiveServer> {
  const folder = bench.folder();
  const file = join(folder, 'transitd.json');
  const config = {
    node_id: 'lone',
    data_dir: join(folder, 'data'),
    cluster_addr: `${host}:${await freePort(host)}`,
    listeners: [{ address: `${host}:0`, tls_disable: true }],
  };
  writeFileSync(file, JSON.stringify(config));
  return bench.start({ dataDir: '', command: ['server', '--config', file] });
}
