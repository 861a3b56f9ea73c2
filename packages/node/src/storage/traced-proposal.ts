import type { Span } from '@transitd/process';
import type { ProposalObserver } from '@transitd/raft-core';

/** The spans of one proposal: `propose` until its outcome, with `commit` from the log to a quorum and `apply` after that. */
export interface TracedProposal extends ProposalObserver {
  ended(failed: boolean): void;
}

/** Starts the spans of a proposal that is a part of `request`; undefined if that is not traced. */
export function tracedProposal(request: Span | undefined): TracedProposal | undefined {
  const propose = request?.child('propose');
  if (propose === undefined) return undefined;
  let step: Span | undefined;
  return {
    appended: (index, term) => {
      propose.set('transitd.raft.index', index);
      propose.set('transitd.raft.term', term);
      step = propose.child('commit');
    },
    committed: () => {
      step?.end();
      step = propose.child('apply');
    },
    ended: (failed) => {
      step?.end(failed);
      propose.end(failed);
    },
  };
}
