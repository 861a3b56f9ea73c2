import { outlastedBy, outlasting } from '../../clock-rates.ts';
import { invariant } from '../../invariant.ts';

export interface RaftLimits {
  /** Maximum payload bytes accepted but not yet committed. */
  readonly uncommittedBytesMax: number;
  /**
   * Maximum payload bytes of committed entries that are not yet in both the log and the state on this node's disk. Above it a leader takes
   * no proposals and a follower no entries, so that a hanging state store does not fill the memory.
   */
  readonly memoryBytesMax: number;
  /** Maximum payload bytes of one entry. */
  readonly entryBytesMax: number;
  /** Maximum payload bytes of the committed entries in one `Ready`. */
  readonly committedBytesMax: number;
  /** Maximum payload bytes of one Append; a larger entry is sent alone. */
  readonly messageBytesMax: number;
  /** Maximum number of unanswered Appends to one peer. */
  readonly inflightMessagesMax: number;
  /** Maximum payload bytes of the unanswered Appends to one peer. */
  readonly inflightBytesMax: number;
  /** Maximum number of reads of one other node that wait on the leader. A node sends one read for each of its turns. */
  readonly forwardedReadsMax: number;
  readonly heartbeatMs: number;
  /** Minimum time for which a node trusts a leader after its last message. */
  readonly electionMs: number;
  /**
   * Campaigns start up to this much later, at random. A longer time makes two simultaneous campaigns rarer; a shorter time elects a leader
   * sooner.
   */
  readonly electionJitterMs: number;
  /** How long a heartbeat round that a quorum answered permits lease reads; 0 turns lease reads off. */
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
  forwardedReadsMax: 4_096,
  heartbeatMs: 150,
  electionMs: 1_000,
  electionJitterMs: 1_000,
  leaseMs: 800,
};

/**
 * Returns how long, in ms, the voter at this place among the followers of a suspected leader waits before its early campaign. The first one
 * gives the others time for the end of their own promises, the next ones give it time to ask for their votes, so that two seldom campaign
 * at once.
 */
export const earlyWaitMs = (place: number): number => 5 + 25 * place;

/**
 * Returns the time for which a voter gives no vote after the last message of a suspected leader. `leaseMs` is the length of that leader's
 * lease. Without leases there is nothing to wait for.
 */
export const promiseMsFor = (leaseMs: number): number => (leaseMs === 0 ? 0 : outlasting(leaseMs));

export function checkLimits({ electionMs, electionJitterMs, heartbeatMs, leaseMs }: RaftLimits): void {
  invariant(leaseMs <= outlastedBy(electionMs), 'a lease ends before the promise that backs it', { leaseMs, electionMs });
  invariant(heartbeatMs > 0 && heartbeatMs < electionMs, 'heartbeats are more frequent than elections', { heartbeatMs });
  invariant(electionJitterMs >= 1, 'nodes do not campaign all at once', { electionJitterMs });
}
