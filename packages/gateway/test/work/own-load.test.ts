import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { OwnLoad } from '../../src/work/own-load.ts';

/** Keeps the event loop busy, and returns for how long, in milliseconds. */
function spin(): number {
  const beganMs = performance.now();
  while (performance.now() < beganMs + 50);
  return performance.now() - beganMs;
}

/** Returns whether a verdict comes out at least once; the process may be suspended during an attempt. */
const everIs = (verdict: boolean, attempt: () => boolean): boolean =>
  Array.from({ length: 20 }).some(() => attempt() === verdict);

describe('the load of a thread', () => {
  it('is too high for the work of others while it is busy, and low again when it has waited', async () => {
    const load = new OwnLoad();
    await pause(1); // the loop of the test has begun
    const afterWork = (): boolean => {
      spin();
      return load.isIdle;
    };
    expect(everIs(false, afterWork)).to.equal(true);
    while (!load.isIdle) await pause(5);
  });

  it('does not count the work of others', async () => {
    const load = new OwnLoad();
    await pause(1);
    const afterWork = (): boolean => {
      load.gave(spin());
      return load.isIdle;
    };
    expect(everIs(true, afterWork)).to.equal(true);
  });
});
