// @live
// Callers without a share try to keep a node sealed.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';
import { ask, Flood } from './callers.ts';

const stranger = '127.0.0.66';

describe('a loop of resets', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  let shares: readonly string[] = [];
  let root = '';
  before(async () => {
    const folder = bench.folder();
    const file = join(folder, 'transitd.json');
    const config = {
      node_id: 'n1',
      data_dir: join(folder, 'data'),
      listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
      seal: { type: 'shamir' },
    };
    writeFileSync(file, JSON.stringify(config));
    server = await bench.start({ dataDir: folder, command: ['server', '--config', file] });
    const made = await server.call('PUT', 'sys/init', { secret_shares: 3, secret_threshold: 3 }, null);
    shares = made.at('keys') as readonly string[];
    root = made.string('root_token');
  });
  after(() => bench.clean());

  it('does not keep share holders from unsealing, and the answer to each reset says that it was ignored', async () => {
    const reset = (from: string) => ask(server.url, 'PUT', 'sys/unseal', { body: { reset: true }, from });
    const flood = new Flood(20, () => reset(stranger));
    try {
      for (let round = 1; round <= 10; round += 1) {
        for (const [at, key] of shares.entries()) {
          const answer = await server.call('PUT', 'sys/unseal', { key }, null);
          expect(answer.at('sealed'), `round ${round}, share ${at + 1}: ${answer.text}`).to.equal(at < shares.length - 1);
          if (at < shares.length - 1) expect(answer.at('progress')).to.equal(at + 1);
        }
        expect((await server.call('PUT', 'sys/seal', {}, root)).status).to.equal(204);
      }
      await server.call('PUT', 'sys/unseal', { key: shares[0] }, null);
      const ignored = await reset('127.0.0.2');
      expect(ignored.status).to.equal(200);
      expect(JSON.parse(ignored.text)).to.deep.include({
        progress: 1,
        warnings: ['a share was given less than 60 s ago: the shares are kept'],
      });
      const wrong = await ask(server.url, 'PUT', 'sys/unseal', { body: { key: '00'.repeat(33) }, from: stranger });
      expect(wrong.status).to.equal(400);
      const join = { body: { leader_api_addr: 'http://127.0.0.1:1' }, from: stranger };
      expect((await ask(server.url, 'PUT', 'sys/storage/raft/join', join)).text).to.equal('{"joined":true}\n');
      const status = await server.call('GET', 'sys/seal-status', undefined, null);
      expect(status.at('progress'), 'neither a wrong share nor a join changes it').to.equal(1);
    } finally {
      await flood.end();
    }
  });
});
