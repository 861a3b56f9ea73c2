import { LeadershipTransferred } from '@transitd/cluster';
import type { Reply } from '@transitd/http';
import type { Term } from '@transitd/raft-core';

/** How a request ends on this node. A stage that returns anything else passes the request to the next stage. */
export type Outcome = Replied | Refused | ForwardToActive | Transferred;

/** The kind keeps the type closed: a bare reply is not an outcome. */
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
  /** Undefined if it has not been read. */
  readonly body: Buffer | undefined;
  /** ID of the caller's token; undefined if this node could not authenticate it. */
  readonly tokenId: string | undefined;
  constructor(body: Buffer | undefined, tokenId?: string) {
    super();
    this.body = body;
    this.tokenId = tokenId;
  }
}

/** This node has given up leadership for the request and done nothing else: the next leader has to answer. */
export class Transferred extends RequestEnd {
  readonly kind = 'transferred';
  /** The term that ended. */
  readonly term: Term;
  constructor(term: Term) {
    super();
    this.term = term;
  }
}

/** Returns the outcome of a stage that threw. */
export const outcomeOf = (error: unknown): Transferred | Refused =>
  error instanceof LeadershipTransferred ? new Transferred(error.term) : new Refused(error);
