import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { createNode } from '../../src/directory/node-directory.ts';
import { SegmentLog } from '../../src/log/segment-log.ts';
import { MemoryDisk } from '../directory/memory-disk.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';
import { base, close, contents, entry, genesis, write } from '../log/log-calls.ts';
import { apply, fetched, flush, installed, newNode, openNode, put, serving, shownState } from './snapshot-nodes.ts';

const sizes = { segmentBytes: 500, growBytes: 192, every: () => () => undefined };
const meta = base(20, 3);

/** Runs a node with three log entries that installs a snapshot, on a disk that fails at operation `crashAt`. */
async function installOn(disk: MemoryDisk, crashAt: number, coin: () => boolean) {
  await createNode('/node', { clusterId: 'c', nodeId: 7, base: genesis }, disk);
  const log = await SegmentLog.open('/node', { ...sizes, disk });
  await write(log, { hardState: { term: 3, vote: 7, commit: 2 }, entries: [1, 2, 3].map((index) => entry(index, 2)) });
  let operations = 0;
  let left: MemoryDisk | undefined;
  disk.before = () => {
    if (operations++ < crashAt) return;
    left ??= disk.crash(coin);
    throw new Error('the power is off');
  };
  let isInstalled = false;
  try {
    await log.createGenerationLog(2);
    await log.install(meta, 2);
    isInstalled = true;
    await write(log, { entries: [entry(21, 3)] });
    await disk.removeDirectory('/node/generation-1');
    await close(log);
  } catch (error) {
    if (left === undefined) throw error;
  }
  return { isInstalled, left };
}

describe('installing a snapshot', () => {
  it('leaves the old log or the new one after a power failure at any operation, whichever unsynced pages survive', async () => {
    const found = { old: 0, new: 0 };
    let crashed = true;
    for (let crashAt = 0; crashed; crashAt++) {
      for (let seed = 0; seed < 12; seed++) {
        let state = seed * 7919 + crashAt;
        const coin = () => {
          state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
          return seed === 0 ? false : seed === 1 || state >>> 31 === 1;
        };
        const { isInstalled, left } = await installOn(new MemoryDisk(), crashAt, coin);
        crashed = left !== undefined;
        if (left === undefined) break;
        const log = await SegmentLog.open('/node', { ...sizes, disk: left });
        const { start, place } = log;
        expect(start.hardState).to.include({ term: 3, vote: 7 });
        if (place.generation === 1) {
          expect(isInstalled, 'installed and lost').to.equal(false);
          expect(await contents(log)).to.have.length(3);
          expect(start.base).to.deep.equal(genesis);
          found.old += 1;
        } else {
          expect(start.base).to.deep.equal(meta);
          expect(start.lastIndex).to.be.oneOf([20, 21]);
          expect(start.hardState.commit).to.equal(20);
          await write(log, { entries: [entry(start.lastIndex + 1, 3)] });
          found.new += 1;
        }
        const others = ((await left.list('/node')) ?? []).filter((name) => name.startsWith('generation-'));
        expect(others).to.deep.equal([`generation-${place.generation}`]);
        await close(log);
      }
    }
    expect(found.old).to.be.above(50);
    expect(found.new).to.be.above(50);
  });

  it("leaves only the new log's mark, even when the old log was longer and its mark is raised at the same time", async () => {
    const disk = new MemoryDisk();
    let tick: () => void = () => undefined;
    await createNode('/node', { clusterId: 'c', nodeId: 7, base: genesis }, disk);
    const every = (_: number, task: () => void) => {
      tick = task;
      return () => undefined;
    };
    const log = await SegmentLog.open('/node', { ...sizes, disk, every });
    const uncommitted = Array.from({ length: 30 }, (_, i) => entry(i + 1, 2));
    await write(log, { hardState: { term: 3, vote: 7, commit: 0 }, entries: uncommitted });
    tick();
    await log.createGenerationLog(2);
    disk.before = (operation, path) => {
      if (operation !== 'sync' || !path.endsWith('node.state')) return;
      log.noteCommit(1); // so that the mark has to be raised
      tick();
    };
    await log.install(meta, 2);
    disk.before = () => undefined;
    await new Promise(setImmediate);
    const after = disk.crash(() => true);
    const again = await SegmentLog.open('/node', { ...sizes, disk: after });
    expect(again.start).to.deep.include({ base: meta, lastIndex: 20 });
    await close(again);
    await close(log);
  });

  it('is refused for a snapshot at a committed index or of an unknown term', async () => {
    for (const wrong of [base(2, 2), base(20, 4)]) {
      const log = await openOn(new MemoryDisk());
      await log.createGenerationLog(2);
      const refusal = await log.install(wrong, 2).then(
        () => 'none',
        ({ message }: Error) => message,
      );
      expect(refusal).to.match(/cannot follow a log of term 3 that is committed to 2/);
      await close(log).catch(() => undefined);
    }
  });
});

async function openOn(disk: MemoryDisk): Promise<SegmentLog> {
  await createNode('/node', { clusterId: 'c', nodeId: 7, base: genesis }, disk);
  const log = await SegmentLog.open('/node', { ...sizes, disk });
  await write(log, { hardState: { term: 3, vote: 7, commit: 2 }, entries: [1, 2, 3].map((index) => entry(index, 2)) });
  return log;
}

describe('a process that is killed while it fetches a snapshot', () => {
  for (const { failpoint, expected } of [
    { failpoint: 'snapshot.before_batch', expected: 'old' },
    { failpoint: 'snapshot.before_batch=exit:2', expected: 'old' },
    { failpoint: 'snapshot.after_load', expected: 'old' },
    { failpoint: 'snapshot.before_switch', expected: 'old' },
    { failpoint: 'snapshot.after_switch', expected: 'new' },
    { failpoint: 'snapshot.before_remove', expected: 'new' },
    { failpoint: 'none', expected: 'new' },
  ] as const)
    it(`at ${failpoint} starts with the complete ${expected} state and nothing of the other state`, () =>
      inTemporaryDirectory(async (parent) => {
        const follower = await newNode(parent, 'follower', 2);
        await write(follower.log, { hardState: { term: 3, vote: 1, commit: 0 }, entries: [] });
        apply(follower.machine, put('a', 'old'));
        await flush(follower.machine);
        // An index that the log has, since the state must not be beyond it.
        await write(follower.log, { hardState: { term: 3, vote: 1, commit: 1 }, entries: [entry(1, 3)] });
        await follower.close();

        const armed = failpoint === 'none' ? '' : failpoint.includes('=') ? failpoint : `${failpoint}=exit`;
        const child = spawn(process.execPath, [join(import.meta.dirname, 'take-snapshot.ts'), parent], {
          env: { ...process.env, TRANSITD_FAILPOINTS: armed },
          stdio: ['ignore', 'ignore', 'pipe'],
        });
        let errors = '';
        child.stderr.on('data', (text) => {
          errors += text;
        });
        const [code, signal] = await once(child, 'exit');
        expect({ code, signal }, errors).to.deep.equal(
          failpoint === 'none' ? { code: 0, signal: null } : { code: null, signal: 'SIGKILL' },
        );

        const again = await openNode(parent, 'follower');
        const state = await shownState(again.machine);
        if (expected === 'old') expect(state).to.deep.equal(['a=old@1']);
        else {
          expect(state).to.have.length(31);
          expect(state.at(0)).to.equal('a=new@31');
          expect(again.log.start).to.deep.include({ base: base(31, 3), lastIndex: 31 });
        }
        expect(await again.machine.checkDigest()).to.include({ sound: true });
        const names = (await readdir(again.directory)).filter((name) => name.startsWith('generation-'));
        expect(names).to.deep.equal([expected === 'old' ? 'generation-1' : 'generation-2']);
        await again.close();

        if (expected === 'new') return;
        await take(parent);
      }));
});

/** Checks that leftovers of the first attempt do not disturb a later one. */
async function take(parent: string): Promise<void> {
  const leader = await openNode(parent, 'leader');
  const follower = await openNode(parent, 'follower');
  const { snapshots: source } = serving(leader);
  const { snapshots } = serving(follower, { link: { open: async (_from, index) => source.stream(2, index) } });
  const meta = await fetched(snapshots, base(2, 3));
  expect(meta).to.deep.equal(base(31, 3));
  await installed(snapshots, base(31, 3));
  expect(await shownState(follower.machine)).to.deep.equal(await shownState(leader.machine));
  await snapshots.close();
  await follower.close();
  await leader.close();
}
