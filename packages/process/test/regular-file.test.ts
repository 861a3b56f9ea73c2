import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { StartError } from '../src/exit.ts';
import { readNamedFile, readRegularFile, readSecretFile } from '../src/regular-file.ts';

describe('readSecretFile', () => {
  let folder = '';
  let file = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-secret-'));
    file = join(folder, 'token');
    writeFileSync(file, 'a-token', { mode: 0o600 });
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('reads a file of this user, also through a symbolic link, and with a mode that lets others read it', () => {
    const link = join(folder, 'link');
    symlinkSync(file, link);
    chmodSync(file, 0o444);
    expect([readSecretFile(file), readSecretFile(link)].map(String)).to.deep.equal(['a-token', 'a-token']);
  });

  it('refuses a file that others can write', () => {
    for (const mode of [0o620, 0o602, 0o666]) {
      chmodSync(file, mode);
      expect(() => readSecretFile(file)).to.throw(StartError, 'so users other than its owner can write to it: run chmod go-w');
    }
  });

  it("refuses another user's file, but accepts one of root", () => {
    const { uid } = statSync(file);
    if (uid === 0) {
      expect(String(readSecretFile(file, 1234))).to.equal('a-token');
      chownSync(file, 4321, 4321);
      expect(() => readSecretFile(file, 0)).to.throw(StartError, /is owned by user id 4321: only user id 0, /);
    } else
      expect(() => readSecretFile(file, uid + 1)).to.throw(StartError, `is owned by user id ${uid}: only user id ${uid + 1}, `);
  });

  it('refuses a FIFO without waiting for a writer, and a folder', () => {
    const fifo = join(folder, 'fifo');
    execFileSync('mkfifo', ['-m', '600', fifo]);
    for (const path of [fifo, folder]) expect(() => readSecretFile(path)).to.throw(StartError, `${path} is not a regular file`);
  });

  it('refuses a file of more than 64 KiB before it is in memory', () => {
    truncateSync(file, 64 * 1024);
    expect(readSecretFile(file)).to.have.lengthOf(64 * 1024);
    truncateSync(file, 2 ** 40);
    expect(() => readSecretFile(file)).to.throw(StartError, `${file} has more than 65536 bytes`);
  });

  it('refuses a FIFO that the configuration names, and a file of more than 1 MiB', () => {
    const fifo = join(folder, 'fifo');
    execFileSync('mkfifo', ['-m', '600', fifo]);
    truncateSync(file, 2 ** 40);
    expect(() => readNamedFile('listeners', fifo)).to.throw(StartError, `listeners: ${fifo} is not a regular file`);
    expect(() => readNamedFile('listeners', file)).to.throw(StartError, `listeners: ${file} has more than 1048576 bytes`);
    expect(() => readNamedFile('seal', `${file}2`)).to.throw(StartError, `seal: ${file}2 cannot be read: ENOENT`);
  });

  it('reports a missing file as the file system does', () => {
    expect(() => readRegularFile(join(folder, 'missing'), 10))
      .to.throw()
      .with.property('code', 'ENOENT');
  });
});
