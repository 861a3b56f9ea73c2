// The data disk is full: writes are refused, reads continue, and acknowledged data stays.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { figureOf, telemetryOf } from '../attack/raw-connections.ts';
import { until } from '../cluster/harness/until.ts';
import { type Answer, base64, type LiveServer, processMs, Workbench } from './live-server.ts';
import { mountable, mountNote, SmallDisk } from './small-disk.ts';

const mebibyte = 1024 * 1024;
/** Below the reserve, which is 48 MiB on a disk this small, and more than flushes and compactions need. */
const lowBytes = 40 * mebibyte;
/** A policy of almost the largest size: the log fills with few of them. */
const policy = `${`# ${'x'.repeat(98)}\n`.repeat(9_000)}path "a" { capabilities = ["read"] }`;

const ballastOf = (dataDir: string): string => join(dataDir, 'data/ballast');

describe('a full data disk', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let disk: SmallDisk | undefined;
  afterEach(async () => {
    await bench.stopAll();
    disk?.unmount();
    disk = undefined;
    await bench.clean();
  });

  const expectStatus = async (status: number, asked: Promise<Answer>): Promise<Answer> => {
    const answer = await asked;
    expect(answer.status, answer.text).to.equal(status);
    return answer;
  };
  const active = (server: LiveServer): Promise<unknown> =>
    until('it is active', async () => (await server.call('GET', 'sys/health', undefined, null)).status === 200, {
      explain: () => server.stderr,
    });
  const figure = async (server: LiveServer, name: string): Promise<number> => figureOf(await telemetryOf(server), name);
  const low = (server: LiveServer, expected: 0 | 1): Promise<unknown> =>
    until(`svc_disk_low is ${expected}`, async () => (await figure(server, 'svc_disk_low')) === expected, {
      explain: () => `${disk?.freeBytes} bytes are free`,
    });

  /** Creates keys, one after the other, until one is refused, and adds the names of those that were acknowledged. */
  const createUntilRefused = async (server: LiveServer, name: string, acknowledged: string[]): Promise<void> => {
    for (let n = 0; ; n += 1) {
      const answer = await server.call('POST', `transit/keys/${name}-${n}`, {});
      if (answer.status !== 200) return expectRefused(Promise.resolve(answer));
      acknowledged.push(`${name}-${n}`);
    }
  };
  const expectRefused = async (asked: Promise<Answer>): Promise<void> => {
    expect((await expectStatus(503, asked)).text).to.contain('the data disk is below its reserve');
  };
  /** Leaves not one free byte, although the node may delete a file meanwhile. */
  const fill = (full: SmallDisk): Promise<unknown> =>
    until('the disk is full', () => {
      full.fillTo(0);
      return full.freeBytes === 0;
    });
  const expectAllThere = async (server: LiveServer, keys: readonly string[]): Promise<void> => {
    const missing: string[] = [];
    for (const key of keys) if ((await server.call('GET', `transit/keys/${key}`)).status !== 200) missing.push(key);
    expect(missing, 'acknowledged keys').to.deep.equal([]);
  };

  const live = mountable ? it : it.skip;
  live(`refuses writes, answers reads and keeps what was acknowledged until there is room${mountNote}`, async () => {
    disk = new SmallDisk(bench.folder(), { mebibytes: 160 });
    const dataDir = disk.dataDir();
    let server = await bench.start({ dataDir });
    await active(server);
    await expectStatus(200, server.call('POST', 'transit/keys/k', {}));
    await expectStatus(200, server.call('POST', 'transit/keys/k/config', { deletion_allowed: true }));
    const plaintext = base64('told before');
    const encrypted = await expectStatus(200, server.call('POST', 'transit/encrypt/k', { plaintext }));
    const ciphertext = encrypted.string('data.ciphertext');
    await until('the ballast is there', () => existsSync(ballastOf(dataDir)));

    const serves = async (): Promise<void> => {
      const decrypted = await expectStatus(200, server.call('POST', 'transit/decrypt/k', { ciphertext }));
      expect(decrypted.at('data.plaintext')).to.equal(plaintext);
      await expectStatus(200, server.call('POST', 'transit/encrypt/k', { plaintext }));
      await expectStatus(200, server.call('GET', 'transit/keys/k'));
      await expectStatus(200, server.call('GET', 'sys/health', undefined, null));
    };
    const refusesWrites = async (): Promise<void> => {
      expect(await figure(server, 'svc_disk_low')).to.equal(1);
      await expectRefused(server.call('POST', 'transit/keys/refused', {}));
      await expectRefused(server.call('POST', 'transit/keys/k/rotate', {}));
      await expectRefused(server.call('DELETE', 'transit/keys/k'));
    };

    // Some writes are under way when the disk falls below its reserve: the reserve is there to finish them.
    const acknowledged: string[] = [];
    const writers = Promise.all(['a', 'b', 'c'].map((name) => createUntilRefused(server, name, acknowledged)));
    await until('some keys are created', () => acknowledged.length >= 10);
    disk.fillTo(lowBytes);
    await writers;
    await until('all that is applied is flushed', async () => {
      const applied = await figure(server, 'svc_raft_storage_stats_applied_index');
      return (await figure(server, 'svc_raft_storage_stats_flushed_index')) === applied;
    });
    await refusesWrites();
    await serves();

    await fill(disk);
    await refusesWrites();
    await serves();
    await server.stop('SIGKILL');
    await fill(disk); // the end of the process gives back files that it had deleted and still kept open

    // A start creates files, but the disk has not one free byte. Deleting the ballast makes room.
    const failed = bench.launch({ dataDir });
    expect((await failed.exited).code, failed.stderr).not.to.equal(0);
    expect(failed.stderr).to.match(/ENOSPC|No space left on device/);
    rmSync(ballastOf(dataDir));
    server = await bench.start({ dataDir });
    await active(server);
    await refusesWrites();
    await serves();
    await expectAllThere(server, acknowledged);

    disk.clear();
    await low(server, 0);
    // The metric changes a moment before consensus knows that there is room.
    await until('a key is created', async () => (await server.call('POST', 'transit/keys/after', {})).status === 200);
    await expectStatus(200, server.call('POST', 'transit/keys/k/rotate', {}));
    await serves();
    await expectStatus(204, server.call('DELETE', 'transit/keys/k'));
    await expectAllThere(server, [...acknowledged, 'after']);
    await server.stop();
  });

  live(`accepts writes again without a restart once the ballast is deleted${mountNote}`, async () => {
    disk = new SmallDisk(bench.folder(), { mebibytes: 160 });
    const dataDir = disk.dataDir();
    const server = await bench.start({ dataDir });
    await active(server);
    await until('the ballast is there', () => existsSync(ballastOf(dataDir)));
    disk.fillTo(lowBytes);
    await low(server, 1);
    await expectRefused(server.call('POST', 'transit/keys/k', {}));
    rmSync(ballastOf(dataDir));
    await low(server, 0);
    await expectStatus(200, server.call('POST', 'transit/keys/k', {}));
    await server.stop();
  });

  live(`compacts its log below the reserve, which makes room${mountNote}`, async () => {
    disk = new SmallDisk(bench.folder(), { mebibytes: 320 });
    const dataDir = disk.dataDir();
    const segments = (): string[] => readdirSync(join(dataDir, 'data/generation-1/log')).sort();
    let server = await bench.start({ dataDir });
    await active(server);
    const [first] = segments();
    for (let n = 0; segments().length === 1; n += 1)
      await expectStatus(204, server.call('PUT', `sys/policies/acl/p${n % 4}`, { policy }));
    // More entries than the process keeps after the next start, and too few for the current process to compact its log.
    for (let n = 0; n < 120; n += 1) await expectStatus(200, server.call('POST', `transit/keys/k${n}`, {}));
    await server.stop('SIGKILL');
    expect(segments()).to.include(first);

    disk.fillTo(lowBytes);
    const env = { TRANSITD_RAFT_SNAPSHOT_THRESHOLD: '100', TRANSITD_RAFT_TRAILING_LOGS: '0' };
    server = await bench.start({ dataDir, env });
    await until('the first segment of the log is gone', () => !segments().includes(first ?? ''), {
      explain: () => `${segments()}, ${disk?.freeBytes} bytes are free\n${server.stderr}`,
    });
    await low(server, 0);
    await expectStatus(200, server.call('POST', 'transit/keys/after', {}));
    await expectAllThere(server, ['after', ...Array.from({ length: 120 }, (_, n) => `k${n}`)]);
    await server.stop();
  });
});
