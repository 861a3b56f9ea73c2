import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import { expect } from 'chai';
import { IdleThreads } from '../../src/work/idle-threads.ts';

type Double = (task: number) => Promise<number | undefined>;

/** Two threads' ends, connected in one thread. */
function connected(run: Double = async (task) => 2 * task) {
  const load = {
    isIdle: true,
    gaveMs: 0,
    gave: (ms: number): void => {
      load.gaveMs += ms;
    },
  };
  const asking = new IdleThreads<number, number>(async () => undefined);
  const helping = new IdleThreads<number, number>(run, load);
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

  it('report the time that a task took', async () => {
    const { helper, load, port1 } = connected(async (task) => {
      for (const endMs = performance.now() + 2; performance.now() < endMs; );
      return task;
    });
    await helper.run(1);
    expect(load.gaveMs).to.be.at.least(2);
    port1.close();
  });
});
