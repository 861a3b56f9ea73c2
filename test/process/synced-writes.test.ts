// Every acknowledged write is on disk: the log was synced between the arrival of the write and its response.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { processMs, Workbench } from './live-server.ts';

const writes = 12;

/** Returns true if these lines of strace contain a complete and successful `fdatasync` of a log file. */
function hasSyncOfLog(lines: readonly string[]): boolean {
  const begun = new Set<string>();
  for (const line of lines) {
    const thread = /^(\d+)/.exec(line)?.[1] ?? '';
    if (/ fdatasync\(\d+<[^>]*\/log\/[^>]*>\)\s+= 0/.test(line)) return true;
    if (/ fdatasync\(\d+<[^>]*\/log\/[^>]*> <unfinished/.test(line)) begun.add(thread);
    if (/ fdatasync resumed>.*= 0/.test(line) && begun.delete(thread)) return true;
  }
  return false;
}

describe('synced writes', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  it('are recognized in the trace only if the sync started after the write, succeeded, and concerns the log', () => {
    expect(hasSyncOfLog(['7 fdatasync(20</d/log/1>) = 0'])).to.equal(true);
    expect(
      hasSyncOfLog(['7 fdatasync(20</d/log/1> <unfinished ...>', '8 read(3) = 1', '7 <... fdatasync resumed>) = 0']),
    ).to.equal(true);
    expect(hasSyncOfLog(['7 <... fdatasync resumed>) = 0'])).to.equal(false);
    expect(hasSyncOfLog(['7 fdatasync(20</d/log/1>) = -1 EIO'])).to.equal(false);
    expect(hasSyncOfLog(['7 fdatasync(20</d/state/1>) = 0'])).to.equal(false);
  });

  const traceable = spawnSync('strace', ['-V']).status === 0 || process.env['CI'] !== undefined;
  (traceable ? it : it.skip)(
    'have an fdatasync of the log between the arrival of each acknowledged write and its response',
    async function () {
      this.timeout(processMs);
      const dataDir = bench.folder();
      const trace = join(bench.folder(), 'trace');
      const server = await bench.start({
        dataDir,
        wrapper: ['strace', '-D', '-f', '-y', '-s', '96', '-e', 'trace=read,write,writev,fdatasync', '-o', trace],
      });
      const token = server.rootToken;
      for (let write = 0; write < writes; write += 1) {
        expect((await server.call('POST', `transit/keys/traced-${write}`, {}, token)).status).to.equal(200);
      }
      await server.stop();

      const lines = readFileSync(trace, 'utf8').split('\n');
      for (let write = 0; write < writes; write += 1) {
        const arrival = lines.findIndex((line) => line.includes(`POST /v1/transit/keys/traced-${write} `));
        expect(arrival, `arrival of write ${write}`).to.be.greaterThan(-1);
        const answer = lines.findIndex((line, at) => at > arrival && /HTTP\/1\.1 200/.test(line));
        expect(answer, `answer to write ${write}`).to.be.greaterThan(arrival);
        expect(hasSyncOfLog(lines.slice(arrival, answer)), `a sync between arrival and answer of write ${write}`).to.equal(true);
      }
    },
  );
});
