// The data disks of both followers are full: the active node refuses writes and names the followers; reads continue.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { figureOf, telemetryOf } from '../attack/raw-connections.ts';
import { base64 } from '../process/live-server.ts';
import { mountable, mountNote, SmallDisk } from '../process/small-disk.ts';
import type { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';
import { until } from './harness/until.ts';

const mebibyte = 1024 * 1024;
/** Below the reserve, which is 48 MiB on disks this small; a follower still accepts entries. */
const lowBytes = 40 * mebibyte;
/** A follower accepts no more entries. */
const fullBytes = 16 * mebibyte;
const refusal = /no quorum has disk space, the data disk is below its reserve on nodes (n\d), (n\d): free disk space there/;

describe('two followers with full data disks', function () {
  this.timeout(scenarioMs);

  async function withSmallDisks(task: (cluster: LiveCluster, diskOf: (node: LiveNode) => SmallDisk) => Promise<void>) {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-disks-'));
    const disks = new Map<string, SmallDisk>();
    const newDisk = (name: string): SmallDisk => {
      mkdirSync(join(folder, name));
      const disk = new SmallDisk(join(folder, name), { mebibytes: 160 });
      disks.set(name, disk);
      return disk;
    };
    const diskOf = ({ name }: LiveNode): SmallDisk => {
      const disk = disks.get(name);
      if (disk === undefined) throw new Error(`${name} has no disk`);
      return disk;
    };
    try {
      await withCluster({ dataDir: (name) => newDisk(name).dataDir() }, (cluster) => task(cluster, diskOf));
    } finally {
      for (const disk of disks.values()) disk.unmount();
      rmSync(folder, { recursive: true });
    }
  }

  const isLow = (node: LiveNode, expected: 0 | 1): Promise<unknown> =>
    until(
      `${node.name} reports svc_disk_low ${expected}`,
      async () => (await figureOf(await telemetryOf(node.server), 'svc_disk_low')) === expected,
    );

  /** Creates keys, one after the other, until one is refused. Adds the names of the acknowledged ones and returns the refusal. */
  async function createUntilRefused(cluster: LiveCluster, node: LiveNode, prefix: string, acknowledged: string[]) {
    for (let n = 0; ; n += 1) {
      const answer = await cluster.ask(node, 'POST', `transit/keys/${prefix}-${n}`, {});
      if (answer.status !== 200) return answer;
      acknowledged.push(`${prefix}-${n}`);
    }
  }

  const live = mountable ? it : it.skip;
  live(`refuses writes, names both, answers reads and loses nothing until there is room${mountNote}`, () =>
    withSmallDisks(async (cluster, diskOf) => {
      const leader = await cluster.settled();
      const followers = cluster.others(leader);
      const names = followers.map(({ name }) => name).sort();
      const plaintext = base64('before the disks were full');
      expect((await cluster.askWhenLed(leader, 'POST', 'transit/keys/k', {})).status).to.equal(200);
      const encrypted = await cluster.askWhenLed(leader, 'POST', 'transit/encrypt/k', { plaintext });
      const ciphertext = encrypted.string('data.ciphertext');

      const expectReads = async (): Promise<void> => {
        for (const node of cluster.nodes) {
          const decrypted = await cluster.askWhenLed(node, 'POST', 'transit/decrypt/k', { ciphertext });
          expect(decrypted.at('data.plaintext'), `${node.name}: ${decrypted.text}`).to.equal(plaintext);
          expect((await cluster.askWhenLed(node, 'GET', 'transit/keys/k')).status).to.equal(200);
          await node.reaches(node === leader ? 200 : 473);
        }
      };
      const expectRefused = async (): Promise<void> => {
        for (const node of cluster.nodes) {
          const answer = await cluster.ask(node, 'POST', 'transit/keys/k/rotate', {});
          expect(answer.status, answer.text).to.equal(503);
          expect(refusal.exec(answer.text)?.slice(1).sort(), answer.text).to.deep.equal(names);
        }
      };

      const [first, second] = followers;
      if (first === undefined || second === undefined) throw new Error('a cluster of three has two followers');
      diskOf(first).fillTo(lowBytes);
      await isLow(first, 1);
      expect((await cluster.askWhenLed(leader, 'POST', 'transit/keys/one-disk-is-low', {})).status).to.equal(200);

      // Writes are in progress when the second disk falls below its reserve: the rest of the disk is there to finish them.
      const acknowledged = ['one-disk-is-low'];
      const writers = ['a', 'b', 'c'].map((prefix) => createUntilRefused(cluster, leader, prefix, acknowledged));
      await until('some keys are created', () => acknowledged.length >= 10);
      diskOf(second).fillTo(lowBytes);
      for (const answer of await Promise.all(writers)) {
        expect(answer.status, answer.text).to.equal(503);
        expect(answer.text).to.match(refusal);
      }
      await expectRefused();
      await expectReads();

      for (const node of followers) diskOf(node).fillTo(fullBytes);
      await expectRefused();
      await expectReads();

      for (const node of followers) diskOf(node).clear();
      for (const node of followers) await isLow(node, 0);
      expect((await cluster.askWhenLed(leader, 'POST', 'transit/keys/after', {})).status).to.equal(200);
      await leader.kill();
      const next = await cluster.leader(followers);
      const missing: string[] = [];
      for (const key of [...acknowledged, 'after'])
        if ((await cluster.askWhenLed(next, 'GET', `transit/keys/${key}`)).status !== 200) missing.push(key);
      expect(missing, 'acknowledged keys').to.deep.equal([]);
    }),
  );
});
