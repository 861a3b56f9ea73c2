import { invariant } from '../invariant.ts';

export interface RaftLimits {
  /** Payload bytes accepted and not yet committed. */
  readonly uncommittedBytesMax: number;
  /**
   * Payload bytes of committed entries that are not yet on this node's disks, in log and state. Beyond it a leader takes no proposals and a follower no
   * entries: a state store that hangs must not fill the memory.
   */
  readonly memoryBytesMax: number;
  /** Payload bytes of one entry. */
  readonly entryBytesMax: number;
  /** Payload bytes of the committed entries of one `Ready`. */
  readonly committedBytesMax: number;
  /** Payload bytes of one Append; a larger entry travels alone. */
  readonly messageBytesMax: number;
  /** Appends sent to one peer and not answered. */
  readonly inflightMessagesMax: number;
  /** Payload bytes sent to one peer and not answered. */
  readonly inflightBytesMax: number;
  readonly heartbeatMs: number;
  /** How long a heard leader is believed in, at least. */
  readonly electionMs: number;
  /** Campaigns begin up to so much later, at random: the more, the rarer two begin at once; the less, the sooner one leads. */
  readonly electionJitterMs: number;
  /** How long an acknowledged round backs reads without another one; 0 turns lease reads off. */
  readonly leaseMs: number;
}

export const raftLimits: RaftLimits = {
  uncommittedBytesMax: 64 * 2 ** 20,
  memoryBytesMax: 128 * 2 ** 20,
  entryBytesMax: 8 * 2 ** 20,
  committedBytesMax: 2 ** 20,
  messageBytesMax: 2 ** 20,
  inflightMessagesMax: 256,
  inflightBytesMax: 4 * 2 ** 20,
  heartbeatMs: 150,
  electionMs: 1_000,
  electionJitterMs: 1_000,
  leaseMs: 800,
};

/**
 * A leader's clock at rate 0.9 lets 800 of its ms last 889; a follower's at 1.1 ends its promise of 1 000 ms after 909. So a
 * lease of 0.8 election timeouts ends first while rates differ by less than a tenth from the true one.
 */
export function checkLimits({ electionMs, electionJitterMs, heartbeatMs, leaseMs }: RaftLimits): void {
  invariant(leaseMs <= 0.8 * electionMs, 'a lease ends before the promise that backs it', { leaseMs, electionMs });
  invariant(heartbeatMs > 0 && heartbeatMs < electionMs, 'heartbeats are more frequent than elections', { heartbeatMs });
  invariant(electionJitterMs >= 1, 'nodes do not campaign all at once', { electionJitterMs });
}
