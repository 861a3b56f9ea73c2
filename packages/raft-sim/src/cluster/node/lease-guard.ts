import { ClockJump, type Grant, grantUntil, isHeld } from '@transitd/raft-core';
import type { NodeProcess } from '../process/process.ts';

/** Decides whether a lease may be relied on, as the program of a node does. */
export class LeaseGuard {
  readonly #process: NodeProcess;
  readonly #leaseMs: number;
  readonly #jump: ClockJump;

  constructor(process: NodeProcess, leaseMs: number) {
    this.#process = process;
    this.#leaseMs = leaseMs;
    this.#jump = new ClockJump(process.readClocks());
  }

  /** Compares the clocks; returns the monotonic time of the newest jump, negative infinity before the first. */
  jumpedMs(): number {
    this.#jump.compare(this.#process.readClocks());
    return this.#jump.jumpedMs;
  }

  /** Returns the lease that ends at `endMs`, whether or not a clock has jumped since it was granted. */
  lease(endMs: number | undefined): Grant | undefined {
    return endMs === undefined ? undefined : grantUntil(endMs, this.#leaseMs);
  }

  /** `jumped`: only a jump of the clocks ended the lease. */
  judge(endMs: number | undefined): 'held' | 'over' | 'jumped' {
    const clockJumpedMs = this.jumpedMs();
    const nowMs = this.#process.now();
    if (endMs === undefined || nowMs >= endMs) return 'over';
    return isHeld(this.lease(endMs), { nowMs, clockJumpedMs }) ? 'held' : 'jumped';
  }
}
