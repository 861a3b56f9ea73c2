import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { nodeBinary, processMs, root } from '../../process/live-server.ts';

const run = (...args: readonly string[]): Promise<{ stdout: string; stderr: string }> =>
  promisify(execFile)(nodeBinary, [join(root, 'bench/batch.ts'), ...args]);

describe('npm run bench:batch', function () {
  this.timeout(processMs);

  it('prints the CPU time of an item, of the cipher object, and the difference', async () => {
    const { stdout } = await run('--items', '1500', '--rounds', '3');
    const [, , ...rows] = stdout.trimEnd().split('\n');
    expect(rows.map((row) => row.split(' | ')[0])).to.deep.equal(['| encrypt', '| decrypt']);
    for (const row of rows) {
      const [item = 0, cipher = 0, rest = 0] = (row.match(/-?\d+\.\d+/g) ?? []).map(Number);
      expect(item, row).to.be.above(0);
      expect(rest, row).to.be.closeTo(item - cipher, 0.02);
    }
  });

  it('refuses a count that is not a positive integer', async () => {
    expect(await run('--items', '0').catch(({ stderr }) => stderr)).to.contain('must be positive integers');
  });
});
