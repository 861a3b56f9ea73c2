// @live
// Tests which signals end a node, at which moments, and which files the node leaves behind.
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../../packages/process/test/until.ts';
import { processMs, Workbench } from './live-server.ts';

describe('a node and its signals', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  // The handlers exist when the data directory is created; opening, initializing and listening follow.
  for (const { signal, moment } of [
    { signal: 'SIGTERM', moment: 'data' },
    { signal: 'SIGINT', moment: 'data/node.state' },
    { signal: 'SIGTERM', moment: 'data/generation-1/state/CURRENT' },
    { signal: 'SIGTERM', moment: 'data/ballast' },
  ] as const) {
    it(`exits with 0 on ${signal} as soon as ${moment} is created, and starts again`, async function () {
      this.timeout(processMs);
      const dataDir = bench.folder();
      const server = bench.launch({ dataDir });
      await until(() => existsSync(join(dataDir, moment)));
      expect(await server.stop(signal), server.stderr).to.deep.equal({ code: 0, signal: null });
      const again = await bench.start({ dataDir });
      expect((await again.call('POST', 'transit/keys/a', {})).status).to.equal(200);
    });
  }

  it('opens no debugger on SIGUSR1', async function () {
    this.timeout(processMs);
    const server = await bench.start({ dataDir: bench.folder() });
    server.child.kill('SIGUSR1');
    expect((await server.call('GET', 'sys/health', undefined, null)).status).to.equal(200);
    expect((await server.stop()).code).to.equal(0);
    expect(server.stderr).not.to.match(/debugger/i);
  });

  it('keeps running after SIGUSR2, and logs it', async function () {
    this.timeout(processMs);
    const server = await bench.start({ dataDir: bench.folder() });
    server.child.kill('SIGUSR2');
    await server.log(/ignored SIGUSR2/);
    expect((await server.call('GET', 'sys/health', undefined, null)).status).to.equal(200);
    expect((await server.stop()).code).to.equal(0);
  });

  it('keeps running if nobody reads its welcome', async function () {
    this.timeout(processMs);
    // The pipe is closed before the first byte: `true` ends at once and the shell waits for it.
    const script = 'dir=$1; shift; mkfifo "$dir/out"; true < "$dir/out" & exec 3> "$dir/out"; wait; exec "$@" >&3';
    const folder = bench.folder();
    const server = await bench.start({ dataDir: bench.folder(), wrapper: ['sh', '-c', script, 'sh', folder] });
    await server.log(/"msg":"started"/);
    expect((await server.call('POST', 'transit/keys/a', {})).status).to.equal(200);
    expect((await server.stop()).code).to.equal(0);
  });

  it('removes its temporary folder, also after a disk error', async function () {
    this.timeout(processMs);
    // The start needs fewer syncs than the failpoint permits, however they are grouped.
    for (const failpoint of ['', 'log.after_fsync=error:40']) {
      const temporary = join(bench.folder(), 'tmp');
      mkdirSync(temporary);
      const env = { TMPDIR: temporary, TRANSITD_FAILPOINTS: failpoint };
      const command = ['server', '--dev', '--listen', '127.0.0.1:0', '--dev-root-token-id', 'root'];
      const server = await bench.start({ dataDir: '', command, env });
      expect(readdirSync(temporary)).to.have.length(1);
      if (failpoint === '') expect((await server.stop()).code).to.equal(0);
      else {
        const create = (number: number) => server.call('POST', `transit/keys/key-${number}`, {}, 'root').catch(() => undefined);
        for (let number = 0; number < 80 && server.child.exitCode === null; number++) await create(number);
        expect((await server.exited).code).to.equal(74);
      }
      expect(readdirSync(temporary)).to.deep.equal([]);
    }
  });
});
