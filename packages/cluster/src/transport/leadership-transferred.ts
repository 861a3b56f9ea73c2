import type { Term } from '@transitd/raft-core';

/** The called node gave up leadership because of this request and did nothing else for it: send the request to the next leader. */
export class LeadershipTransferred extends Error {
  override readonly name = 'LeadershipTransferred';
  /** The term whose leader gave up leadership. */
  readonly term: Term;
  constructor(term: Term) {
    super('leadership was transferred');
    this.term = term;
  }
}

/** Header that reports a leadership transfer on the cluster port. */
export const leadershipTransferredHeader = 'x-transitd-handed-over';
