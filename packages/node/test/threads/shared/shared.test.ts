// @live
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { deadlinesIn } from '../../../src/threads/shared/deadline.ts';
import { newNodeMemory } from '../../../src/threads/shared/node-memory.ts';
import { SealFlag } from '../../../src/threads/shared/seal-flag.ts';
import { SharedClock } from '../../../src/threads/shared/shared-clock.ts';
import { SharedStatus } from '../../../src/threads/shared/shared-status.ts';
import type { Task } from './sharing-thread.ts';

describe('the shared memory of a node', () => {
  const memory = newNodeMemory(2);
  let thread: Worker;
  before(() => {
    thread = new Worker(new URL('sharing-thread.ts', import.meta.url), { workerData: { memory } });
  });
  after(() => thread.terminate());

  const run = async (task: Task): Promise<bigint> => {
    thread.postMessage(task);
    const [nowNs] = await once(thread, 'message');
    return nowNs;
  };

  describe('a deadline', () => {
    const deadline = deadlinesIn(memory).lease;

    it('is over at first, and once its time has come', () => {
      expect(deadline.holds()).to.equal(false);
      deadline.set(1000n);
      expect(deadline.holds(999n)).to.equal(true);
      expect(deadline.holds(1000n)).to.equal(false);
    });

    it('is over for every thread once it was ended', () => {
      deadline.set(1000n);
      deadlinesIn(memory).lease.end();
      expect(deadline.holds(1n)).to.equal(false);
    });

    it('is independent of the deadlines of other kinds', () => {
      deadline.set(1000n);
      deadlinesIn(memory).read.end();
      expect(deadline.holds(999n)).to.equal(true);
    });

    it('has a clock that is the same in every thread', async () => {
      const before = process.hrtime.bigint();
      const there = await run('read the clock');
      const after = process.hrtime.bigint();
      expect(there > before && there < after).to.equal(true);
    });
  });

  describe('the clock of the node', () => {
    const clock = new SharedClock(memory);

    it('runs by the offset that the main thread trusts, when the wall clock was set back or forward', () => {
      clock.publish(Date.now() + 3_600_000);
      expect(clock.utcMs() - Date.now()).to.be.within(3_599_000, 3_600_001);
      expect(clock.dueMs() - Date.now()).to.be.within(-5, 0);
      clock.publish(Date.now() - 3_600_000);
      expect(clock.utcMs() - Date.now()).to.be.within(-5, 0);
      expect(clock.dueMs() - Date.now()).to.be.within(-3_600_010, -3_599_990);
    });
  });

  describe('the seal flag', () => {
    const seal = new SealFlag(memory);

    it('begins sealed, and stays so until the unseal', () => {
      expect(seal.isSealed).to.equal(true);
      seal.seal();
      expect(seal.isSealed).to.equal(true);
      seal.unseal();
      seal.unseal();
      expect(seal.isSealed).to.equal(false);
      seal.seal();
      expect(seal.isSealed).to.equal(true);
    });

    it('reports the confirmation of another thread', async () => {
      const confirmed = seal.isConfirmed(1, 60_000);
      void run('confirm the seal');
      expect(await confirmed).to.equal(true);
    });

    it('does not take the confirmation of an earlier seal or of another row', async () => {
      seal.unseal();
      seal.seal();
      expect(await seal.isConfirmed(1, 1)).to.equal(false);
      seal.confirm(0);
      expect(await seal.isConfirmed(1, 1)).to.equal(false);
      expect(await seal.isConfirmed(0, 1)).to.equal(true);
    });
  });

  describe('the status', () => {
    const status = new SharedStatus(memory);

    it('never combines fields of two states', async () => {
      const isPublished = run('publish statuses');
      let last = 0;
      while (last < 200_000) {
        const { role, ready, diskLow, ...numbers } = status.read();
        if (numbers.term === 0) continue; // nothing is published yet
        last = numbers.term;
        if (Object.values(numbers).some((number) => number !== last)) expect.fail(JSON.stringify(numbers));
        if (ready !== (last % 2 === 0) || diskLow !== ready || (role === 'leader') !== ready)
          expect.fail(`the flags are not those of ${last}`);
      }
      await isPublished;
    });
  });
});
