// @live
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { runCommandLine } from '../src/command-line.ts';
import { noLocalWork } from './no-local-work.ts';

let data: object = {};
const server: Server = createServer((_req, res) => {
  res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify({ request_id: 'r', data, warnings: null }));
});

/** Returns what the command prints for this answer. */
async function printed(answer: object): Promise<string> {
  data = answer;
  const { log } = console;
  const lines: string[] = [];
  console.log = (line: string) => lines.push(line);
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await runCommandLine(['replication', 'status', '--address', address], noLocalWork);
  } finally {
    console.log = log;
  }
  return lines.join('\n');
}

describe('the status of replication shows what the runbook reads there', () => {
  before(() => once(server.listen(0, '127.0.0.1'), 'listening'));
  after(() => server.close());

  it('of a secondary: why it stopped, and the addresses of its primary', async () => {
    const connection = { connection_status: 'stopped', stop_reason: 'primary_is_older' };
    const text = await printed({ mode: 'secondary', ...connection, known_primary_cluster_addrs: ['e1:8201', 'e2:8201'] });
    expect(text).to.match(/^Stop Reason +primary_is_older$/m);
    expect(text).to.match(/^Primary Addresses +e1:8201, e2:8201$/m);
  });

  it('of a primary: which secondary names a later epoch without a proof', async () => {
    const secondaries = [
      { node_id: 'west', connection_status: 'disconnected', unproven_epoch: 7 },
      { node_id: 'north', connection_status: 'connected', last_wal: 3 },
    ];
    const text = await printed({ mode: 'primary', secondaries });
    expect(text).to.match(/Unproven Epoch$/m);
    expect(text).to.match(/^west .* 7$/m);
  });
});
