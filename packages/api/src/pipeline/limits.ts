import { BodyMemory, WorkLimit } from '@transitd/http';
import type { GuardedOperation, OpenOperation, Where } from '../operation/operation.ts';

export interface LimitsConfig {
  /** Requests at work at a time that any replica may answer: cryptography, reads, lists. */
  readonly reads: number;
  /** The same of those that the active node alone answers. */
  readonly changes: number;
  /** The same of those that need no token: logins, unwrapping, root tokens by shares. */
  readonly logins: number;
  /** In line for each of these. */
  readonly waiting: number;
  /** Bytes. */
  readonly body_memory: number;
}

/**
 * What one node takes on at a time, whichever of its listeners it comes by; a forwarded request counts where it is worked on. Requests without
 * a token have places of their own, in which addresses take turns: strangers can crowd out neither changes nor cryptography, and one address
 * no other. An operator must be able to see and to stop a crowded node, so these are not counted: operations that any node answers in any
 * state (`here`), the step-down, and, on another port, metrics and health.
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

  /** The limit that a request counts against; undefined for none. An operation that takes minutes has a bound of its own. */
  workOf(operation: GuardedOperation | OpenOperation, where: Where): WorkLimit | undefined {
    if (where === 'here' || 'isSlow' in operation || 'endsLeadership' in operation || 'unaudited' in operation) return undefined;
    if (operation.access === 'open') return this.logins;
    return where === 'leader' ? this.changes : this.reads;
  }
}

/**
 * Requests that a standby forwards at a time, of the 128 connections that it has to the active node. The rest is left to requests of known
 * callers whose body is here already, or that have none.
 */
export interface ForwardingLimits {
  /** Of callers unknown here, with their bodies read: by address. */
  readonly strangers: WorkLimit;
  /** Of callers unknown here, with bodies too long to be read before the caller is known: by address. */
  readonly strangersStreams: WorkLimit;
  /** Of known callers, with bodies that are passed on as they come: by token. */
  readonly streams: WorkLimit;
}

const newForwardingLimits = (): ForwardingLimits => ({
  strangers: new WorkLimit({ atOnceMax: 32, perCallerMax: 16, waitingMax: 256 }),
  strangersStreams: new WorkLimit({ atOnceMax: 8, perCallerMax: 4, waitingMax: 64 }),
  streams: new WorkLimit({ atOnceMax: 32, perCallerMax: 16, waitingMax: 256, waitMsMax: 30_000 }),
});
