// @live
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { nodeBinary, processMs, root } from '../../process/live-server.ts';

describe('node bench/failover.ts', function () {
  this.timeout(processMs);

  it('kills leaders of a cluster, and prints the time to the first write', async () => {
    const options = ['--kills', '2'];
    const { stdout } = await promisify(execFile)(nodeBinary, [join(root, 'bench/failover.ts'), ...options]);
    const [line, p50, shortest, longest] = /^\| this checkout \| (\d+) \| (\d+) \| (\d+) \|$/m.exec(stdout) ?? [];
    expect(Number(shortest), line ?? stdout)
      .to.be.above(0)
      .and.at.most(Number(p50));
    expect(Number(longest), line).to.be.at.least(Number(p50));
  });
});
