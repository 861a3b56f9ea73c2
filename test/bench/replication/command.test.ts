// @live
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { nodeBinary, processMs, root } from '../../process/live-server.ts';

const run = (...args: readonly string[]): Promise<{ stdout: string; stderr: string }> =>
  promisify(execFile)(nodeBinary, [join(root, 'bench/replication.ts'), ...args]);

describe('node bench/replication.ts', function () {
  this.timeout(processMs);

  it('prints how fast a secondary catches up, and compares it with the node’s own writes', async () => {
    const { stdout, stderr } = await run('--megabytes', '1', '--rounds', '1');
    expect(stderr).to.equal('');
    const [, , row = ''] = stdout.trimEnd().split('\n');
    const cells = row.split('|').slice(1, -1).map(Number);
    expect(cells, row).to.have.length(7);
    for (const cell of cells) expect(cell, row).to.be.at.least(0);
  });

  it('refuses a size that is not a positive integer', async () => {
    expect(await run('--megabytes', '0').catch(({ stderr }) => stderr)).to.contain('must be positive integers');
  });
});
