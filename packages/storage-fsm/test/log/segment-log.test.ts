import { glob, mkdtemp, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Entry, LogWrite } from '@transitd/raft-core';
import { expect } from 'chai';
import { createNode } from '../../src/directory/node-directory.ts';
import { StorageFailed } from '../../src/errors.ts';
import { armFailpoints } from '../../src/failpoint.ts';
import type { SegmentLogOptions } from '../../src/log/open-log.ts';
import { SegmentLog } from '../../src/log/segment-log.ts';
import { type DiskOperation, MemoryDisk } from '../directory/memory-disk.ts';
import { base, close, compact, contents, entries, entry, genesis, read, shown, write } from './log-calls.ts';
import { logStoreSuite } from './ports.suite.ts';

const identity = { clusterId: 'a cluster', nodeId: 2 ** 47 + 5, base: genesis };
const small: SegmentLogOptions = { segmentBytes: 600, growBytes: 256, cacheBytes: 200 };
/** A timer that never fires. */
const noTimer: SegmentLogOptions = { every: () => () => undefined };

logStoreSuite('SegmentLog on a disk', {
  async newNode() {
    const directory = await mkdtemp(join(tmpdir(), 'segment-log-'));
    await createNode(directory, identity);
    return { open: () => SegmentLog.open(directory, { growBytes: 4096 }), remove: () => rm(directory, { recursive: true }) };
  },
});
logStoreSuite('SegmentLog with small segments', {
  async newNode() {
    const disk = new MemoryDisk();
    await createNode('/node', identity, disk);
    return { open: () => SegmentLog.open('/node', { ...small, ...noTimer, disk }), remove: async () => undefined };
  },
});
logStoreSuite('SegmentLog with a segment for each batch', {
  async newNode() {
    const disk = new MemoryDisk();
    await createNode('/node', identity, disk);
    return {
      open: () => SegmentLog.open('/node', { segmentBytes: 1, growBytes: 1, cacheBytes: 0, ...noTimer, disk }),
      remove: async () => undefined,
    };
  },
});

describe('SegmentLog', () => {
  let disk: MemoryDisk;
  let log: SegmentLog;
  const options = (): SegmentLogOptions => ({ ...small, ...noTimer, disk });
  const term = (term: number, vote = 0) => ({ hardState: { term, vote, commit: 0 } });
  const segmentFiles = () => [...disk.files().keys()].filter((path) => path.endsWith('.log')).sort();
  const outcome = (call: Promise<unknown>) =>
    call.then(
      () => undefined,
      (error: unknown) => error,
    );

  beforeEach(async () => {
    disk = new MemoryDisk();
    await createNode('/node', identity, disk);
    log = await SegmentLog.open('/node', options());
  });

  /** Returns the disk operations made while `task` runs. */
  async function operationsOf(task: () => Promise<unknown>): Promise<string[]> {
    const seen: string[] = [];
    disk.before = (operation, path) => void seen.push(`${operation} ${path.slice(path.lastIndexOf('/') + 1)}`);
    await task().finally(() => {
      disk.before = () => undefined;
    });
    return seen;
  }

  /** Blocks the first such operation until it is released; the others pass. */
  function holdFirst(held: DiskOperation, suffix: string): { reached: Promise<void>; release: () => void } {
    const reached = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    let holding = false;
    disk.before = (operation, path) => {
      if (holding || operation !== held || !path.endsWith(suffix)) return undefined;
      holding = true;
      reached.resolve();
      return released.promise;
    };
    return { reached: reached.promise, release: released.resolve };
  }
  /** Resolves when such an operation begins. */
  function operation(awaited: DiskOperation, suffix: string): Promise<void> {
    const { before } = disk;
    return new Promise((resolve) => {
      disk.before = (operation, path) => {
        if (operation === awaited && path.endsWith(suffix)) resolve();
        return before(operation, path);
      };
    });
  }
  /** Resolves when every pending callback has run; this disk needs nothing else. */
  const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));

  describe('writing', () => {
    it('makes a new term durable in both slots before the entries of the same write', async () => {
      await write(log, { ...term(1), entries: [entry(1, 1)] });
      expect(await operationsOf(() => write(log, { ...term(2, 9), entries: [entry(2, 2)] }))).to.deep.equal([
        'write node.state',
        'sync node.state',
        'write node.state',
        'sync node.state',
        'write 0000000001.log',
        'sync 0000000001.log',
      ]);
    });

    it('stores entries alone with one write and one sync', async () => {
      await write(log, { ...term(1), entries: [entry(1, 1)] });
      expect(await operationsOf(() => write(log, { ...term(1), entries: [entry(2, 1)] }))).to.deep.equal([
        'write 0000000001.log',
        'sync 0000000001.log',
      ]);
    });

    it('shares one sync among all writes that arrive while one is in flight', async () => {
      await write(log, term(1));
      const order: number[] = [];
      const append = (index: number) => write(log, { entries: [entry(index, 1, '')] }).then(() => order.push(index));
      const held = holdFirst('sync', '.log');
      const first = append(1);
      await held.reached;
      const operations = await operationsOf(async () => {
        const rest = [2, 3, 4].map(append);
        await turn();
        expect(order).to.deep.equal([]);
        held.release();
        await Promise.all([first, ...rest]);
      });
      expect(order).to.deep.equal([1, 2, 3, 4]);
      expect(operations).to.deep.equal(['write 0000000001.log', 'sync 0000000001.log']);
    });

    it('begins a new segment, whose name it syncs first, when a batch does not fit, and never splits a batch', async () => {
      await write(log, { ...term(1), entries: entries({ first: 1, last: 8 }, 1) });
      const before = disk.files();
      const operations = await operationsOf(() => write(log, { entries: entries({ first: 9, last: 16 }, 1) }));
      expect(operations.indexOf('syncDirectory log')).to.be.within(
        0,
        operations.findLastIndex((operation) => operation.startsWith('write 0000000002.log')) - 1,
      );
      expect(segmentFiles()).to.have.lengthOf(2);
      const [first] = segmentFiles();
      expect(disk.files().get(first ?? '')).to.deep.equal(before.get(first ?? ''));
    });

    it('stores a batch larger than segmentBytes in a segment of its own', async () => {
      await write(log, { ...term(1), entries: [entry(1, 1)] });
      await write(log, { entries: [entry(2, 1, 'x'.repeat(5000)), entry(3, 1)] });
      await close(log);
      log = await SegmentLog.open('/node', options());
      expect(segmentFiles()).to.have.lengthOf(2);
      expect(await contents(log)).to.deep.equal(shown([entry(1, 1), entry(2, 1, 'x'.repeat(5000)), entry(3, 1)]));
    });

    for (const { because, given } of [
      { because: 'a gap', given: { entries: [entry(4, 2)] } },
      { because: 'a gap within the write', given: { entries: [entry(3, 2), entry(5, 2)] } },
      { because: 'a committed entry superseded', given: { entries: [entry(1, 2)] } },
      { because: 'an entry of a term that is not durable', given: { entries: [entry(3, 3)] } },
      { because: 'a term that decreases along the log', given: { entries: [entry(3, 1)] } },
      { because: 'a term that decreases', given: term(1) },
      { because: 'a second vote in one term', given: term(2, 8) },
    ] satisfies { because: string; given: Partial<LogWrite> }[])
      it(`stops instead of storing ${because}, which only a bug can request`, async () => {
        await write(log, { ...term(2, 7), entries: [entry(1, 1), entry(2, 2)] });
        log.noteCommit(1);
        expect(await outcome(write(log, given))).to.be.instanceOf(StorageFailed);
        expect(await outcome(write(log, { entries: [entry(3, 2)] }))).to.be.instanceOf(StorageFailed);
      });
  });

  describe('the high-water mark', () => {
    const nodeState = () => disk.files().get('/node/node.state')?.toString('latin1') ?? '';
    const marks = () => [...nodeState().matchAll(/"mark":\{"index":(\d+)/g)].map(([, index]) => Number(index));

    it('is raised on the timer, in one slot, and only if it has changed', async () => {
      await close(log);
      let tick: () => void = () => undefined;
      log = await SegmentLog.open('/node', {
        ...options(),
        every: (_, task) => {
          tick = task;
          return () => undefined;
        },
      });
      await write(log, { ...term(1), entries: entries({ first: 1, last: 3 }, 1) });
      const operations = await operationsOf(async () => {
        tick();
        await write(log, { entries: [entry(4, 1)] });
        await close(log);
      });
      expect(operations.filter((operation) => operation === 'sync node.state')).to.have.lengthOf(2);
      expect(Math.max(...marks())).to.equal(4);
    });

    it('is lowered in both slots before a record supersedes entries below it', async () => {
      await write(log, { ...term(1), entries: entries({ first: 1, last: 5 }, 1) });
      await close(log);
      log = await SegmentLog.open('/node', options());
      expect(marks()).to.deep.equal([5, 5]);
      await write(log, term(2));
      let atWrite: number[] = [];
      disk.before = (operation, path) => {
        if (operation === 'write' && path.endsWith('.log')) atWrite = marks();
      };
      await write(log, { ...term(2), entries: [entry(4, 2)] });
      expect(atWrite).to.deep.equal([3, 3]);
    });

    it('does not count entries that a waiting write replaces as committed', async () => {
      await close(log);
      const timer: { tick: () => void } = { tick: () => undefined };
      const every = (_: number, task: () => void) => {
        timer.tick = task;
        return () => undefined;
      };
      log = await SegmentLog.open('/node', { ...options(), every });
      await write(log, { ...term(1), entries: entries({ first: 1, last: 5 }, 1) });
      const held = holdFirst('sync', '.log');
      const appending = write(log, { entries: [entry(6, 1)] });
      await held.reached;
      const replacing = write(log, { ...term(2), entries: entries({ first: 3, last: 6 }, 2) });
      log.noteCommit(4);
      const marked = operation('sync', 'node.state');
      timer.tick();
      await marked;
      await turn();
      const found = await SegmentLog.open('/node', { ...options(), disk: disk.crash(() => false) });
      expect(found.start).to.deep.include({ lastIndex: 5, terms: [{ term: 1, firstIndex: 1 }] });
      expect(found.start.hardState.commit).to.be.below(3);
      held.release();
      await Promise.all([appending, replacing]);
    });
  });

  describe('compaction', () => {
    it('drops whole segments below the base, and the log opens with the rest', async () => {
      for (let index = 1; index <= 40; index++) await write(log, { ...term(1), entries: [entry(index, 1)] });
      const all = segmentFiles();
      await compact(log, base(30, 1));
      expect(segmentFiles().length).to.be.within(1, all.length - 2);
      await close(log);
      log = await SegmentLog.open('/node', options());
      expect(await contents(log)).to.deep.equal(shown(entries({ first: 31, last: 40 }, 1)));
    });

    it('finishes the removal of segments that a crash interrupted', async () => {
      for (let index = 1; index <= 40; index++) await write(log, { ...term(1), entries: [entry(index, 1)] });
      const before = segmentFiles();
      await compact(log, base(30, 1));
      const undone = new Map([...disk.files()]);
      for (const path of before) if (!undone.has(path)) undone.set(path, Buffer.from('half gone'));
      disk = MemoryDisk.of(undone);
      log = await SegmentLog.open('/node', options());
      expect(await contents(log)).to.deep.equal(shown(entries({ first: 31, last: 40 }, 1)));
      expect(segmentFiles().length).to.be.below(before.length);
    });

    it('drops segments that hold only superseded entries above the base, and the log opens with the rest', async () => {
      await write(log, { ...term(1), entries: entries({ first: 1, last: 6 }, 1) });
      await write(log, { entries: entries({ first: 7, last: 12 }, 1) });
      await write(log, { ...term(2), entries: [entry(4, 2)] });
      await compact(log, base(3, 1));
      await close(log);
      log = await SegmentLog.open('/node', options());
      expect(await contents(log)).to.deep.equal(shown([entry(4, 2)]));
    });

    it('does not disturb a read that has begun', async () => {
      for (let index = 1; index <= 40; index++) await write(log, { ...term(1), entries: [entry(index, 1)] });
      const held = holdFirst('read', '.log');
      const reading = read(log, 1, 20);
      await held.reached;
      const compacting = compact(log, base(30, 1));
      await turn();
      held.release();
      expect(shown(await reading)).to.deep.equal(shown(entries({ first: 1, last: 20 }, 1)));
      await compacting;
    });
  });

  describe('reading', () => {
    it('finds every entry of a large log over many small segments, before and after a restart', async () => {
      const all: Entry[] = [];
      for (let index = 1; index <= 1500; index += 3) {
        const batch = entries({ first: index, last: index + 2 }, Math.ceil(index / 100));
        all.push(...batch);
        await write(log, { ...term(Math.ceil(index / 100)), entries: batch });
      }
      expect(shown(await read(log, 1, 1500))).to.deep.equal(shown(all));
      await close(log);
      log = await SegmentLog.open('/node', options());
      expect(segmentFiles().length).to.be.above(100);
      expect(log.start.terms).to.have.lengthOf(15);
      expect(await contents(log)).to.deep.equal(shown(all));
    });

    it('reads the newest entries from the cache', async () => {
      await write(log, { ...term(1), entries: entries({ first: 1, last: 17 }, 1) });
      await write(log, { entries: entries({ first: 18, last: 20 }, 1) });
      expect(await operationsOf(() => read(log, 18, 20))).to.deep.equal([]);
      expect(await operationsOf(() => read(log, 1, 20))).to.deep.equal(['read 0000000001.log']);
    });

    it('caches 4 MiB of the newest entries by default', async () => {
      const directory = await mkdtemp(join(tmpdir(), 'segment-log-'));
      await createNode(directory, identity);
      const byDefault = await SegmentLog.open(directory, noTimer);
      const data = new Uint8Array(1024 * 1024 - 1024);
      for (let index = 1; index <= 6; index++) await write(byDefault, { ...term(1), entries: [{ ...entry(index, 1), data }] });
      const logs = glob(join(directory, '**/*.log'));
      for await (const path of logs) await truncate(path); // so that only cached entries can be read
      expect((await read(byDefault, 3, 6)).map(({ index }) => index)).to.deep.equal([3, 4, 5, 6]);
      expect(await outcome(read(byDefault, 2, 2))).to.be.instanceOf(StorageFailed);
      await rm(directory, { recursive: true });
    });

    it('fails at an entry whose bytes have changed', async () => {
      await write(log, { ...term(1), entries: entries({ first: 1, last: 20 }, 1) });
      await close(log);
      log = await SegmentLog.open('/node', options());
      const [path] = segmentFiles();
      const file = await disk.open(path ?? '');
      await file?.write(100, Buffer.from([255, 255]));
      expect(await outcome(read(log, 1, 20))).to.be.instanceOf(StorageFailed);
      expect(await outcome(write(log, { entries: [entry(21, 1)] }))).to.be.instanceOf(StorageFailed);
    });
  });

  describe('failing', () => {
    const operations: DiskOperation[] = ['write', 'sync', 'create', 'rename', 'syncDirectory'];
    for (const failing of operations)
      it(`acknowledges nothing after a failed ${failing}, and does not retry it`, async () => {
        await write(log, { ...term(1), entries: entries({ first: 1, last: 3 }, 1) });
        await close(log);
        const failures: Error[] = [];
        log = await SegmentLog.open('/node', { ...options(), onFailure: (error) => void failures.push(error) });
        let tried = 0;
        disk.before = (operation) => {
          if (operation !== failing && tried === 0) return;
          tried += 1;
          throw new Error('EIO');
        };
        const writes = [4, 5, 6].map((index) => write(log, { entries: [entry(index, 1, 'x'.repeat(600))] }));
        const errors = await Promise.all(writes.map(outcome));
        const failed = errors.filter((error) => error instanceof StorageFailed);
        expect(failed.length).to.be.above(0);
        expect(errors.slice(-failed.length)).to.deep.equal(failed);
        expect(new Set(failed).size).to.equal(1);
        expect(await outcome(read(log, 1, 1))).to.equal(failed[0]);
        expect(await outcome(compact(log, base(1, 1)))).to.equal(failed[0]);
        expect(await outcome(close(log))).to.equal(failed[0]);
        expect(tried).to.equal(1);
        expect(failures).to.deep.equal([failed[0]]);
      });

    it('keeps the entries acknowledged before the disk was full', async () => {
      await write(log, { ...term(1), entries: [entry(1, 1)] });
      disk.capacityBytes = 2 * 65536 + 2000;
      let stored = 1;
      let error: unknown;
      while (error === undefined) {
        error = await outcome(write(log, { entries: [entry(stored + 1, 1)] }));
        if (error === undefined) stored += 1;
      }
      expect(error).to.be.instanceOf(StorageFailed);
      expect((error as StorageFailed).message).to.contain('ENOSPC');
      const found = await SegmentLog.open('/node', { ...options(), disk: MemoryDisk.of(disk.files()) });
      expect((await contents(found)).slice(0, stored)).to.deep.equal(shown(entries({ first: 1, last: stored }, 1)));
    });

    for (const name of ['log.before_append', 'log.after_append', 'log.before_fsync', 'log.after_fsync'])
      it(`fails at the failpoint ${name}, at the requested pass`, async () => {
        try {
          await write(log, term(1));
          armFailpoints(`${name}=error:2`);
          await write(log, { entries: [entry(1, 1)] });
          expect(await outcome(write(log, { entries: [entry(2, 1)] }))).to.be.instanceOf(StorageFailed);
        } finally {
          armFailpoints(undefined);
        }
      });

    it('rewrites at start the pages that a failed sync may have left only in the page cache', async () => {
      await write(log, { ...term(1), entries: [entry(1, 1)] });
      disk.before = (operation, path) => {
        if (operation === 'sync' && path.endsWith('.log')) throw new Error('EIO');
      };
      await outcome(write(log, { entries: [entry(2, 1)] }));
      disk = MemoryDisk.of(disk.files());
      const operations = await operationsOf(async () => {
        log = await SegmentLog.open('/node', options());
      });
      expect(log.start.lastIndex).to.equal(2);
      const rewritten = operations.indexOf('write 0000000001.log');
      expect(operations.indexOf('sync 0000000001.log')).to.be.above(rewritten).and.below(operations.indexOf('write node.state'));
      expect(rewritten).to.be.above(-1);
    });
  });
});
