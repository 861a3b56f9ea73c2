import type { IncomingMessage, ServerResponse } from 'node:http';
import { callerGroup } from '@transitd/access';
import { leadershipTransferredHeader } from '@transitd/cluster';
import { announcesBody, type Reply, type WorkLimit } from '@transitd/http';
import { whereOf } from '../operation/operation.ts';
import { addressOf } from './caller-address.ts';
import type { ForwardingLimits } from './limits.ts';
import { type ForwardToActive, type Outcome, outcomeOf } from './outcome.ts';
import type { PipelineOptions, RouteMatch } from './request.ts';

/** Maximum number of leadership transfers after which one request is tried again. */
export const transfersMax = 3;

/** Asks the node that forwarded the request to try the next leader; nothing was executed. */
export const leadershipTransferred: Reply = {
  status: 503,
  body: '{"errors":["leadership was transferred to another node"]}\n',
  headers: { [leadershipTransferredHeader]: '1' },
};

/** Forwards requests to the active node. */
export class Forwarding {
  readonly #options: PipelineOptions;

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
    const { limits, node } = this.#options;
    const address = addressOf(req, this.#options);
    const streams = body === undefined && announcesBody(req);
    const limit = limits && limitOf(limits.forwarding, { streams, isKnown: tokenId !== undefined });
    const caller = tokenId ?? callerGroup(address);
    try {
      const place = limit?.enter(res, caller);
      if (place !== undefined) await place;
      try {
        return await node.eligibility.forward(req, res, {
          url,
          caller: address,
          body,
          changes: whereOf(operation, verb) === 'leader' || 'mayWrite' in operation,
          endsLeadership: 'endsLeadership' in operation,
          isSlow: 'isSlow' in operation,
        });
      } finally {
        limit?.leave(caller);
      }
    } catch (error) {
      return outcomeOf(error);
    }
  }
}

/** Returns the limit for a forwarded request; undefined for an authenticated request without a streamed body. */
function limitOf(
  { strangers, strangersStreams, streams: knownStreams }: ForwardingLimits,
  { streams, isKnown }: { readonly streams: boolean; readonly isKnown: boolean },
): WorkLimit | undefined {
  if (!isKnown) return streams ? strangersStreams : strangers;
  return streams ? knownStreams : undefined;
}
