import type { IncomingMessage, ServerResponse } from 'node:http';
import { leadershipTransferredHeader, NoActiveNode } from '@transitd/cluster';
import { announcesBody, type Reply, type WorkLimit } from '@transitd/http';
import { callerGroup } from '@transitd/process';
import { whereOf } from '../operation/operation.ts';
import { addressOf, certificateOf } from './caller-address.ts';
import type { ForwardingLimits } from './limits.ts';
import { type ForwardToActive, type Outcome, outcomeOf } from './outcome.ts';
import type { PipelineOptions, RouteMatch } from './request.ts';

/** Maximum number of times that one request is decided again, after a leadership transfer or when no active node answered. */
export const retriesMax = 3;

/** Maximum number of requests that wait at once for the end of a failover. */
const waitingMax = 1024;

/** Asks the node that forwarded the request to try the next leader; nothing was executed. */
export const leadershipTransferred: Reply = {
  status: 503,
  errors: ['leadership was transferred to another node'],
  headers: { [leadershipTransferredHeader]: '1' },
};

/** Forwards requests to the active node. */
export class Forwarding {
  readonly #options: PipelineOptions;

  #waiting = 0;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  /**
   * Returns the status of the active node's reply, or the outcome if no reply came. Unauthenticated requests and streamed bodies may use
   * only a part of the connections to the active node.
   */
  async forward(
    req: IncomingMessage,
    res: ServerResponse,
    { url, verb, operation }: RouteMatch,
    { body, tokenId }: ForwardToActive,
  ): Promise<number | Outcome> {
    const { limits, node, tracer } = this.#options;
    const address = addressOf(req, this.#options);
    const streams = body === undefined && announcesBody(req);
    const limit = limits && limitOf(limits.forwarding, { streams, isKnown: tokenId !== undefined });
    const caller = tokenId ?? callerGroup(address);
    try {
      const place = limit?.enter(res, caller);
      if (place !== undefined) await place;
      const span = tracer?.current()?.child('forward');
      let failed = true;
      try {
        const status = await node.eligibility.forward(req, res, {
          url,
          caller: address,
          certificate: certificateOf(req, this.#options),
          body,
          changes: whereOf(operation, verb) === 'leader' || 'mayWrite' in operation,
          endsLeadership: 'endsLeadership' in operation,
          isSlow: 'isSlow' in operation,
          traceparent: span?.traceparent ?? tracer?.unsampled(req.headers),
          span,
        });
        failed = status >= 500;
        return status;
      } finally {
        span?.end(failed);
        limit?.leave(caller);
      }
    } catch (error) {
      return outcomeOf(error);
    }
  }

  /**
   * Waits for the end of a failover after a forward failed, so that callers do not notice it. Returns whether this node should decide the
   * request again: an active node answers, nothing was changed, and the body is still there. Callers without a known token do not wait.
   */
  async mayRepeat(
    req: IncomingMessage,
    res: ServerResponse,
    { body, tokenId }: ForwardToActive,
    error: unknown,
  ): Promise<boolean> {
    if (!(error instanceof NoActiveNode) || tokenId === undefined) return false;
    if ((body === undefined && announcesBody(req)) || this.#waiting >= waitingMax) return false;
    this.#waiting += 1;
    try {
      return (await this.#options.node.eligibility.hasActiveNodeAgain(error.term)) && !res.destroyed;
    } finally {
      this.#waiting -= 1;
    }
  }
}

/** Returns the limit for a forwarded request; undefined for an authenticated request without a streamed body. */
function limitOf(
  { unauthenticated, unauthenticatedStreams, streams: knownStreams }: ForwardingLimits,
  { streams, isKnown }: { readonly streams: boolean; readonly isKnown: boolean },
): WorkLimit | undefined {
  if (!isKnown) return streams ? unauthenticatedStreams : unauthenticated;
  return streams ? knownStreams : undefined;
}
