import {
  type BigIntStats,
  copyFileSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import files from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { AuditDevice, type AuditDeviceOptions } from '../src/audit-device.ts';
import { type Appendable, openAuditFile } from '../src/audit-file.ts';
import { lineHash } from '../src/chain.ts';
import { verifyAudit } from '../src/verify.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A target with room for `room` bytes; keeps the text of each write. */
class Memory {
  room = Number.POSITIVE_INFINITY;
  readonly writes: string[] = [];
  synced = 0;
  hold: Promise<void> | undefined;

  get text(): string {
    return this.writes.join('');
  }

  open = async (): Promise<Appendable> => ({
    write: async (bytes) => {
      await this.hold;
      if (this.room <= 0) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      const part = bytes.subarray(0, this.room);
      this.room -= part.length;
      this.writes.push(part.toString());
      return part.length;
    },
    sync: async () => {
      this.synced += 1;
    },
    close: async () => undefined,
  });
}

/** A file in a page cache. A failed sync marks its pages clean, so the next sync does not store them. */
class Pages {
  readonly #size = 512;
  #cache = Buffer.alloc(0);
  #dirty = new Set<number>();
  /** What a power failure leaves. */
  stored = Buffer.alloc(0);
  failingSyncs = 0;

  open = async (): Promise<Appendable> => {
    const text = this.#cache.toString();
    const isEmpty = text === '';
    return {
      ...(!isEmpty && { tail: lineHash(text.replace(/\n$/, '').split('\n').at(-1) ?? ''), torn: !text.endsWith('\n') }),
      write: async (bytes) => this.#put(this.#cache.length, bytes),
      sync: async () => this.#sync(),
      rewriteEnd: async (end) => {
        this.#put(this.#cache.length - end.length, end);
        this.#sync();
      },
      close: async () => undefined,
    };
  };

  #put(position: number, bytes: Buffer): number {
    const end = position + bytes.length;
    this.#cache = Buffer.concat([this.#cache.subarray(0, position), bytes, this.#cache.subarray(end)]);
    for (let page = Math.floor(position / this.#size); page * this.#size < end; page += 1) this.#dirty.add(page);
    return bytes.length;
  }

  #sync(): void {
    const dirty = [...this.#dirty];
    this.#dirty.clear();
    if (this.failingSyncs-- > 0) throw Object.assign(new Error('the disk failed'), { code: 'EIO' });
    this.stored = Buffer.concat([this.stored, Buffer.alloc(this.#cache.length - this.stored.length)]);
    for (const page of dirty) this.#cache.copy(this.stored, page * this.#size, page * this.#size, (page + 1) * this.#size);
  }
}

describe('AuditDevice', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-audit-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const deviceTo = (open: AuditDeviceOptions['open'], options: Partial<AuditDeviceOptions> = {}) =>
    new AuditDevice({ name: 's', open, ...options });
  const entryOf = (number: number): string => JSON.stringify({ number });
  const verified = async (...files: string[]): Promise<number> => verifyAudit(files, () => undefined);

  it('writes the entries of one event-loop turn together, and entries that arrive during a write with the next write', async () => {
    const memory = new Memory();
    const device = deviceTo(memory.open);
    let release = (): void => undefined;
    memory.hold = new Promise((resolve) => {
      release = resolve;
    });
    const first = [1, 2, 3].map((number) => device.write(entryOf(number)));
    await turn();
    await turn();
    const second = [4, 5].map((number) => device.write(entryOf(number)));
    release();
    await Promise.all([...first, ...second]);
    expect(memory.writes.map((text) => text.split('\n').length - 1)).to.deep.equal([3, 2]);
  });

  it('syncs each batch if configured, and never otherwise', async () => {
    for (const [sync, synced] of [
      [true, 1],
      [false, 0],
    ] as const) {
      const memory = new Memory();
      const device = deviceTo(memory.open, { sync });
      await Promise.all([1, 2].map((number) => device.write(entryOf(number))));
      expect(memory.synced).to.equal(synced);
    }
  });

  it('writes the lines of a failed sync again before it writes others, so that no line before a synced one is lost', async () => {
    const pages = new Pages();
    const device = deviceTo(pages.open, { sync: true });
    const long = (number: number): string => JSON.stringify({ number, text: 'x'.repeat(3_000) });
    await device.write(long(1));
    pages.failingSyncs = 2;
    for (const number of [2, 3])
      expect(await device.write(long(number)).catch((error: NodeJS.ErrnoException) => error.code)).to.equal('EIO');
    await device.write(long(4));
    const file = join(folder, 'after-power-failure');
    writeFileSync(file, pages.stored);
    expect(await verified(file)).to.equal(0);
    const numbers = pages.stored
      .toString()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).number);
    expect(numbers, 'the third was refused before it was written').to.deep.equal([1, 2, 4]);
  });

  it('writes the lines of a failed sync again although no entry follows', async () => {
    const pages = new Pages();
    const reports: string[] = [];
    const device = deviceTo(pages.open, {
      sync: true,
      onFailure: ({ message }) => reports.push(message),
      onRecovery: () => reports.push('works'),
    });
    pages.failingSyncs = 2;
    await device.write(entryOf(1)).catch(() => undefined);
    for (const stored of [0, 1]) {
      await device.check();
      expect(pages.stored.toString().split('\n').length - 1).to.equal(stored);
    }
    expect(reports).to.deep.equal(['the disk failed', 'works']);
  });

  it('writes the end of its file again in place', async () => {
    const path = join(folder, 'audit.log');
    let failing = false;
    const ends: string[] = [];
    const device = deviceTo(
      async () => {
        const target = await openAuditFile({ path, mode: 0o600 });
        return {
          ...target,
          sync: async () => {
            if (failing) throw new Error('the disk failed');
            await target.sync();
          },
          rewriteEnd: async (end) => {
            ends.push(end.toString());
            truncateSync(path, statSync(path).size - end.length);
            writeFileSync(path, Buffer.alloc(end.length), { flag: 'a' });
            await target.rewriteEnd?.(end);
          },
        };
      },
      { sync: true },
    );
    await device.write(entryOf(1));
    failing = true;
    await device.write(entryOf(2)).catch(() => undefined);
    failing = false;
    await device.write(entryOf(3));
    await device.close();
    const lines = readFileSync(path, 'utf8').split('\n');
    expect(lines.slice(0, 3).map((line) => JSON.parse(line).number)).to.deep.equal([1, 2, 3]);
    expect(ends).to.deep.equal([`${lines[1]}\n`]);
    expect(await verified(path)).to.equal(0);
  });

  it('goes on after a failed sync of a file that may only be appended to', async () => {
    const path = join(folder, 'audit.log');
    let failing = false;
    const device = deviceTo(
      async () => {
        const target = await openAuditFile({ path, mode: 0o600 });
        return { ...target, sync: async () => (failing ? Promise.reject(new Error('the disk failed')) : target.sync()) };
      },
      { sync: true },
    );
    await device.write(entryOf(1));
    const { open } = files;
    files.open = (file, flags, mode) =>
      flags === 'r+' ? Promise.reject(Object.assign(new Error('not permitted'), { code: 'EPERM' })) : open(file, flags, mode);
    syncBuiltinESMExports();
    try {
      failing = true;
      await device.write(entryOf(2)).catch(() => undefined);
      failing = false;
      await device.write(entryOf(3));
    } finally {
      files.open = open;
      syncBuiltinESMExports();
      await device.close();
    }
    expect(readFileSync(path, 'utf8').trim().split('\n')).to.have.length(3);
    expect(await verified(path)).to.equal(0);
  });

  it('does not write the lines of a failed sync over those that went with a removed file', async () => {
    let text = '';
    let [room, failing, isRemoved] = [Number.POSITIVE_INFINITY, false, false];
    const rewritten: string[] = [];
    const open = async (): Promise<Appendable> => ({
      ...(text !== '' && { tail: lineHash(text.replace(/\n$/, '').split('\n').at(-1) ?? ''), torn: !text.endsWith('\n') }),
      write: async (bytes) => {
        if (room === 0) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
        const part = bytes.subarray(0, room).toString();
        room -= part.length;
        text += part;
        return part.length;
      },
      sync: async () => {
        if (failing) throw new Error('the disk failed');
      },
      rewriteEnd: async (end) => void rewritten.push(end.toString()),
      fate: async () => (isRemoved ? { state: 'removed', since: Buffer.from(text) } : { state: 'in place' }),
      close: async () => undefined,
    });
    const device = deviceTo(open, { sync: true });
    await device.write(entryOf(1));
    [failing, isRemoved] = [true, true];
    await device.write(entryOf(2)).catch(() => undefined);
    // The next file has no room for the last newline.
    [failing, isRemoved, room, text] = [false, false, text.length - 1, ''];
    await device.write(entryOf(3)).catch(() => undefined);
    room = Number.POSITIVE_INFINITY;
    await device.write(entryOf(4));
    await device.close();
    expect(rewritten).to.deep.equal([]);
    const file = join(folder, 'adopted');
    writeFileSync(file, text);
    expect(await verified(file)).to.equal(0);
  });

  it('makes the name of a new file and of its folders durable', async () => {
    const handle = await files.open(folder);
    const prototype = Object.getPrototypeOf(handle) as files.FileHandle;
    await handle.close();
    const { sync } = prototype;
    let [synced, failing] = [0, false];
    prototype.sync = async function (this: files.FileHandle) {
      if ((await this.stat()).isDirectory()) {
        if (failing) throw new Error('the disk failed');
        synced += 1;
      }
      await sync.call(this);
    };
    try {
      const path = join(folder, 'a/b/audit.log');
      for (const expected of [3, 0]) {
        synced = 0;
        const device = deviceTo(() => openAuditFile({ path, mode: 0o600, sync: true }), { sync: true });
        await device.write(entryOf(1));
        expect(synced, 'folder, a and a/b; then none').to.equal(expected);
        await device.close();
      }
      synced = 0;
      const other = deviceTo(() => openAuditFile({ path: join(folder, 'a/b/other.log'), mode: 0o600 }));
      await other.write(entryOf(1));
      await other.close();
      expect(synced, 'without sync').to.equal(0);
      const third = join(folder, 'a/b/third.log');
      const again = deviceTo(() => openAuditFile({ path: third, mode: 0o600, sync: true }), { sync: true });
      failing = true;
      expect(await again.write(entryOf(1)).catch((error: Error) => error.message)).to.equal('the disk failed');
      failing = false;
      await again.write(entryOf(2));
      await again.close();
      expect(synced, 'after a failure').to.equal(1);
    } finally {
      prototype.sync = sync;
    }
  });

  it('creates folders with mode 0700 and the file with the configured mode', async () => {
    const path = join(folder, 'a/b/audit.log');
    const device = deviceTo(() => openAuditFile({ path, mode: 0o640 }));
    await device.write(entryOf(1));
    expect(statSync(path).mode & 0o777).to.equal(0o640);
    expect(statSync(join(folder, 'a')).mode & 0o777).to.equal(0o700);
    await device.close();
  });

  it('continues the chain in a new file after the old one was renamed', async () => {
    const path = join(folder, 'audit.log');
    const device = deviceTo(() => openAuditFile({ path, mode: 0o600 }));
    await device.write(entryOf(1));
    renameSync(path, `${path}.1`);
    await device.write(entryOf(2));
    await device.reopen();
    await device.write(entryOf(3));
    await device.close();
    const numbers = (file: string) =>
      readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).number);
    expect([numbers(`${path}.1`), numbers(path)]).to.deep.equal([[1, 2], [3]]);
    expect(await verified(`${path}.1`, path)).to.equal(0);
    expect(await verified(path, `${path}.1`), 'in the wrong order').to.equal(2);
  });

  describe('whose file somebody else changes', () => {
    let path: string;
    let changes: string[];
    let failures: string[];
    beforeEach(() => {
      path = join(folder, 'logs/audit.log');
      changes = [];
      failures = [];
    });
    const deviceAtPath = () =>
      deviceTo(() => openAuditFile({ path, mode: 0o600 }), {
        onChange: (change) => changes.push(change),
        onFailure: (error, failure) => failures.push(`${failure}: ${(error as NodeJS.ErrnoException).code ?? error.message}`),
        onRecovery: () => failures.push('recovered'),
      });
    /** Replaces the folder of the path by a file, so that nobody can open the path until that is removed. */
    const blockPath = (): void => {
      rmSync(dirname(path), { recursive: true });
      writeFileSync(dirname(path), 'a file, not a folder');
    };
    const numbersIn = (file: string): readonly number[] =>
      readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).number);

    it('goes on at the path after a rename without SIGHUP, and the chain over both files is intact', async () => {
      const device = deviceAtPath();
      await device.write(entryOf(1));
      await device.check();
      renameSync(path, `${path}.1`);
      await device.write(entryOf(2));
      await device.check();
      await device.write(entryOf(3));
      await device.close();
      expect([numbersIn(`${path}.1`), numbersIn(path), changes]).to.deep.equal([[1, 2], [3], ['renamed']]);
      expect(await verified(`${path}.1`, path)).to.equal(0);
    });

    for (const what of ['path', 'folder'] as const)
      it(`writes the entries since the last check again after a removal of its ${what}`, async () => {
        const device = deviceAtPath();
        await device.write(entryOf(1));
        await device.check();
        await device.write(entryOf(2));
        rmSync(what === 'path' ? path : dirname(path), { recursive: true });
        await device.write(entryOf(3));
        await device.check();
        await device.write(entryOf(4));
        await device.close();
        expect([numbersIn(path), changes]).to.deep.equal([[2, 3, 4], ['removed']]);
        expect(await verified(path)).to.equal(0);
      });

    it('writes them again also on SIGHUP and when the node stops', async () => {
      for (const end of ['reopen', 'close'] as const) {
        const device = deviceAtPath();
        await device.write(entryOf(1));
        rmSync(path);
        await device.write(entryOf(2));
        await device[end]();
        expect(numbersIn(path), end).to.deep.equal([1, 2]);
        await device.close();
        rmSync(path);
      }
      expect(changes).to.deep.equal(['removed', 'removed']);
    });

    it('writes no entry twice if a copy with all entries has taken the place of the file', async () => {
      const device = deviceAtPath();
      await device.write(entryOf(1));
      copyFileSync(path, `${path}.copy`);
      renameSync(`${path}.copy`, path);
      await device.check();
      await device.write(entryOf(2));
      await device.close();
      expect([numbersIn(path), changes]).to.deep.equal([[1, 2], ['removed']]);
      expect(await verified(path)).to.equal(0);
    });

    it('keeps a renamed file until the path can be opened, and reports the rename once', async () => {
      const device = deviceAtPath();
      await device.write(entryOf(1));
      const kept = join(folder, 'kept.log');
      renameSync(path, kept);
      blockPath();
      for (const number of [2, 3]) {
        await device.check();
        await device.write(entryOf(number));
      }
      expect(numbersIn(kept), 'no entry was refused').to.deep.equal([1, 2, 3]);
      expect(failures).to.have.length(1);
      rmSync(dirname(path));
      await device.check();
      await device.write(entryOf(4));
      await device.check();
      await device.close();
      expect([numbersIn(path), changes, failures[1]]).to.deep.equal([[4], ['renamed'], 'recovered']);
      expect(await verified(kept, path)).to.equal(0);
    });

    it('keeps its file while the path cannot be checked', async () => {
      let isBroken = true;
      const device = deviceTo(
        async () => {
          const target = await openAuditFile({ path, mode: 0o600 });
          return {
            ...target,
            fate: async () => (isBroken ? Promise.reject(Object.assign(new Error(), { code: 'EACCES' })) : { state: 'in place' }),
          };
        },
        { onFailure: ({ message: _, ...error }, failure) => failures.push(`${failure}: ${Reflect.get(error, 'code')}`) },
      );
      await device.open();
      blockPath();
      await device.check();
      await device.check();
      await device.write(entryOf(1));
      isBroken = false;
      await device.check();
      await device.close();
      expect(failures).to.deep.equal(['path: EACCES']);
    });

    it('writes the entries since the last check again if a write fails after a removal', async () => {
      let roomBytes = Number.POSITIVE_INFINITY;
      const device = deviceTo(
        async () => {
          const target = await openAuditFile({ path, mode: 0o600 });
          const write = async (bytes: Buffer): Promise<number> => {
            if (roomBytes === 0) throw Object.assign(new Error(), { code: 'ENOSPC' });
            const written = await target.write(bytes.subarray(0, roomBytes));
            roomBytes -= written;
            return written;
          };
          return { ...target, write };
        },
        { onChange: (change) => changes.push(change) },
      );
      await device.write(entryOf(1));
      await device.check();
      await device.write(entryOf(2));
      rmSync(path);
      roomBytes = 10;
      expect(await device.write(entryOf(3)).catch((error: NodeJS.ErrnoException) => error.code)).to.equal('ENOSPC');
      roomBytes = Number.POSITIVE_INFINITY;
      await device.write(entryOf(4));
      await device.close();
      const lines = readFileSync(path, 'utf8').trim().split('\n');
      expect([lines.length, JSON.parse(lines[0] ?? '').number, JSON.parse(lines[2] ?? '').number]).to.deep.equal([3, 2, 4]);
      expect(changes).to.deep.equal(['removed']);
      expect(await verified(path)).to.equal(0);
    });

    it('tells apart files whose inode numbers are equal as floating-point numbers', async () => {
      const { stat } = files;
      const device = deviceAtPath();
      await device.write(entryOf(1));
      const handle = await files.open(path);
      const prototype = Object.getPrototypeOf(handle) as { stat: (options?: object) => Promise<BigIntStats> };
      await handle.close();
      const { stat: handleStat } = prototype;
      const withInode = (status: Stats | BigIntStats, inode: bigint) =>
        Object.assign(status, { ino: typeof status.ino === 'bigint' ? inode : Number(inode) });
      prototype.stat = async function (this: object, options) {
        return withInode(await handleStat.call(this, options), 2n ** 53n) as BigIntStats;
      };
      files.stat = (async (name: string, options?: object) =>
        withInode(await stat(name, options), 2n ** 53n + 1n)) as typeof files.stat;
      syncBuiltinESMExports();
      try {
        await device.check();
      } finally {
        prototype.stat = handleStat;
        files.stat = stat;
        syncBuiltinESMExports();
      }
      await device.close();
      expect(changes).to.deep.equal(['renamed']);
    });

    it('reports a truncated file, also if it has grown again', async () => {
      const device = deviceAtPath();
      await device.write(entryOf(1));
      await device.check();
      truncateSync(path);
      await device.write(entryOf(2));
      await device.write(entryOf(3));
      await device.check();
      await device.check();
      await device.close();
      expect([numbersIn(path), changes]).to.deep.equal([[2, 3], ['truncated']]);
    });

    it('reports nothing about a file in place, and nothing about a rename that SIGHUP follows', async () => {
      const device = deviceAtPath();
      await device.write(entryOf(1));
      await device.check();
      renameSync(path, `${path}.1`);
      await device.reopen();
      await device.write(entryOf(2));
      await device.close();
      expect([numbersIn(path), changes, failures]).to.deep.equal([[2], [], []]);
    });

    it('fails after SIGHUP while the path cannot be opened, because log rotation may go on with the file', async () => {
      const device = deviceAtPath();
      await device.write(entryOf(1));
      const kept = join(folder, 'rotated.log');
      renameSync(path, kept);
      blockPath();
      await device.reopen();
      const refused = await device.write(entryOf(2)).catch((error: NodeJS.ErrnoException) => error.code);
      expect(refused).to.be.oneOf(['EEXIST', 'ENOTDIR']);
      rmSync(dirname(path));
      await device.write(entryOf(3));
      await device.close();
      expect([numbersIn(kept), numbersIn(path), failures.length]).to.deep.equal([[1], [3], 2]);
    });

    it('fails while the path cannot be opened, and then writes the entries that went with the file', async () => {
      const device = deviceAtPath();
      await device.write(entryOf(1));
      blockPath();
      await device.check();
      await device.check();
      const refused = await device.write(entryOf(2)).catch((error: NodeJS.ErrnoException) => error.code);
      expect(refused).to.be.oneOf(['EEXIST', 'ENOTDIR']);
      expect(failures, 'a check is no recovery').to.deep.equal([`writes: ${refused}`]);
      rmSync(dirname(path));
      await device.write(entryOf(3));
      await device.close();
      expect([numbersIn(path), failures, changes]).to.deep.equal([[1, 3], [`writes: ${refused}`, 'recovered'], ['removed']]);
      expect(await verified(path)).to.equal(0);
    });

    it('writes the entries that went with the file as soon as the path can be opened, although no entry follows', async () => {
      for (const end of ['check', 'close'] as const) {
        const device = deviceAtPath();
        await device.write(entryOf(1));
        blockPath();
        await device.check();
        rmSync(dirname(path));
        await device[end]();
        expect(numbersIn(path), end).to.deep.equal([1]);
        expect(failures.at(-1)).to.equal('recovered');
        await device.close();
        rmSync(path);
      }
      expect([changes, failures.length]).to.deep.equal([['removed', 'removed'], 4]);
    });
  });

  it('continues after the last line of an earlier process, complete or torn', async () => {
    const path = join(folder, 'audit.log');
    for (const torn of ['', '{"chain":']) {
      const device = deviceTo(() => openAuditFile({ path, mode: 0o600 }));
      await device.write(entryOf(1));
      await device.write(JSON.stringify({ long: 'x'.repeat(200_000) }));
      await device.close();
      writeFileSync(path, torn, { flag: 'a' });
    }
    const device = deviceTo(() => openAuditFile({ path, mode: 0o600 }));
    await device.write(entryOf(1));
    await device.close();
    expect(await verified(path)).to.equal(0);
  });

  it('fails the entries that a full disk does not store completely, reports that once, and recovers when there is room', async () => {
    const memory = new Memory();
    const reports: string[] = [];
    const device = deviceTo(memory.open, {
      onFailure: ({ message }) => reports.push(message),
      onRecovery: () => reports.push('works'),
    });
    await device.write(entryOf(0));
    memory.room = memory.text.length * 1.5; // room for one more line and a part of the next
    memory.room += 30;
    const outcomes = await Promise.allSettled([1, 2, 3].map((number) => device.write(entryOf(number))));
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'rejected']);
    expect((await Promise.allSettled([device.write(entryOf(4))]))[0]?.status).to.equal('rejected');
    memory.room = Number.POSITIVE_INFINITY;
    await device.write(entryOf(5));
    while (reports.length < 2) await turn();
    expect(reports).to.deep.equal(['full', 'works']);
    const file = join(folder, 'copy');
    writeFileSync(file, memory.text);
    expect(await verified(file)).to.equal(0);
    expect(memory.text.split('\n').length, 'three entries, the torn one and the empty text after the last newline').to.equal(5);
  });

  it('refuses entries while a write hangs, and writes again after it ends', async () => {
    const memory = new Memory();
    const device = deviceTo(memory.open, { writeTimeoutMs: 1 });
    let release = (): void => undefined;
    memory.hold = new Promise((resolve) => {
      release = resolve;
    });
    const failure = async (writing: Promise<void>): Promise<string> =>
      writing.then(
        () => '',
        (error: Error) => error.message,
      );
    expect(await failure(device.write(entryOf(1)))).to.match(/timed out/);
    expect(await failure(device.write(entryOf(2)))).to.match(/timed out/);
    release();
    memory.hold = undefined;
    while ((await failure(device.write(entryOf(3)))) !== '') await turn();
    expect(memory.text).to.include('"number":1').and.to.include('"number":3').and.not.to.include('"number":2');
  });

  it('refuses a path that is not a regular file', async () => {
    const device = deviceTo(() => openAuditFile({ path: '/dev/null', mode: 0o666 }));
    await device.open().then(
      () => expect.fail('it was opened'),
      (error: Error) => expect(error.message).to.equal('it is not a regular file'),
    );
  });
});
