// @live
// Versions that age by themselves: no node uses a version any longer than the answer to the rotation that retires it, and old versions are
// deleted once, after their time, whatever node is active then.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { base64 } from '../process/live-server.ts';
import type { LiveCluster } from './harness/live-cluster.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';
import { until } from './harness/until.ts';

const fakeTime = ['x86_64-linux-gnu', 'aarch64-linux-gnu']
  .map((machine) => `/usr/lib/${machine}/faketime/libfaketimeMT.so.1`)
  .find((file) => existsSync(file));
const key = 'transit/keys/aging';
const deleted = /"msg":"deleted versions of a key that were due by trim_after"/g;

describe('a key whose versions age, in a cluster', function () {
  this.timeout(scenarioMs);
  let folder = '';
  before(() => {
    if (fakeTime === undefined) throw new Error('libfaketime is not installed: apt-get install libfaketime');
    folder = mkdtempSync(join(tmpdir(), 'transitd-aging-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('is obeyed by every node at each answer, and trimmed once after a failover and a restart', () => {
    const file = join(folder, 'time');
    writeFileSync(file, '-3h\n');
    const env = {
      ...{ LD_PRELOAD: fakeTime ?? '', FAKETIME_TIMESTAMP_FILE: file },
      ...{ FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' },
    };
    return withCluster({ env: () => env, workers: 1 }, async (cluster) => {
      const leader = await cluster.settled();
      const [standby = leader] = cluster.others(leader);
      expect((await cluster.ask(standby, 'POST', key)).status).to.equal(200);
      const kept = { keep_encryption_versions: 1, keep_decryption_versions: 2, trim_after: '1h' };
      expect((await cluster.ask(standby, 'POST', `${key}/config`, kept)).status).to.equal(200);
      const ciphertexts: string[] = [];
      for (let version = 1; version <= 4; version++) {
        const made = await cluster.ask(standby, 'POST', 'transit/encrypt/aging', { plaintext: base64(`${version}`) });
        ciphertexts.push(made.string('data.ciphertext'));
        const rotated = await cluster.ask(standby, 'POST', `${key}/rotate`);
        expect(rotated.at('data')).to.deep.include({ latest_version: version + 1, min_decryption_version: version });
        // Each node at once, by the first request after the answer.
        expect(await used(cluster, ciphertexts)).to.deep.equal(
          cluster.nodes.map(() => ({ encrypts: version + 1, decrypts: [version] })),
        );
      }
      const next = (await cluster.ask(standby, 'GET', key)).at('data.next_trim');
      expect(next).to.have.property('min_available_version', 2);

      await leader.kill();
      const successor = await cluster.leader(cluster.others(leader));
      const read = await cluster.askWhenLed(successor, 'GET', key);
      expect(read.at('data')).to.deep.include({ ...kept, trim_after: 3600, min_available_version: 0, next_trim: next });
      await Promise.all(cluster.others(leader).map((node) => node.stop()));

      writeFileSync(file, '+0\n');
      await Promise.all(cluster.nodes.map((node) => node.start()));
      await cluster.settled();
      for (const node of cluster.nodes)
        await until(`${node.name} has the trimmed key`, async () => {
          const answer = await cluster.askWhenLed(node, 'GET', key);
          return answer.status === 200 && answer.at('data.min_available_version') === 4;
        });
      expect(await used(cluster, ciphertexts)).to.deep.equal(cluster.nodes.map(() => ({ encrypts: 5, decrypts: [4] })));
      const lines = cluster.nodes.map(({ log }) => log.match(deleted)?.length ?? 0);
      expect(
        lines.reduce((sum, one) => sum + one, 0),
        'deleted once',
      ).to.equal(1);
    });
  });
});

/** Returns the version with which each node encrypts, and those of the ciphertexts that it decrypts. */
const used = (cluster: LiveCluster, ciphertexts: readonly string[]) =>
  Promise.all(
    cluster.nodes.map(async (node) => {
      const encrypted = await cluster.ask(node, 'POST', 'transit/encrypt/aging', { plaintext: base64('x') });
      const decrypts: number[] = [];
      for (const [at, ciphertext] of ciphertexts.entries()) {
        const { status } = await cluster.ask(node, 'POST', 'transit/decrypt/aging', { ciphertext });
        if (status === 200) decrypts.push(at + 1);
      }
      return { encrypts: encrypted.at('data.key_version'), decrypts };
    }),
  );
