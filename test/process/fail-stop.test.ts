// The first storage error ends the process with exit code 74. Nothing is acknowledged after it, and no acknowledged write is lost.
import { execFileSync } from 'node:child_process';
import { mkdirSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { type LiveServer, processMs, Workbench } from './live-server.ts';

interface Load {
  readonly acknowledged: string[];
  /** Statuses in the order of the responses. */
  readonly statuses: number[];
  readonly refusals: string[];
}

/** Writes one key after the other until the server has ended. */
async function writeUntilGone(server: LiveServer, name: string): Promise<Load> {
  const token = server.rootToken;
  const load: Load = { acknowledged: [], statuses: [], refusals: [] };
  for (let serial = 0; ; serial += 1) {
    try {
      const answer = await server.call('POST', `transit/keys/${name}-${serial}`, {}, token);
      load.statuses.push(answer.status);
      if (answer.status === 200) load.acknowledged.push(`${name}-${serial}`);
      else load.refusals.push(answer.text);
    } catch {
      return load;
    }
  }
}

describe('fail-stop', () => {
  const bench = new Workbench();
  const first = new Workbench();
  let initialized: string;
  before(async function () {
    this.timeout(processMs);
    initialized = first.folder();
    await (await first.start({ dataDir: initialized })).stop();
  });
  afterEach(() => bench.clean());
  after(() => first.clean());

  /** Returns a folder with the data of a node that has been initialized and stopped. */
  const started = (): string => {
    const dataDir = bench.folder();
    execFileSync('cp', ['-pR', `${initialized}/.`, dataDir]); // with the modes: copies that others can read are refused
    return dataDir;
  };

  const expectAllThere = async (server: LiveServer, keys: readonly string[]): Promise<void> => {
    const missing: string[] = [];
    for (const key of keys) if ((await server.call('GET', `transit/keys/${key}`)).status !== 200) missing.push(key);
    expect(missing, 'acknowledged keys').to.deep.equal([]);
  };

  const endsWithoutFalsePromise = async (server: LiveServer): Promise<Load> => {
    const loads = await Promise.all(['a', 'b', 'c'].map((name) => writeUntilGone(server, name)));
    expect(await server.exited).to.deep.include({ code: 74 });
    expect(server.stderr).to.match(/"msg":"[^"]*(storage|disk|log)[^"]*"/i);
    for (const { statuses, refusals } of loads) {
      const firstRefusal = statuses.findIndex((status) => status !== 200);
      if (firstRefusal >= 0)
        expect(statuses.slice(firstRefusal), `answers after the first refusal, ${refusals[0]}`).not.to.include(200);
    }
    return {
      acknowledged: loads.flatMap(({ acknowledged }) => acknowledged),
      statuses: loads.flatMap(({ statuses }) => statuses),
      refusals: loads.flatMap(({ refusals }) => refusals),
    };
  };

  for (const failpoint of [
    'log.before_append',
    'log.after_append',
    'log.before_fsync',
    'log.after_fsync',
    'state.before_flush',
    'state.after_flush',
  ]) {
    it(`exits with 74 on an error at ${failpoint} and keeps every acknowledged write`, async function () {
      this.timeout(processMs);
      const dataDir = started();
      const failing = await bench.start({ dataDir, env: { TRANSITD_FAILPOINTS: `${failpoint}=error:12` } });
      const { acknowledged } = await endsWithoutFalsePromise(failing);
      await expectAllThere(await bench.start({ dataDir }), acknowledged);
    });
  }

  it('exits with 74 if files may not grow any further (ulimit -f)', async function () {
    this.timeout(processMs);
    const dataDir = started();
    // 512-byte blocks: enough for a start, but not for many megabytes of log. Node ignores SIGXFSZ, so writes fail with EFBIG.
    const limited = await bench.start({ dataDir, wrapper: ['sh', '-c', 'ulimit -f 9000; exec "$@"', 'sh'] });
    // A few large writes use most of the space; the later writes use the rest, and the test looks for these later writes.
    const policy = `path "a" { capabilities = ["read"] } # ${'x'.repeat(900_000)}`;
    for (const name of ['a', 'b', 'c', 'd'])
      expect((await limited.call('PUT', `sys/policies/acl/${name}`, { policy })).status).to.equal(204);
    const { acknowledged } = await endsWithoutFalsePromise(limited);
    expect(acknowledged.length).to.be.greaterThan(0);
    await expectAllThere(await bench.start({ dataDir }), acknowledged);
  });

  // Mounting a small file system needs root, which CI always has.
  const mountable = process.getuid?.() === 0 || process.env['CI'] !== undefined;
  (mountable ? it : it.skip)(
    'refuses writes below the disk reserve, and exits with 74 if the file system becomes full nevertheless',
    async function () {
      this.timeout(processMs);
      const mountPoint = join(bench.folder(), 'disk');
      mkdirSync(mountPoint);
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'tmpfs', mountPoint]);
      try {
        const dataDir = join(mountPoint, 'node');
        mkdirSync(dataDir, { mode: 0o700 });
        const env = { TRANSITD_RAFT_DISK_RESERVE: '0' };
        await (await bench.start({ dataDir, env })).stop();
        const full = await bench.start({ dataDir, env });
        execFileSync('sh', ['-c', `dd if=/dev/zero of=${mountPoint}/filler bs=1M 2>/dev/null; true`]);
        const { acknowledged } = await endsWithoutFalsePromise(full);
        execFileSync('rm', [`${mountPoint}/filler`]);
        const again = await bench.start({ dataDir, env });
        await expectAllThere(again, acknowledged);
        await again.stop();

        // The smaller reserve is 5 % of 24 MiB; with half a MiB free, the node is below it.
        const { bavail, bsize } = statfsSync(mountPoint);
        const leave = 512 * 1024;
        execFileSync('sh', ['-c', `head -c ${bavail * bsize - leave} /dev/zero > ${mountPoint}/filler`]);
        const careful = await bench.start({ dataDir, env: { TRANSITD_RAFT_DISK_RESERVE: '100MiB' } });
        const refused = await careful.call('POST', 'transit/keys/refused', {});
        expect(refused.status, refused.text).to.equal(503);
        expect(refused.text).to.match(/disk/);
        await expectAllThere(careful, acknowledged);
        await careful.stop();
      } finally {
        await bench.stopAll();
        execFileSync('umount', [mountPoint]);
      }
    },
  );
});
