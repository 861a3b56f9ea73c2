import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { OwnLoad } from '../../src/work/own-load.ts';

/** Keeps the event loop busy for a while. */
function spin(): void {
  for (const endMs = performance.now() + 50; performance.now() < endMs; );
}

/** Returns whether a verdict comes out at least once; the process may be suspended during an attempt. */
async function everIs(verdict: boolean, attempt: () => boolean | Promise<boolean>): Promise<boolean> {
  for (let n = 0; n < 20; n++) if ((await attempt()) === verdict) return true;
  return false;
}

const spinning = async (): Promise<void> => void spin();

describe('the load of a thread', () => {
  it('is too high for the work of others while it is busy, and low again when it has waited', async () => {
    const load = new OwnLoad();
    await pause(1); // the loop of the test has begun
    const afterWork = (): boolean => {
      spin();
      return load.isIdle;
    };
    expect(await everIs(false, afterWork)).to.equal(true);
    while (!load.isIdle) await pause(5);
  });

  it('does not count the work of others', async () => {
    const load = new OwnLoad();
    await pause(1);
    const afterWork = async (): Promise<boolean> => {
      await load.give(spinning);
      return load.isIdle;
    };
    expect(await everIs(true, afterWork)).to.equal(true);
  });

  it('is measured between two pieces of the work of others', async () => {
    const load = new OwnLoad();
    await pause(1);
    const afterBoth = async (): Promise<boolean> => {
      await load.give(() => pause(50));
      spin();
      return load.isIdle;
    };
    expect(await everIs(false, afterBoth)).to.equal(true);
  });

  it('leaves no time for a second piece of the work of others', async () => {
    const load = new OwnLoad();
    const isIdle: boolean[] = [];
    const given = load.give(async () => {
      isIdle.push(load.isIdle);
      throw new Error('it failed');
    });
    expect(await given.catch((error: Error) => error.message)).to.equal('it failed');
    expect(isIdle).to.deep.equal([false]);
    while (!load.isIdle) await pause(5);
  });
});
