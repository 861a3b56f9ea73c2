import { BodyMemory, type BodyMemoryLimits, bodyMemoryLimits, type ThreadLimit, undivided, WorkLimit } from '@transitd/http';
import type { GuardedOperation, OpenOperation, Where } from '../operation/operation.ts';

export interface LimitsConfig {
  /** Maximum number of concurrent requests that any replica may answer: cryptography, reads, lists. */
  readonly reads: number;
  /** Maximum number of concurrent requests that only the active node answers. */
  readonly changes: number;
  /** Maximum number of concurrent requests that need no token: logins, unwrapping, root token generation. */
  readonly logins: number;
  /** Maximum number of queued requests for each of the three limits above. */
  readonly waiting: number;
  /** Memory for request bodies, in bytes. */
  readonly body_memory: number;
}

/** The part of one thread of the limits that all threads of a node enforce. The main thread alone enforces the others. */
export interface ThreadLimits extends BodyMemoryLimits {
  readonly reads: ThreadLimit;
  /** Maximum number of queued bodies. Requests queue in the main thread only. */
  readonly waitingBodies: number;
}

/**
 * Requests of one token with bodies of many values that one thread executes at the same time. They take turns in the event loop: more at
 * once would end no sooner, and the values and results of all would be in memory. Two use both places of signatures on the thread pool.
 */
const batchesOfToken = 2;
/** How long such a request waits for an earlier one of its token, as long as a body waits for memory. */
const batchWaitMsMax = 60_000;

/** Part of a limit that one token, or one address without a token, may use. */
export const callerPart = 1 / 2;

/**
 * In-flight limits of one node, over all its listeners; a forwarded request counts on the node that executes it. Requests without a token
 * have their own limit, so they cannot starve changes or cryptography. One token, or one address without a token, may use half of a limit,
 * and the queue is fair between them, so one caller cannot starve another. Some requests are not counted, because an operator must be able
 * to inspect and stop an overloaded node: operations that any node answers in any state (`here`), the step-down, and the metrics and
 * health on their separate port.
 */
export class Limits {
  readonly reads: WorkLimit;
  readonly changes: WorkLimit;
  readonly logins: WorkLimit;
  readonly bodies: BodyMemory;
  /** Requests with bodies of many values, such as large batches. */
  readonly batches: WorkLimit;
  readonly forwarding: ForwardingLimits;

  /** @param divided - the part of this thread; default: there is no other thread */
  constructor(config: LimitsConfig, divided = undividedLimits(config)) {
    const limitOf = ({ own, ownPerCaller, common }: ThreadLimit): WorkLimit =>
      new WorkLimit({ atOnceMax: own, perCallerMax: ownPerCaller, common, waitingMax: config.waiting });
    this.reads = limitOf(divided.reads);
    this.changes = limitOf(undivided(config.changes, callerPart));
    this.logins = limitOf(undivided(config.logins, callerPart));
    this.bodies = new BodyMemory(divided, divided.waitingBodies);
    this.batches = new WorkLimit({
      ...{ atOnceMax: config.reads + config.changes, perCallerMax: batchesOfToken },
      ...{ waitingMax: config.waiting, waitMsMax: batchWaitMsMax },
    });
    this.forwarding = newForwardingLimits();
  }

  /**
   * Returns the limit that a request counts against; undefined for an unlimited request, and for operations that take minutes, which have
   * their own limit.
   */
  workOf(operation: GuardedOperation | OpenOperation, where: Where): WorkLimit | undefined {
    if (where === 'here' || 'isSlow' in operation || 'endsLeadership' in operation || 'unaudited' in operation) return undefined;
    if (operation.access === 'open') return this.logins;
    return where === 'leader' ? this.changes : this.reads;
  }
}

const undividedLimits = ({ reads, body_memory, waiting }: LimitsConfig): ThreadLimits => ({
  reads: undivided(reads, callerPart),
  ...bodyMemoryLimits(body_memory),
  waitingBodies: waiting,
});

/**
 * Limits on concurrently forwarded requests. A standby has 128 connections to the active node. The connections that these limits leave free
 * serve authenticated requests without a body, or whose body is already read.
 */
export interface ForwardingLimits {
  /** Unauthenticated requests whose bodies are already read; shared fairly between addresses. */
  readonly unauthenticated: WorkLimit;
  /** Unauthenticated requests whose bodies are too long to read before authentication; shared fairly between addresses. */
  readonly unauthenticatedStreams: WorkLimit;
  /** Authenticated requests whose bodies are streamed; shared fairly between tokens. */
  readonly streams: WorkLimit;
}

const newForwardingLimits = (): ForwardingLimits => ({
  unauthenticated: new WorkLimit({ atOnceMax: 32, perCallerMax: 16, waitingMax: 256 }),
  unauthenticatedStreams: new WorkLimit({ atOnceMax: 8, perCallerMax: 4, waitingMax: 64 }),
  streams: new WorkLimit({ atOnceMax: 32, perCallerMax: 16, waitingMax: 256, waitMsMax: 30_000 }),
});
