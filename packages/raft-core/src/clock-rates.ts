/**
 * The largest part of real time that the monotonic clock of a machine may gain or lose: its rate is from 0.9 to 1.1. Operators must keep
 * it. Common oscillators err by 1/10,000, and chrony slews a clock by at most 8.3 % unless it is configured otherwise. All waits of one
 * node for a permission that another node's clock measures are derived from this number.
 */
export const clockRateError = 0.1;

/**
 * The longest real time, in ms, for which a machine may be suspended without its node noticing: its clock shows less than has passed.
 * @see ClockJump, which compares the clocks of a machine
 */
export const undetectedPauseMs = 20;

const [slowest, fastest] = [1 - clockRateError, 1 + clockRateError];

/**
 * Returns how long this node must wait, by its own clock, until a permission for `ms` has certainly ended by the clock of another node.
 * The permission begins before the wait does.
 *
 * Proof. The slowest clock counts `ms` in `ms / slowest` of real time, and its machine may have been suspended for `undetectedPauseMs`
 * meanwhile. The fastest clock of this node counts `fastest` times that real time. A suspension of this node only makes the wait longer.
 */
export const outlasting = (ms: number): number => Math.ceil(fastest * (ms / slowest + undetectedPauseMs));

/**
 * Returns the longest permission, by this node's clock, that has certainly ended when another node has waited for `ms` by its own clock.
 * The inverse of {@link outlasting}: `outlasting(outlastedBy(ms)) <= ms`. It is 0 if the wait is too short for any permission.
 */
export const outlastedBy = (ms: number): number => Math.max(0, Math.floor(slowest * (ms / fastest - undetectedPauseMs)));
