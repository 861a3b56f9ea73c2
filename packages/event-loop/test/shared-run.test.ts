import { expect } from 'chai';
import { sharedRun } from '../src/shared-run.ts';

describe('sharedRun', () => {
  it('gives callers during a run its outcome, and starts another run after it', async () => {
    const runs: PromiseWithResolvers<number>[] = [];
    const run = sharedRun(() => {
      const one = Promise.withResolvers<number>();
      runs.push(one);
      return one.promise;
    });
    const [first, second] = [run(), run()];
    expect(runs).to.have.length(1);
    runs[0]?.resolve(1);
    expect(await Promise.all([first, second])).to.deep.equal([1, 1]);
    const third = run();
    expect(runs).to.have.length(2);
    runs[1]?.resolve(2);
    expect(await third).to.equal(2);
  });

  it('reports a failure to all callers of the run, and only to them', async () => {
    let fails = true;
    const run = sharedRun(async () => {
      if (fails) throw new Error('no');
    });
    const failed = await Promise.allSettled([run(), run()]);
    expect(failed.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    fails = false;
    await run();
  });

  it('starts no second run for a task that asks for itself before it waits', async () => {
    let runs = 0;
    const run: () => Promise<void> = sharedRun(async () => {
      runs += 1;
      if (runs < 10) void run();
    });
    await run();
    expect(runs).to.equal(1);
  });
});
