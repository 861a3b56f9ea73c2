import type { IncomingMessage, ServerResponse } from 'node:http';
import { callerGroup } from '@transitd/access';
import { leadershipTransferredHeader } from '@transitd/cluster';
import { announcesBody, type Reply, type WorkLimit } from '@transitd/http';
import { whereOf } from '../operation/operation.ts';
import { addressOf } from './caller-address.ts';
import type { ForwardingLimits } from './limits.ts';
import { type ForwardToActive, type Outcome, outcomeOf } from './outcome.ts';
import type { PipelineOptions, RouteMatch } from './request.ts';

/** How often one request follows a leadership that was transferred. */
export const transfersMax = 3;

/** Tells the node that forwarded the request to ask the next leader; nothing else was done. */
export const leadershipTransferred: Reply = {
  status: 503,
  body: '{"errors":["the leadership was transferred"]}\n',
  headers: { [leadershipTransferredHeader]: '1' },
};

/** Forwards to the active node what is not answered here. */
export class Forwarding {
  readonly #options: PipelineOptions;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  /**
   * Returns the status with which the active node has replied to the caller, or why there is none. Callers unknown here, and bodies that are
   * still coming, take few of the connections to the active node, however many they are.
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

/** The limit for one kind of forwarded request; none for a known caller's whole request. */
function limitOf(
  { strangers, strangersStreams, streams: knownStreams }: ForwardingLimits,
  { streams, isKnown }: { readonly streams: boolean; readonly isKnown: boolean },
): WorkLimit | undefined {
  if (!isKnown) return streams ? strangersStreams : strangers;
  return streams ? knownStreams : undefined;
}
