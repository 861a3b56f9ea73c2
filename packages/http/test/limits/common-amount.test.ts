// @live
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { BodyRoom } from '../../src/body/body-room.ts';
import { CommonAmount, type CommonMemory, newCommonMemory } from '../../src/limits/common-amount.ts';
import { CallerAmounts, TakenAmount } from '../../src/limits/thread-limit.ts';
import { WorkLimit } from '../../src/limits/work-limit.ts';
import { caller } from './caller.ts';

const script = new URL('taking-thread.ts', import.meta.url);
const memoryOf = (max: number, perCallerMax = max) => newCommonMemory({ max, perCallerMax, seed: 1 }, 2);
/** A macrotask later, every wake has been delivered that could be. */
const later = () => new Promise((resolve) => setImmediate(resolve));

/** Checks that nothing is woken for many turns of the event loop. */
async function expectNoWake({ wake }: CommonMemory): Promise<void> {
  await later();
  const before = wake[1];
  for (let turn = 0; turn < 20; turn += 1) await later();
  expect(wake[1]).to.equal(before);
}

describe('the common amount of several threads', () => {
  it('is never exceeded by threads that take at the same time, and ends empty when they give back all', async () => {
    const memory = newCommonMemory({ max: 10, perCallerMax: 3, seed: 1 }, 3);
    const threads = [0, 1].map((row) => new Worker(script, { workerData: { memory, row } }));
    const seen = new CommonAmount(memory, 2);
    const results = await Promise.all(threads.map((thread) => once(thread, 'message')));
    for (const [{ taken, mostOfCaller }] of results) {
      expect(taken).to.be.above(0);
      expect(mostOfCaller).to.be.at.most(3);
    }
    expect(seen.taken).to.equal(0);
    expect(memory.taken.every((amount) => amount === 0n)).to.equal(true);
    await Promise.all(threads.map((thread) => thread.terminate()));
  });

  it('is free again when a thread that was terminated is cleared, whatever the thread was doing', async () => {
    const memory = memoryOf(10, 3);
    const thread = new Worker(script, { workerData: { memory, row: 0, isEndless: true } });
    await once(thread, 'message');
    await thread.terminate();
    const main = new CommonAmount(memory, 1);
    new CommonAmount(memory, 0).clear();
    expect(main.taken).to.equal(0);
    expect([main.tryTake(10), main.tryTake(3, 'caller')]).to.deep.equal([true, true]);
  });

  it('wakes a request that waits on another thread', async () => {
    const memory = memoryOf(1);
    const own = { atOnceMax: 0, perCallerMax: 0, waitingMax: 10 };
    const gateway = new WorkLimit({ ...own, common: new CommonAmount(memory, 0) });
    const main = new WorkLimit({ ...own, common: new CommonAmount(memory, 1) });
    expect(gateway.tryEnter('a')).to.equal(true);
    const order: string[] = [];
    const turns = ['b', 'c'].map((name) => main.enter(caller(), name)?.then(() => order.push(name)));
    await later();
    expect([order, main.waiting]).to.deep.equal([[], 2]);
    gateway.leave('a');
    await turns[0];
    expect([order, gateway.tryEnter('d')]).to.deep.equal([['b'], false]);
    main.leave('b');
    await turns[1];
    main.leave('c');
    expect([main.atWork, main.waiting, gateway.tryEnter('d')]).to.deep.equal([0, 0, true]);
  });

  it('wakes a thread that waits when another one gives back', async () => {
    const memory = memoryOf(10);
    const thread = new Worker(script, { workerData: { memory, row: 0, givesBack: true } });
    await once(thread, 'message');
    const main = new CommonAmount(memory, 1);
    await new Promise<void>((resolve) => {
      const retry = (): void => {
        main.whenFreed(retry);
        if (main.tryTake(10)) resolve();
        else thread.postMessage('give back');
      };
      retry();
    });
    expect(main.taken).to.equal(10);
    await thread.terminate();
  });

  it('wakes the requests that wait when a thread has ended', async () => {
    const memory = memoryOf(2);
    const [gone, main] = [new CommonAmount(memory, 0), new CommonAmount(memory, 1)];
    expect(gone.tryTake(2)).to.equal(true);
    const limit = new WorkLimit({ atOnceMax: 0, perCallerMax: 0, waitingMax: 10, common: main });
    const entered = limit.enter(caller(), 'a');
    gone.clear();
    await entered;
    expect(limit.atWork).to.equal(1);
  });

  it('does not wake a thread over and over while nothing is given back', async () => {
    const common = new CommonAmount(memoryOf(1), 0);
    expect(common.tryTake(1)).to.equal(true);
    let retries = 0;
    const retry = (): void => {
      retries += 1;
      common.whenFreed(retry);
      common.tryTake(1);
    };
    retry();
    for (let turn = 0; turn < 10; turn += 1) await later();
    expect(retries).to.equal(1);
  });

  it('does not wake the threads that wait over and over, whatever is missing: places, or the part of a caller', async () => {
    for (const perCallerMax of [1, 4]) {
      const memory = memoryOf(4, perCallerMax);
      const own = { atOnceMax: 0, perCallerMax: 0, waitingMax: 10 };
      const threads = [0, 1].map((row) => new WorkLimit({ ...own, common: new CommonAmount(memory, row) }));
      for (const name of ['a', 'b', 'c', 'd']) expect(threads[0]?.tryEnter(name)).to.equal(true);
      const entered = threads.flatMap((each) => ['a', 'e'].map((name) => each.enter(caller(), name)));
      await expectNoWake(memory);
      for (const name of ['a', 'b', 'c', 'd']) threads[0]?.leave(name);
      // Each of them gets a place in turn.
      await Promise.all(entered.map((each, at) => each?.then(() => threads[at < 2 ? 0 : 1]?.leave(at % 2 === 0 ? 'a' : 'e'))));
      expect(threads.flatMap(({ atWork, waiting }) => [atWork, waiting])).to.deep.equal([0, 0, 0, 0]);
    }
  });

  it('does not wake the threads that wait for bodies larger than the part of their caller', async () => {
    for (const [bytesMax, perCallerMax] of [
      [10, 5],
      [100, 5],
    ] as const) {
      const memory = memoryOf(bytesMax, perCallerMax);
      const rooms = [0, 1].map(
        (row) =>
          new BodyRoom({
            limit: { own: 0, ownPerCaller: 1, common: new CommonAmount(memory, row) },
            ...{ waitingMax: 10, waitMsMax: 60_000 },
          }),
      );
      const body = { tokenId: 'a', address: 'b' };
      expect(rooms[0]?.reserve(caller(), body, 8)).to.equal(undefined);
      const first = rooms[0]?.reserve(caller(), body, 8);
      const other = rooms[1]?.reserve(caller(), { tokenId: 'c', address: 'd' }, bytesMax);
      await expectNoWake(memory);
      rooms[0]?.release(body, 8);
      await first;
      rooms[0]?.release(body, 8);
      await other;
    }
  });

  it('admits one body above the part of its caller, not one on each thread', async () => {
    const memory = memoryOf(100, 5);
    const rooms = [0, 1].map((row) => {
      const limit = { own: 10, ownPerCaller: 2, common: new CommonAmount(memory, row) };
      return new BodyRoom({ limit, waitingMax: 10, waitMsMax: 60_000 });
    });
    const body = { tokenId: 'a', address: 'b' };
    expect(rooms[0]?.reserve(caller(), body, 8)).to.equal(undefined);
    expect(rooms[1]?.reserve(caller(), body, 2), 'its own part on the other thread').to.equal(undefined);
    rooms[1]?.release(body, 2);
    const second = rooms[1]?.reserve(caller(), body, 8);
    await later();
    expect(rooms.map((room) => [room.held, room.waiting])).to.deep.equal([
      [8, 0],
      [0, 1],
    ]);
    rooms[0]?.release(body, 8);
    await second;
    expect(rooms.map((room) => [room.held, room.waiting])).to.deep.equal([
      [0, 0],
      [8, 0],
    ]);
  });

  it('is taken only when a thread has nothing left of its own, and given back first', () => {
    const common = new CommonAmount(memoryOf(10), 0);
    const bytes = new TakenAmount({ own: 5, ownPerCaller: 5, common });
    const steps = [4, 4, 8, -3, -5].map((step) => {
      if (step > 0) bytes.tryTake(step);
      else bytes.giveBack(-step);
      return [bytes.taken, common.taken];
    });
    expect(steps.flat()).to.deep.equal([4, 0, 8, 3, 8, 3, 5, 0, 0, 0]);
  });

  it('has a part for each caller, over all threads, which another caller can still take', () => {
    const memory = memoryOf(10, 2);
    const amounts = [0, 1].map((row) => new CallerAmounts({ own: 5, ownPerCaller: 1, common: new CommonAmount(memory, row) }));
    const takes = (name: string) => amounts.map((each) => [1, 1, 1].map(() => each.tryTake(name, 1)));
    expect(takes('a')).to.deep.equal([
      [true, true, true],
      [true, false, false],
    ]);
    expect(takes('b')[0]).to.deep.equal([true, true, true]);
  });
});
