import { expect } from 'chai';
import { LeaseClock } from '../../src/clock/lease-clock.ts';

type ReadDone = Parameters<Parameters<LeaseClock['isAwake']>[0]['readIndex']>[0];

/** A driver with a lease or without one; keeps the read index requests. */
function driverWith({ lease }: { readonly lease: boolean }) {
  const requests: ReadDone[] = [];
  const leaseEndMs = () => (lease ? performance.now() + 1000 : undefined);
  return { requests, leaseEndMs, readIndex: (done: ReadDone) => void requests.push(done) };
}

const newClock = (): LeaseClock => new LeaseClock({ leaseMs: 0, onJump: () => undefined });

/** Pauses the process for longer than any lease. */
const pauseProcess = (): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 900);

describe('LeaseClock', () => {
  it('holds a lease when the driver does', () => {
    expect(newClock().holdsLease(driverWith({ lease: true }))).to.equal(true);
    expect(newClock().holdsLease(driverWith({ lease: false }))).to.equal(false);
  });

  it('is awake after a pause under a lease', () => {
    const clock = newClock();
    pauseProcess();
    expect(clock.isAwake(driverWith({ lease: true }))).to.equal(true);
  });

  it('asks a quorum once after a pause without a lease, and is awake when that confirms the leadership', () => {
    const clock = newClock();
    const driver = driverWith({ lease: false });
    pauseProcess();
    expect([clock.isAwake(driver), clock.isAwake(driver)]).to.deep.equal([false, false]);
    expect(driver.requests).to.have.length(1);
    driver.requests[0]?.({ kind: 'readable', index: 1 });
    expect(clock.isAwake(driver)).to.equal(true);
  });

  it('ticks the driver until it is stopped', async () => {
    const clock = newClock();
    let ticks = 0;
    await new Promise<void>((resolve) => {
      const stop = clock.forDriver.every(1, () => {
        ticks += 1;
        if (ticks < 2) return;
        stop();
        resolve();
      });
    });
    expect(ticks).to.equal(2);
  });
});
