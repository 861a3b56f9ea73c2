// @live
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { nodeBinary, processMs, root, Workbench } from '../../process/live-server.ts';

const bench = new Workbench();

describe('node bench/scale.ts', function () {
  this.timeout(processMs);
  after(() => bench.clean());

  it('measures three voters and a learner, and writes the table as Markdown and JSON', async () => {
    const out = bench.folder();
    const options = ['--nodes', '4', '--requests', '10', '--rest', '1', '--out', out];
    const { stdout } = await promisify(execFile)(nodeBinary, [join(root, 'bench/scale.ts'), ...options]);
    const names = readdirSync(out).sort();
    expect(names.map((name) => name.replace(/^[\d-]+/, ''))).to.deep.equal(['scale-raft.json', 'scale-raft.md']);
    expect(stdout).to.contain('| nodes | 4 |');
    const { curves } = JSON.parse(readFileSync(join(out, names[0] ?? ''), 'utf8'));
    for (const { points } of curves)
      for (const point of points) for (const [name, value] of Object.entries(point)) expect(value, name).to.be.at.least(0);
  });
});
