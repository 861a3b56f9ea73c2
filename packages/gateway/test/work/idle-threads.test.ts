import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import { expect } from 'chai';
import { IdleThreads } from '../../src/work/idle-threads.ts';
import { OwnLoad } from '../../src/work/own-load.ts';

type Double = (task: number) => Promise<number | undefined>;

/** Two threads' ends, connected in one thread. */
function connected(run: Double = async (task) => 2 * task, ownLoad?: OwnLoad) {
  const load = {
    isIdle: true,
    given: 0,
    give: async (work: () => Promise<void>): Promise<void> => {
      await work();
      load.given += 1;
    },
  };
  const asking = new IdleThreads<number, number>(async () => undefined);
  const helping = new IdleThreads<number, number>(run, ownLoad ?? load);
  const { port1, port2 } = new MessageChannel();
  asking.add(port1);
  helping.add(port2);
  const [helper] = asking.idle();
  if (helper === undefined) throw new Error('no thread is idle');
  port1.ref(); // nothing else keeps the loop of the test alive
  return { asking, helping, helper, load, port1, port2 };
}

describe('the other threads of a process', () => {
  it('do a task, one of each thread at a time', async () => {
    const { asking, helping, helper, port1 } = connected();
    const first = helper.run(21);
    expect(asking.idle()).to.deep.equal([]);
    expect(await helper.run(1)).to.equal(undefined);
    expect(await first).to.equal(42);
    expect([asking.idle(), helping.idle()].map(({ length }) => length)).to.deep.equal([1, 1]);
    port1.close();
  });

  it('refuse a task while they are busy, and are not asked again at once', async () => {
    const { asking, helper, load, port1 } = connected();
    load.isIdle = false;
    expect(await helper.run(1)).to.equal(undefined);
    expect(asking.idle()).to.deep.equal([]);
    load.isIdle = true;
    while (asking.idle().length === 0) await new Promise(setImmediate);
    expect(await helper.run(1)).to.equal(2);
    port1.close();
  });

  it('refuse a task that fails or that they cannot do', async () => {
    for (const run of [() => Promise.reject(new Error('x')), async () => undefined]) {
      const { asking, helper, port1 } = connected(run);
      expect(await helper.run(1)).to.equal(undefined);
      expect(asking.idle()).to.have.length(1);
      port1.close();
    }
  });

  it('leave a task undone when they end', async () => {
    const { asking, helper, port1, port2 } = connected(() => new Promise(() => undefined));
    const asked = helper.run(1);
    const closed = once(port1, 'close');
    port2.close();
    expect(await asked).to.equal(undefined);
    await closed;
    expect(asking.idle()).to.deep.equal([]);
  });

  it('count a task as the work of another thread', async () => {
    const { helper, load, port1 } = connected();
    await helper.run(1);
    expect(load.given).to.equal(1);
    port1.close();
  });

  it('refuse tasks once they are busy with their own work, although there is always another task', async () => {
    let isOver = false;
    const spin = (ms: number): void => {
      for (const endMs = performance.now() + ms; performance.now() < endMs; );
    };
    const ownWork = (): void => {
      spin(4);
      if (!isOver) setImmediate(ownWork);
    };
    const run = async (task: number): Promise<number> => {
      for (let n = 0; n < 10; n++) await new Promise(setImmediate);
      return task;
    };
    const { helper, port1 } = connected(run, new OwnLoad());
    setImmediate(ownWork);
    let done = 0;
    for (; (await helper.run(1)) !== undefined; done++) await new Promise(setImmediate);
    isOver = true;
    expect(done).to.be.at.most(10); // the load is known after 20 ms, and each turn of its own work takes 4 ms
    port1.close();
  });
});
