// Runs the commands of docs/install.md as they are written, in a folder with the files of the release.
import { execFileSync } from 'node:child_process';
import { readdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { artifact, Folders, shellLines } from './artifacts.ts';
import { DevNode } from './dev-node.ts';

const page = 'docs/install.md';
const folders = new Folders();
after(() => folders.clean());

describe(page, () => {
  let folder: string;
  before(() => {
    const out = dirname(artifact('SHA256SUMS'));
    folder = folders.empty();
    for (const name of readdirSync(out)) symlinkSync(join(out, name), join(folder, name));
  });

  it('verifies a download', () => {
    const script = shellLines(page, 'Verify').join('\n');
    const output = execFileSync('sh', ['-ec', script], { cwd: folder, encoding: 'utf8' });
    expect(output).to.match(/^Signature Verified Successfully$/m);
    expect(output.match(/: OK$/gm)).to.have.length.above(6);
  });

  it('installs an archive that starts', async () => {
    if (process.arch !== 'x64') throw new Error('the page unpacks the archive for x64: run this test there');
    const command = ['sh', '-ec', shellLines(page, 'Archive').join('\n')];
    const node = await DevNode.start({ command, cwd: folder, env: { PATH: '/usr/bin:/bin', HOME: folder } });
    try {
      expect(await node.roundTrip()).to.match(/^svc:v1:/);
    } finally {
      await node.stop();
    }
  });

  it('has the commands of the npm package, which its own test runs', () => {
    expect(shellLines(page, 'npm')).to.deep.equal(shellLines('scripts/release/npm-readme.md'));
  });

  it('names every artifact', () => {
    const names = readdirSync(folder).filter((name) => /\.(tgz|tar\.gz|deb|yaml)$/.test(name));
    const table = execFileSync('grep', ['^| `', page], { cwd: join(import.meta.dirname, '../..'), encoding: 'utf8' });
    const listed = [...table.matchAll(/^\| `(\S+)` \|/gm)].map(([, name = '']) => name).filter((name) => !name.startsWith('/'));
    expect(listed).to.have.members(names);
  });
});
