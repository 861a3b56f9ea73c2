import { LeadershipTransferred } from '@transitd/cluster';
import type { Reply } from '@transitd/http';
import type { Term } from '@transitd/raft-core';

/** How a request ends on this node. A stage returns an outcome to end the request, or any other value to pass it to the next stage. */
export type Outcome = Replied | Refused | ForwardToActive | Transferred;

/** The kind makes TypeScript tell outcomes from other types: a bare reply is not an outcome. */
abstract class RequestEnd {
  abstract readonly kind: 'replied' | 'refused' | 'forward' | 'transferred';
}

export const isOutcome = (value: object): value is Outcome => value instanceof RequestEnd;

export class Replied extends RequestEnd {
  readonly kind = 'replied';
  readonly reply: Reply;
  constructor(reply: Reply) {
    super();
    this.reply = reply;
  }
}

/** A refusal or an internal error. */
export class Refused extends RequestEnd {
  readonly kind = 'refused';
  readonly error: unknown;
  constructor(error: unknown) {
    super();
    this.error = error;
  }
}

/** The active node has to answer. */
export class ForwardToActive extends RequestEnd {
  readonly kind = 'forward';
  /** Undefined if the body has not been read. */
  readonly body: Buffer | undefined;
  /** ID of the caller's token; undefined if this node could not authenticate it. */
  readonly tokenId: string | undefined;
  constructor(body: Buffer | undefined, tokenId?: string) {
    super();
    this.body = body;
    this.tokenId = tokenId;
  }
}

/** The request made this node give up leadership. Nothing else was done, so the next leader has to answer. */
export class Transferred extends RequestEnd {
  readonly kind = 'transferred';
  /** The term in which this node was the leader. */
  readonly term: Term;
  constructor(term: Term) {
    super();
    this.term = term;
  }
}

/** Returns the outcome for an error that a stage threw. */
export const outcomeOf = (error: unknown): Transferred | Refused =>
  error instanceof LeadershipTransferred ? new Transferred(error.term) : new Refused(error);
