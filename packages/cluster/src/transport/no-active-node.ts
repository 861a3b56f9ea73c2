import type { Term } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';

/** No active node executed a forwarded request, and nothing was changed: the request may be decided again. */
export class NoActiveNode extends StoreError {
  /** The term of the leader that did not answer, or refused; 0 if no leader was known. */
  readonly term: Term;
  constructor(term: Term) {
    super('not_leader', 'no active node answers');
    this.term = term;
  }
}
