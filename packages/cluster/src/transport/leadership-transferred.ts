import type { Term } from '@transitd/raft-core';

/** The node that was asked has given up its lead for this request, and has done nothing else about it: whoever leads next is to be asked. */
export class LeadershipTransferred extends Error {
  override readonly name = 'LeadershipTransferred';
  /** The one that has ended. */
  readonly term: Term;
  constructor(term: Term) {
    super('the lead was handed over');
    this.term = term;
  }
}

/** Says so on the cluster port. */
export const leadershipTransferredHeader = 'x-transitd-handed-over';
