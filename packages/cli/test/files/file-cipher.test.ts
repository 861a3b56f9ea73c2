// @live
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DamagedStream } from '@transitd/client';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { type DataKeys, decryptFile, encryptFile, type FileTask } from '../../src/files/file-cipher.ts';

const segmentBytes = 1024;
const headerBytes = 40;
const tagBytes = 16;

/** Where the stream begins. */
const endOfHeader = (file: Buffer): number => file.indexOf('\n', file.indexOf('\n') + 1) + 1;

describe('the encryption of a file', () => {
  let folder: string;
  let asked: string[];
  let keys: Map<string, Buffer>;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-files-'));
    [asked, keys] = [[], new Map()];
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const at = (name: string): string => join(folder, name);
  const dataKeys: DataKeys = {
    create: async () => {
      asked.push('create');
      const key = randomBytes(32);
      const wrapped = `svc:v1:${keys.size}`;
      keys.set(wrapped, Buffer.from(key));
      return { plaintext: key, wrapped };
    },
    open: async (wrapped) => {
      asked.push('open');
      const key = keys.get(wrapped);
      if (key === undefined) throw new StartError('not wrapped by this key');
      return Buffer.from(key);
    },
  };
  /** The input was changed long ago. */
  const nowMs = (): number => Date.now() + 10_000;
  const task = (input: string, output: string, more: Partial<FileTask> = {}): FileTask => ({
    input: at(input),
    output: at(output),
    key: 'orders',
    dataKeys,
    resume: false,
    progress: () => undefined,
    segmentBytes,
    nowMs,
    ...more,
  });
  const failure = async (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => undefined,
      (error: unknown) => error,
    );
  const first = segmentBytes - headerBytes - tagBytes;

  for (const size of [0, 1, first - 1, first, first + 1, first + segmentBytes - tagBytes, 10 * segmentBytes, 65_537])
    it(`round-trips ${size} bytes, with one call to the service in each direction`, async () => {
      const content = randomBytes(size);
      writeFileSync(at('plain'), content);
      const steps: number[] = [];
      expect(await encryptFile(task('plain', 'sealed', { progress: (done) => steps.push(done) }))).to.equal(
        statSync(at('sealed')).size,
      );
      expect(steps.at(-1)).to.equal(size);
      expect(await decryptFile(task('sealed', 'opened'))).to.equal(size);
      expect(readFileSync(at('opened')).equals(content)).to.equal(true);
      expect(asked).to.deep.equal(['create', 'open']);
      for (const name of ['sealed', 'opened']) {
        expect(statSync(at(name)).mode & 0o777).to.equal(0o600);
        expect(existsSync(at(`${name}.part`))).to.equal(false);
      }
    });

  it('has succeeded once the output has its name, although the disk then refuses to remove the other name', async () => {
    const { rm } = files;
    files.rm = async (path) => Promise.reject(Object.assign(new Error(`EROFS, unlink ${String(path)}`), { code: 'EROFS' }));
    syncBuiltinESMExports();
    try {
      writeFileSync(at('plain'), 'text');
      expect(await encryptFile(task('plain', 'sealed'))).to.equal(statSync(at('sealed')).size);
    } finally {
      files.rm = rm;
      syncBuiltinESMExports();
    }
    expect(existsSync(at('sealed.part'))).to.equal(true);
    await decryptFile(task('sealed', 'opened'));
    expect(readFileSync(at('opened'), 'utf8')).to.equal('text');
  });

  it('notices every changed byte and every truncation, and leaves nothing behind', async () => {
    writeFileSync(at('plain'), randomBytes(1500));
    await encryptFile(task('plain', 'sealed'));
    const whole = readFileSync(at('sealed'));
    const lineEnd = endOfHeader(whole);
    for (let place = 0; place < whole.length; place += place < lineEnd + 60 ? 1 : 37) {
      const changed = Buffer.from(whole);
      changed[place] = (changed[place] ?? 0) ^ 1;
      writeFileSync(at('changed'), changed);
      const error = await failure(decryptFile(task('changed', 'opened')));
      expect(error instanceof DamagedStream || error instanceof StartError, `byte ${place}: ${String(error)}`).to.equal(true);
      writeFileSync(at('cut'), whole.subarray(0, place));
      expect(await failure(decryptFile(task('cut', 'opened'))), `cut at ${place}`).to.be.instanceOf(DamagedStream);
    }
    appendFileSync(at('sealed'), 'x');
    expect(await failure(decryptFile(task('sealed', 'opened')))).to.be.instanceOf(DamagedStream);
    expect(existsSync(at('opened')) || existsSync(at('opened.part'))).to.equal(false);
  });

  it('does not mix files: neither segments nor headers of another file are accepted', async () => {
    for (const name of ['a', 'b']) {
      writeFileSync(at(name), randomBytes(3000));
      await encryptFile(task(name, `${name}.sealed`));
    }
    const [a, b] = [readFileSync(at('a.sealed')), readFileSync(at('b.sealed'))];
    const [endA, endB] = [endOfHeader(a), endOfHeader(b)];
    for (const mixed of [
      [a.subarray(0, endA), b.subarray(endB)],
      [a.subarray(0, endA + segmentBytes), b.subarray(endB + segmentBytes)],
    ]) {
      writeFileSync(at('mixed'), Buffer.concat(mixed));
      expect(await failure(decryptFile(task('mixed', 'opened')))).to.be.instanceOf(DamagedStream);
    }
    expect(await failure(decryptFile(task('a.sealed', 'opened', { key: 'other' })))).to.match(/names another key/);
  });

  it('still decrypts after the data key was wrapped again', async () => {
    writeFileSync(at('plain'), 'content');
    await encryptFile(task('plain', 'sealed'));
    keys.set('svc:v22:again', keys.get('svc:v1:0') as Buffer);
    writeFileSync(at('sealed'), readFileSync(at('sealed'), 'latin1').replace('\nsvc:v1:0\n', '\nsvc:v22:again\n'), 'latin1');
    await decryptFile(task('sealed', 'opened'));
    expect(readFileSync(at('opened'), 'utf8')).to.equal('content');
  });

  it('continues an encryption that was cut anywhere, with the same result', async () => {
    writeFileSync(at('plain'), randomBytes(4000));
    await encryptFile(task('plain', 'sealed'));
    const whole = readFileSync(at('sealed'));
    const lineEnd = endOfHeader(whole);
    for (const cut of [
      lineEnd + headerBytes,
      lineEnd + headerBytes + 1,
      lineEnd + segmentBytes,
      lineEnd + segmentBytes + 700,
      whole.length,
    ]) {
      rmSync(at('sealed'), { force: true });
      writeFileSync(at('sealed.part'), whole.subarray(0, cut), { mode: 0o600 });
      await encryptFile(task('plain', 'sealed', { resume: true }));
      expect(readFileSync(at('sealed')).equals(whole), `cut at ${cut}`).to.equal(true);
    }
  });

  it('continues no encryption of a file that has changed, and none of one that was just being written', async () => {
    writeFileSync(at('plain'), randomBytes(4000));
    await encryptFile(task('plain', 'sealed'));
    const whole = readFileSync(at('sealed'));
    rmSync(at('sealed'));
    writeFileSync(at('sealed.part'), whole.subarray(0, 2000), { mode: 0o600 });
    writeFileSync(at('plain'), randomBytes(4000));
    expect(await failure(encryptFile(task('plain', 'sealed', { resume: true })))).to.match(/has changed/);
    expect(readFileSync(at('sealed.part')).equals(whole.subarray(0, 2000)), 'nothing was written').to.equal(true);
    rmSync(at('sealed.part'));

    await encryptFile(task('plain', 'sealed', { nowMs: Date.now }));
    truncateSync(at('sealed'), 2000);
    writeFileSync(at('sealed.part'), readFileSync(at('sealed')), { mode: 0o600 });
    rmSync(at('sealed'));
    expect(await failure(encryptFile(task('plain', 'sealed', { resume: true })))).to.match(/changed just before/);
  });

  it('refuses an input that changes while it is read', async () => {
    writeFileSync(at('plain'), randomBytes(5000));
    const change = (done: number): void => {
      if (done < 2000) appendFileSync(at('plain'), 'more');
    };
    expect(await failure(encryptFile(task('plain', 'sealed', { progress: change })))).to.match(/changed while it was read/);
    expect(existsSync(at('sealed')) || existsSync(at('sealed.part'))).to.equal(false);
  });

  it('continues a decryption, but not with an output that was tampered with', async () => {
    const content = randomBytes(5000);
    writeFileSync(at('plain'), content);
    await encryptFile(task('plain', 'sealed'));
    for (const cut of [0, 1, 1000, 5000]) {
      rmSync(at('opened'), { force: true });
      writeFileSync(at('opened.part'), content.subarray(0, cut), { mode: 0o600 });
      await decryptFile(task('sealed', 'opened', { resume: true }));
      expect(readFileSync(at('opened')).equals(content)).to.equal(true);
    }
    rmSync(at('opened'));
    writeFileSync(at('opened.part'), Buffer.alloc(2000), { mode: 0o600 });
    expect(await failure(decryptFile(task('sealed', 'opened', { resume: true })))).to.match(/interrupted output is damaged/);
  });

  it('overwrites nothing, and says what is in the way', async () => {
    writeFileSync(at('plain'), 'x');
    writeFileSync(at('taken'), 'y');
    expect(await failure(encryptFile(task('plain', 'taken')))).to.match(/already exists/);
    writeFileSync(at('busy.part'), 'z');
    expect(await failure(encryptFile(task('plain', 'busy')))).to.match(/use --resume to continue/);
    expect(await failure(encryptFile(task('plain', 'new', { resume: true })))).to.match(/nothing to continue/);
    expect(await failure(encryptFile(task('missing', 'new')))).to.match(/ENOENT/);
    expect(await failure(encryptFile(task('.', 'new')))).to.match(/not a regular file/);
    expect(await failure(decryptFile(task('plain', 'new')))).to.match(/not a file that transitd has encrypted/);
    const unavailable = { create: () => Promise.reject(new StartError('no answer')), open: dataKeys.open };
    await failure(encryptFile(task('plain', 'later', { dataKeys: unavailable })));
    expect(existsSync(at('later.part')), 'an empty part is not kept').to.equal(false);
  });

  it('continues with no file that others can read, and follows no link', async () => {
    writeFileSync(at('plain'), randomBytes(3000));
    await encryptFile(task('plain', 'sealed'));
    writeFileSync(at('elsewhere'), '', { mode: 0o600 });
    for (const [plant, why] of [
      [() => writeFileSync(at('opened.part'), '', { mode: 0o644 }), 'readable by others'],
      [() => symlinkSync(at('elsewhere'), at('opened.part')), 'a symbolic link'],
      [() => linkSync(at('elsewhere'), at('opened.part')), 'a second name of another file'],
    ] as const) {
      plant();
      const error = await failure(decryptFile(task('sealed', 'opened', { resume: true })));
      expect(error, why)
        .to.be.instanceOf(StartError)
        .and.match(/only its owner|cannot be used/);
      expect(statSync(at('elsewhere')).size, why).to.equal(0);
      expect(statSync(at('opened.part')).size, why).to.equal(0);
      rmSync(at('opened.part'));
    }
    writeFileSync(at('opened.part'), '', { mode: 0o600 });
    await decryptFile(task('sealed', 'opened', { resume: true }));
  });

  it('keeps the complete part if another file took the name of the output meanwhile', async () => {
    const content = randomBytes(3000);
    writeFileSync(at('plain'), content);
    await encryptFile(task('plain', 'sealed'));
    for (const take of [() => writeFileSync(at('opened'), 'theirs'), () => symlinkSync(at('nowhere'), at('opened'))]) {
      const progress = (done: number, of: number): void => {
        if (done === of) take();
      };
      expect(await failure(decryptFile(task('sealed', 'opened', { progress })))).to.match(
        /already exists and is not overwritten/,
      );
      expect(readFileSync(at('opened.part')).equals(content)).to.equal(true);
      rmSync(at('opened'));
      await decryptFile(task('sealed', 'opened', { resume: true }));
      rmSync(at('opened'));
    }
    symlinkSync(at('nowhere'), at('opened'));
    expect(await failure(decryptFile(task('sealed', 'opened')))).to.match(/already exists/);
  });

  it('refuses a data key of another size as damage', async () => {
    writeFileSync(at('plain'), 'x');
    await encryptFile(task('plain', 'sealed'));
    for (const size of [0, 16, 33]) {
      const open = (): Promise<Uint8Array> => Promise.resolve(randomBytes(size));
      expect(await failure(decryptFile(task('sealed', 'opened', { dataKeys: { ...dataKeys, open } })))).to.be.instanceOf(
        DamagedStream,
      );
    }
  });

  it('names the file when the disk fails, and does not wait for a writer of a named pipe', async () => {
    writeFileSync(at('plain'), randomBytes(3000));
    const progress = (): never => {
      throw Object.assign(new Error('no space'), { code: 'ENOSPC', syscall: 'write' });
    };
    const error = await failure(encryptFile(task('plain', 'sealed', { progress })));
    expect(error)
      .to.be.instanceOf(StartError)
      .and.match(/sealed\.part cannot be used: ENOSPC/);
    execFileSync('mkfifo', [at('pipe')]);
    expect(await failure(encryptFile(task('pipe', 'other')))).to.match(/not a regular file/);
  });
});
