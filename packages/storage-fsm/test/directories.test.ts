import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { mountable, mountNote } from '../../../test/process/small-disk.ts';
import { makeDirectory } from '../src/directories.ts';

describe('makeDirectory', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-directories-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const codeFor = (path: string): Promise<string> =>
    makeDirectory(path).then(
      () => 'made',
      ({ code }: NodeJS.ErrnoException) => String(code),
    );

  it('creates missing parents too, with mode 0700, and accepts a directory that exists', async () => {
    for (let time = 0; time < 2; time += 1) expect(await codeFor(join(folder, 'a/b/c'))).to.equal('made');
    for (const made of ['a', 'a/b', 'a/b/c']) expect(statSync(join(folder, made)).mode & 0o777).to.equal(0o700);
  });

  it('refuses a path through a file, or to one', async () => {
    writeFileSync(join(folder, 'file'), '');
    expect([await codeFor(join(folder, 'file')), await codeFor(join(folder, 'file/a'))]).to.deep.equal(['EEXIST', 'EEXIST']);
  });

  it('refuses a path below a folder that takes no others', async () => {
    expect(await codeFor('/proc/transitd/a')).to.equal('ENOENT');
  });

  (mountable ? it : it.skip)(`names a read-only file system${mountNote}`, async () => {
    const point = join(folder, 'disk');
    mkdirSync(point);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro,size=1m', 'tmpfs', point]);
    try {
      expect([await codeFor(join(point, 'a')), await codeFor(join(point, 'a/b'))]).to.deep.equal(['EROFS', 'EROFS']);
    } finally {
      execFileSync('umount', [point]);
    }
  });
});
