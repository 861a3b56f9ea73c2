import { type Clock, systemClock } from '@transitd/process';
import { outlasting } from '@transitd/raft-core';
import type { MemberEvents } from '../ports/member-events.ts';

/**
 * The monotonic clock by which this node waits until another node's permission to serve has ended. If a clock of the machine jumped, less
 * time may have passed than the monotonic clock shows, so every wait begins again there.
 */
export class PermissionClock {
  readonly #clock: Pick<Clock, 'nowMs'>;
  #jumpedMs = Number.NEGATIVE_INFINITY;

  constructor(events: Pick<MemberEvents, 'on'>, clock: Pick<Clock, 'nowMs'> = systemClock) {
    this.#clock = clock;
    events.on('clockJump', () => {
      this.#jumpedMs = this.nowMs();
    });
  }

  nowMs(): number {
    return this.#clock.nowMs();
  }

  /**
   * Returns the time until a permission has certainly ended by any clock; negative once it has.
   * @param grantedMs - when it was granted at the latest; negative infinity for never
   * @param ms - how long it lasts by the other node's clock
   */
  leftMs(grantedMs: number, ms: number): number {
    if (grantedMs === Number.NEGATIVE_INFINITY) return grantedMs;
    return Math.max(grantedMs, this.#jumpedMs) + outlasting(ms) - this.nowMs();
  }
}
