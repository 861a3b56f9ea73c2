// @live
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { nodeBinary, processMs, root, Workbench } from '../../process/live-server.ts';

const bench = new Workbench();

describe('node bench/growth.ts', function () {
  this.timeout(processMs);
  after(() => bench.clean());

  it('measures keys, versions and tokens at each size, and writes the tables as Markdown and JSON', async () => {
    const out = bench.folder();
    const sizes = ['--keys', '30', '--versions', '10', '--tokens', '20', '--requests', '10', '--connections', '2'];
    const { stdout } = await promisify(execFile)(nodeBinary, [join(root, 'bench/growth.ts'), ...sizes, '--out', out]);
    const names = readdirSync(out).sort();
    expect(names.map((name) => name.replace(/^[\d-]+/, ''))).to.deep.equal(['growth.json', 'growth.md']);
    expect(readFileSync(join(out, names[1] ?? ''), 'utf8').trimEnd()).to.equal(stdout.trimEnd());
    const headers = stdout.split('\n').filter((line) => /^\| (?:keys|versions|tokens) /.test(line));
    expect(headers).to.deep.equal(['| keys | 1 | 30 |', '| versions | 1 | 10 |', '| tokens | 1 | 20 |']);
    const { curves } = JSON.parse(readFileSync(join(out, names[0] ?? ''), 'utf8'));
    for (const { points } of curves) {
      for (const point of points) for (const [name, value] of Object.entries(point)) expect(value, name).to.be.at.least(0);
    }
  });

  it('names a wrong option', async () => {
    const run = promisify(execFile)(nodeBinary, [join(root, 'bench/growth.ts'), '--keys', '0']);
    expect(await run.catch(({ stderr }) => stderr)).to.contain(
      "bench/growth.ts: option '--keys <n>' argument '0' is invalid. It must be a positive number.",
    );
  });
});
