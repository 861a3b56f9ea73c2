import { ClockJump } from '../../../clock-jump.ts';
import { grantUntil, isHeld } from '../../../grant.ts';
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

  /** `jumped`: only a jump of the clocks ended the lease. */
  judge(endMs: number | undefined): 'held' | 'over' | 'jumped' {
    this.#jump.compare(this.#process.readClocks());
    const nowMs = this.#process.now();
    if (endMs === undefined || nowMs >= endMs) return 'over';
    return isHeld(grantUntil(endMs, this.#leaseMs), { nowMs, clockJumpedMs: this.#jump.jumpedMs }) ? 'held' : 'jumped';
  }
}
