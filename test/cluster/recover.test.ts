// A majority of the disks is lost. The acknowledged writes are recovered from a remaining disk into a new cluster.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import type { Answer } from '../process/live-server.ts';
import { expectCode, type Ran, run } from '../process/transitd-command.ts';
import type { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, withCluster, withNodes } from './harness/scenario.ts';
import { caughtUp } from './harness/survivors.ts';
import { until } from './harness/until.ts';

/** Writes that were acknowledged. */
interface Acknowledged {
  readonly ciphertexts: readonly { readonly key: string; readonly ciphertext: string; readonly plaintext: string }[];
  readonly token: string;
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

async function write(cluster: LiveCluster, node: LiveNode): Promise<Acknowledged> {
  const done = async (method: string, path: string, body: unknown = {}): Promise<Answer> => {
    const answer = await cluster.askWhenLed(node, method, path, body);
    expect([200, 204], `${path}: ${answer.text}`).to.include(answer.status);
    return answer;
  };
  const ciphertexts = [];
  for (const key of ['first', 'second']) {
    await done('POST', `transit/keys/${key}`);
    for (const version of [1, 2, 3]) {
      const plaintext = base64(`${key} under version ${version}`);
      const ciphertext = (await done('POST', `transit/encrypt/${key}`, { plaintext })).string('data.ciphertext');
      ciphertexts.push({ key, ciphertext, plaintext });
      if (version < 3) await done('POST', `transit/keys/${key}/rotate`);
    }
  }
  await done('POST', 'sys/policies/acl/app', { policy: 'path "transit/*" { capabilities = ["update"] }' });
  const token = (await done('POST', 'auth/token/create', { policies: ['app'] })).string('auth.client_token');
  return { ciphertexts, token };
}

async function expectAll(node: LiveNode, rootToken: string, { ciphertexts, token }: Acknowledged): Promise<void> {
  for (const { key, ciphertext, plaintext } of ciphertexts) {
    const answer = await node.ask('POST', `transit/decrypt/${key}`, { token, body: { ciphertext } });
    expect(answer.status, `${node.name}: ${answer.text}`).to.equal(200);
    expect(answer.at('data.plaintext')).to.equal(plaintext);
    const read = await node.ask('GET', `transit/keys/${key}`, { token: rootToken });
    expect(read.at('data.latest_version'), read.text).to.equal(3);
  }
}

describe('a cluster that lost the majority of its disks', function () {
  this.timeout(scenarioMs);
  let home = '';
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'transitd-recover-'));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  for (const { seal, size } of [
    { seal: 'shamir', size: 3 },
    { seal: 'static', size: 1 },
  ] as const)
    it(`continues as a new one of ${size} with every acknowledged write, from the remaining disk, ${seal} seal`, () =>
      withCluster({ seal }, async (old) => {
        const survivor = old.node(3);
        const acknowledged = await write(old, await old.leader());
        await caughtUp(old, survivor);
        const applied = Number((await survivor.ask('GET', 'sys/leader')).at('raft_applied_index'));
        await Promise.all(old.nodes.map((node) => node.kill()));
        for (const { dataDir } of old.others(survivor)) rmSync(dataDir, { recursive: true });

        const out = join(home, 'recovered.snap');
        const recover = (): Promise<Ran> =>
          run(['operator', 'recover', '--data-dir', survivor.dataDir, '--out', out, '--format', 'json'], { env: { HOME: home } });
        await survivor.start();
        expect(expectCode(await recover(), 1).stderr).to.match(/in use by another process: stop the node first$/m);
        await survivor.kill();
        const told = expectCode(await recover(), 0).json();
        expect(told).to.include({ node: 'n3' });
        expect(told['last_index']).to.be.at.least(applied);
        // Neither the failed attempt nor the successful one prevents a later start from this disk.
        await survivor.start();
        await survivor.stop();

        const sealKey = join(dirname(survivor.dataDir), 'seal.key');
        const sameSeal = { seal: { type: 'static', key_id: 'test', key_file: sealKey } };
        await withNodes({ seal, size, ...(seal === 'static' && { config: sameSeal }) }, async (young) => {
          const [founder, ...others] = young.nodes;
          if (founder === undefined) throw new Error('a cluster has a node');
          await young.initialize(founder);
          const restore = (...more: string[]): Promise<Ran> =>
            run(['operator', 'raft', 'snapshot', 'restore', ...more, out], {
              env: { HOME: home, TRANSITD_ADDR: founder.apiAddress, TRANSITD_TOKEN: young.rootToken },
            });
          const refused = expectCode(await restore(), 2);
          expect(refused.stderr).to.match(/400: .*recovered from the disk of a stopped node.* only snapshot-force restores it/);
          expect((await young.askWhenLed(founder, 'GET', 'transit/keys/first')).status, 'nothing has changed').to.equal(404);
          expectCode(await restore('--force'), 0);
          if (seal === 'shamir') await young.unseal(founder, old.shares);
          await founder.reaches(200);
          const isWritten = (): boolean => founder.log.includes("the cluster's authority was written");
          if (size > 1) await until('others can join', isWritten); // a cluster that nobody can join has no authority
          await expectAll(founder, old.rootToken, acknowledged);
          const { rootToken } = old;
          expect((await founder.ask('POST', 'transit/keys/later', { token: rootToken, body: {} })).status).to.equal(200);

          for (const node of others) {
            await young.admit(node, founder);
            if (seal === 'shamir') await young.unseal(node, old.shares);
            await node.reaches(473);
          }
          for (const node of others) await expectAll(node, rootToken, acknowledged);
        });
        expect(readFileSync(out).length, 'the file is left to the operator').to.be.above(0);
      }));
});
