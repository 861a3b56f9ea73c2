import type { Entry } from '@transitd/raft-core';
import { expect } from 'chai';
import { MemoryDisk, SimClock } from '../../src/index.ts';

const entry = (index: number, term = 1): Entry => ({ index, term, type: 'normal', data: Uint8Array.of(index, term) });
const hardState = { term: 2, vote: 1, commit: 0 };

function open(delayMs = 1) {
  const clock = new SimClock();
  const disk = new MemoryDisk({ nodeId: 1, clusterId: 'c' });
  const log = disk.open(clock, { delayMs: () => delayMs });
  const done: string[] = [];
  const note = (name: string) => (error?: Error) => void done.push(error === undefined ? name : `${name}: ${error.message}`);
  return { clock, disk, log, done, note };
}

describe('MemoryLog', () => {
  it('stores nothing before its sync, and answers after it', () => {
    const { clock, disk, log, done, note } = open(5);
    log.write({ entries: [entry(1)] }, note('a'));
    clock.runFor(4);
    expect([disk.lastIndex, done.length]).to.deep.equal([0, 0]);
    clock.runFor(1);
    expect(disk.entries).to.deep.equal([entry(1)]);
    expect(done).to.deep.equal(['a']);
  });

  it('makes the hard state durable before the entries that come with it', () => {
    const { clock, disk, log, note } = open();
    log.write({ hardState, entries: [entry(1, 2)] }, note('a'));
    clock.runUntil(() => disk.hardState.term === 2);
    expect(disk.lastIndex).to.equal(0);
    clock.runUntil(() => disk.lastIndex === 1);
  });

  it('lets a write from an index supersede everything from there', () => {
    const { clock, disk, log, note } = open();
    log.write({ entries: [entry(1), entry(2), entry(3)] }, note('a'));
    log.write({ entries: [entry(2, 2)] }, note('b'));
    clock.runFor(10);
    expect(disk.entries).to.deep.equal([entry(1), entry(2, 2)]);
    expect(disk.start()).to.deep.include({
      lastIndex: 2,
      terms: [
        { term: 1, firstIndex: 1 },
        { term: 2, firstIndex: 2 },
      ],
    });
  });

  it('keeps a prefix of a sync that a crash cuts off, and answers nothing after it', () => {
    const { clock, disk, log, note, done } = open();
    log.write({ entries: [entry(1), entry(2), entry(3)] }, note('a'));
    log.crash({ landed: 2 });
    expect(disk.lastIndex).to.equal(2);
    log.write({ entries: [entry(4)] }, note('b'));
    clock.runFor(10);
    expect(done).to.include('b: crashed');
    expect(disk.lastIndex).to.equal(2);
  });

  it('fails everything from the first error on, including writes that had joined the sync', () => {
    const { clock, disk, log, note, done } = open();
    log.failNext('write', new Error('full'), { landed: 1 });
    log.write({ entries: [entry(1), entry(2)] }, note('a'));
    log.write({ entries: [entry(3)] }, note('b'));
    clock.runFor(10);
    log.compact(disk.base, note('c'));
    clock.runFor(10);
    expect(done).to.deep.equal(['a: full', 'b: full', 'c: full']);
    expect(disk.lastIndex).to.equal(1);
  });

  it('stores a commit hint with the next write', () => {
    const { clock, disk, log, note } = open();
    log.noteCommit(1);
    clock.runFor(10);
    expect(disk.hardState.commit).to.equal(0);
    log.write({ entries: [entry(1)] }, note('a'));
    clock.runFor(10);
    expect(disk.hardState.commit).to.equal(1);
  });

  it('reads entries up to a limit of bytes but at least one, and reports a missing entry', () => {
    const { clock, log, note } = open();
    log.write({ entries: [entry(1), entry(2), entry(3)] }, note('a'));
    const answers: unknown[] = [];
    clock.runFor(10);
    for (const [hi, maxBytes] of [
      [3, 100],
      [3, 4],
      [3, 1],
      [4, 100],
    ] as const) {
      log.read({ lo: 1, hi, maxBytes }, (error, entries) => answers.push(error?.message ?? entries.length));
      clock.runFor(10);
    }
    expect(answers).to.deep.equal([3, 2, 1, 'entry 4 is not in the log']);
  });

  it('closes only at rest, and takes no write after', () => {
    const { clock, disk, log, note, done } = open();
    log.close(note('close'));
    log.write({ entries: [entry(1)] }, note('a'));
    clock.runFor(10);
    expect(done).to.deep.equal(['close', 'a: the log is closed']);

    const next = disk.open(clock);
    next.write({ entries: [entry(1)] }, note('b'));
    next.close(note('too early'));
    clock.runFor(10);
    expect(done).to.include('too early: closed while an operation is under way');
  });
});
