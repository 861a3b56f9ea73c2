import { expect } from 'chai';
import { arrivalDeadline } from '../../src/limits/arrival-deadline.ts';

describe('the deadline of an arrival', () => {
  it('ends without a call if it is ended after its time, in the turn in which its timer was due', async () => {
    let isLate = false;
    const end = arrivalDeadline(0, () => {
      isLate = true;
    });
    await new Promise<void>((resolve) => {
      setTimeout(() => {
        end();
        resolve();
      }, 0);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20); // so that both timers are due in the same turn
    });
    for (let turns = 0; turns < 3; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(isLate).to.equal(false);
  });

  it('calls once if it is not ended', async () => {
    let calls = 0;
    await new Promise<void>((resolve) => {
      arrivalDeadline(0, () => {
        calls += 1;
        resolve();
      });
    });
    for (let turns = 0; turns < 3; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(calls).to.equal(1);
  });
});
