import { BodyMemory, WorkLimit } from '@transitd/http';
import type { GuardedOperation, OpenOperation, Where } from '../operation/operation.ts';

export interface LimitsConfig {
  /** Concurrent requests that any replica may answer: cryptography, reads, lists. */
  readonly reads: number;
  /** Concurrent requests that only the active node answers. */
  readonly changes: number;
  /** Concurrent requests that need no token: logins, unwrapping, root token generation. */
  readonly logins: number;
  /** Queued requests for each of these. */
  readonly waiting: number;
  /** Memory for request bodies, in bytes. */
  readonly body_memory: number;
}

/**
 * In-flight limits of one node, over all its listeners; a forwarded request counts on the node that executes it. Requests without a token
 * have a limit of their own, shared fairly between addresses: they cannot starve changes or cryptography, and one address cannot starve
 * another. An operator must be able to inspect and stop an overloaded node, so some requests are not counted: operations that any node
 * answers in any state (`here`), the step-down, and, on another port, metrics and health.
 */
export class Limits {
  readonly reads: WorkLimit;
  readonly changes: WorkLimit;
  readonly logins: WorkLimit;
  readonly bodies: BodyMemory;
  readonly forwarding: ForwardingLimits;

  constructor({ reads, changes, logins, waiting, body_memory }: LimitsConfig) {
    this.reads = new WorkLimit({ atOnceMax: reads, waitingMax: waiting });
    this.changes = new WorkLimit({ atOnceMax: changes, waitingMax: waiting });
    this.logins = new WorkLimit({ atOnceMax: logins, perCallerMax: Math.ceil(logins / 2), waitingMax: waiting });
    this.bodies = new BodyMemory(body_memory, waiting);
    this.forwarding = newForwardingLimits();
  }

  /** Returns the limit that a request counts against; undefined for none. Operations that take minutes have their own limit. */
  workOf(operation: GuardedOperation | OpenOperation, where: Where): WorkLimit | undefined {
    if (where === 'here' || 'isSlow' in operation || 'endsLeadership' in operation || 'unaudited' in operation) return undefined;
    if (operation.access === 'open') return this.logins;
    return where === 'leader' ? this.changes : this.reads;
  }
}

/**
 * Limits of concurrently forwarded requests, out of the 128 connections of a standby to the active node. The remaining connections serve
 * authenticated requests whose body is already read, or that have none.
 */
export interface ForwardingLimits {
  /** Unauthenticated requests whose bodies are read; fair by address. */
  readonly strangers: WorkLimit;
  /** Unauthenticated requests whose bodies are too long to read before authentication; fair by address. */
  readonly strangersStreams: WorkLimit;
  /** Authenticated requests whose bodies are streamed; fair by token. */
  readonly streams: WorkLimit;
}

const newForwardingLimits = (): ForwardingLimits => ({
  strangers: new WorkLimit({ atOnceMax: 32, perCallerMax: 16, waitingMax: 256 }),
  strangersStreams: new WorkLimit({ atOnceMax: 8, perCallerMax: 4, waitingMax: 64 }),
  streams: new WorkLimit({ atOnceMax: 32, perCallerMax: 16, waitingMax: 256, waitMsMax: 30_000 }),
});
