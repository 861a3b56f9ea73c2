import { performance } from 'node:perf_hooks';
import { type Config, leaseMsMax } from '@transitd/configuration';
import { type Clock, ClockJump, type ClockReading, type Driver, type Grant, grantUntil, isHeld } from '@transitd/raft-core';
import { readClocks, readWallClock } from './machine-clocks.ts';
import { Wakefulness } from './wakefulness.ts';

/** Time after which etcd ends the role of a silent active node, and the registration of a silent node. */
export const etcdLeaseSeconds = 5;

/** Returns the length of a lease, in milliseconds: it was requested at most this long before it ends. */
export const leaseMsOf = ({ storage, raft }: Pick<Config, 'storage' | 'raft'>): number =>
  storage.type === 'etcd' ? etcdLeaseSeconds * 1000 : raft.lease;

/** The event loop and its monotonic clock, for raft-core's driver. */
const systemClock: Clock = {
  now: () => performance.now(),
  afterTurn: (task) => void setImmediate(task),
  every: (intervalMs, task) => {
    const timer = setInterval(task, intervalMs);
    return () => clearInterval(timer);
  },
};

interface LeaseClockOptions {
  /** The longest time for which a lease may last after the request for it was sent; 0 turns leases off. */
  readonly leaseMs: number;
  /** A clock of the machine jumped by this many milliseconds against the monotonic one. */
  readonly onJump: (ms: number) => void;
}

/** The calls of a driver that show whether it leads. */
type Leadership = Pick<Driver<unknown>, 'leaseEndMs' | 'readIndex'>;

/**
 * Decides whether a leader lease may be relied on. It may not if the process or a clock of the machine has paused since the lease was
 * granted.
 */
export class LeaseClock {
  readonly #leaseMs: number;
  readonly #onJump: LeaseClockOptions['onJump'];
  readonly #jump = new ClockJump(readClocks());
  readonly #wakefulness = new Wakefulness(leaseMsMax, performance.now());
  #isConfirming = false;

  constructor({ leaseMs, onJump }: LeaseClockOptions) {
    this.#leaseMs = leaseMs;
    this.#onJump = onJump;
  }

  /** The clock for the driver. Each tick compares the clocks of the machine and shows that consensus runs. */
  readonly forDriver: Clock = {
    ...systemClock,
    every: (intervalMs, task) =>
      systemClock.every(intervalMs, () => {
        this.#compare(readClocks());
        this.#wakefulness.ticked(performance.now());
        task();
      }),
  };

  /** Compares the clocks; returns the monotonic time of the newest jump, negative infinity before the first. */
  jumpedMs(): number {
    this.#compare(readWallClock());
    return this.#jump.jumpedMs;
  }

  /** Returns the leader lease, whether or not a clock has jumped since it was granted. */
  lease(driver: Leadership): Grant | undefined {
    const endMs = driver.leaseEndMs();
    return endMs === undefined ? undefined : grantUntil(endMs, this.#leaseMs);
  }

  /** Returns whether a leader lease holds that was granted after the newest clock jump. */
  holdsLease(driver: Leadership): boolean {
    const clockJumpedMs = this.jumpedMs();
    return isHeld(this.lease(driver), { clockJumpedMs, nowMs: performance.now() });
  }

  /**
   * Returns whether the process has run without a pause, or has confirmed since the pause that it leads. If neither is true, asks a quorum,
   * so that a later call can return true.
   */
  isAwake(driver: Leadership): boolean {
    const holdsLease = this.holdsLease(driver); // compares the clocks too
    const isAwake = this.#wakefulness.isAwake(performance.now(), holdsLease);
    if (!isAwake) this.#confirmLeadership(driver);
    return isAwake;
  }

  #confirmLeadership(driver: Leadership): void {
    if (this.#isConfirming) return;
    this.#isConfirming = true;
    const requestedMs = performance.now();
    driver.readIndex(({ kind }) => {
      this.#isConfirming = false;
      if (kind === 'readable') this.#wakefulness.confirmed(performance.now(), requestedMs);
    });
  }

  #compare(reading: ClockReading): void {
    const jumpMs = this.#jump.compare(reading);
    if (jumpMs === 0) return;
    this.#wakefulness.paused(reading.afterMs);
    this.#onJump(jumpMs);
  }
}
