// @live
// An anonymous caller uses `sys/storage/raft/join` to make a node call addresses and report the result.
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { expect } from 'chai';
import { scenarioMs, withNodes } from '../cluster/harness/scenario.ts';
import { until } from '../cluster/harness/until.ts';
import { startAudited } from '../process/audited-server.ts';
import { Workbench } from '../process/live-server.ts';
import { ask } from './callers.ts';

const stranger = '127.0.0.66';

describe('an anonymous join request', function () {
  this.timeout(scenarioMs);
  const bench = new Workbench();
  const servers: Server[] = [];
  let calls = 0;
  after(async () => {
    for (const server of servers) server.close();
    await bench.clean();
  });

  const target = async (server: Server): Promise<string> => {
    servers.push(server.on('connection', () => (calls += 1)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };
  const join = (node: string, address: string, from = stranger) =>
    ask(node, 'POST', 'sys/storage/raft/join', { body: { leader_api_addr: address }, from });

  it('does not make a member call anybody, and is audited', async () => {
    const { server, rootToken, auditFile } = await startAudited(bench);
    await until('it serves', async () => (await server.call('GET', 'sys/health', undefined, null)).status === 200);
    const silent = await target(createServer());
    for (const address of [silent, 'http://127.0.0.1:1'])
      expect((await join(server.url, address)).text).to.equal('{"joined":true}\n');
    expect(calls).to.equal(0);
    await server.call('GET', 'sys/mounts', undefined, rootToken);
    const entries = readFileSync(auditFile, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(entries.filter(({ request }) => request?.path === 'sys/storage/raft/join')).to.have.lengthOf(4);
  });

  it('gets the same answer whatever the node finds, and is rate-limited by address', () =>
    withNodes({ size: 2 }, async (cluster) => {
      const node = cluster.node(2).apiAddress;
      const replying = (status: number, body: string) =>
        target(createHttpServer((_req, res) => res.writeHead(status, { location: 'http://127.0.0.1:1' }).end(body)));
      const answers = new Set<string>();
      for (const address of [
        'http://127.0.0.1:1',
        await target(createServer((socket) => socket.end('SSH-2.0-secret\r\n'))),
        await replying(404, '{"errors":["secret"]}'),
        await replying(302, ''),
        await replying(200, '{}'),
      ]) {
        const { status, text } = await join(node, address);
        answers.add(`${status} ${text}`);
      }
      expect([...answers]).to.deep.equal(['503 {"errors":["this node could not join: its log says why"]}\n']);
      expect(cluster.node(2).log).to.contain('this node could not join a cluster').and.to.contain('ECONNREFUSED');
      const called = calls;
      for (let n = 0; n < 5; n += 1) expect((await join(node, await replying(200, ''))).status).to.equal(429);
      expect(calls - called).to.equal(0);
      await cluster.initialize(cluster.node(1));
      const operator = await join(node, cluster.node(1).apiAddress, '127.0.0.2');
      expect([operator.status, operator.text]).to.deep.equal([200, '{"joined":true}\n']);
    }));
});
