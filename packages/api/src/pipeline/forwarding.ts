import type { IncomingMessage, ServerResponse } from 'node:http';
import { callerGroup } from '@transitd/access';
import { LeadershipTransferred, leadershipTransferredHeader } from '@transitd/cluster';
import { announcesBody, type Reply, type WorkLimit } from '@transitd/http';
import { StoreError } from '@transitd/storage-fsm';
import { whereOf } from '../operation/operation.ts';
import { addressOf } from './caller-address.ts';
import type { ForwardingLimits } from './limits.ts';
import type { Routed, ServeOptions } from './routed.ts';

/** A lead that goes back and forth more often than that is no lead. */
const transfersMax = 3;

/** The request is for the active node; with its body, where it was read already. */
export class Forward {
  readonly body: Buffer | undefined;
  /** The id of a known caller's token; undefined for a caller that is unknown here. */
  readonly tokenId: string | undefined;
  constructor(body: Buffer | undefined, tokenId?: string) {
    this.body = body;
    this.tokenId = tokenId;
  }
}

/** Nothing was done but that: the node that reads this asks whoever leads next. */
export const leadershipTransferred: Reply = {
  status: 503,
  body: '{"errors":["the lead was handed over"]}\n',
  headers: { [leadershipTransferredHeader]: '1' },
};

/** Hands to the active node what is not answered here. */
export class Forwarding {
  readonly #options: ServeOptions;

  constructor(options: ServeOptions) {
    this.#options = options;
  }

  /**
   * The answer, or the status with which another node answered.
   * @param decide - answers the request here or hands it on; asked again when its answer is that the lead was handed over for it
   */
  async answerOrForward(
    req: IncomingMessage,
    res: ServerResponse,
    routed: Routed,
    decide: () => Promise<Reply | Forward>,
    transfers = 0,
  ): Promise<Reply | number> {
    const { node, forwarded } = this.#options;
    try {
      const answer = await decide();
      if (!(answer instanceof Forward)) return answer;
      return await this.#forwardInTurn(req, res, routed, answer);
    } catch (error) {
      if (!(error instanceof LeadershipTransferred)) throw error;
      if (forwarded === true) return leadershipTransferred; // the node that took the request asks the next one
      if (transfers < transfersMax && (await node.eligibility.isLedAfter(error.term)))
        return this.answerOrForward(req, res, routed, decide, transfers + 1);
      throw new StoreError('not_leader', 'the lead was handed over, and nothing else was done: no active node answers');
    }
  }

  /** Strangers, and bodies that are still coming, take few of the connections to the active node, however many they are. */
  async #forwardInTurn(req: IncomingMessage, res: ServerResponse, routed: Routed, { body, tokenId }: Forward): Promise<number> {
    const { limits } = this.#options;
    const streams = body === undefined && announcesBody(req);
    const limit = limits && limitOf(limits.forwarding, { streams, isKnown: tokenId !== undefined });
    const caller = tokenId ?? callerGroup(addressOf(req, this.#options));
    const turn = limit?.enter(res, caller);
    if (turn !== undefined) await turn;
    try {
      return await this.#forward(req, res, routed, body);
    } finally {
      limit?.leave(caller);
    }
  }

  #forward(
    req: IncomingMessage,
    res: ServerResponse,
    { url, verb, operation }: Routed,
    body: Buffer | undefined,
  ): Promise<number> {
    return this.#options.node.eligibility.forward(req, res, {
      url,
      caller: addressOf(req, this.#options),
      body,
      changes: whereOf(operation, verb) === 'leader' || 'mayWrite' in operation,
      endsLeadership: 'endsLeadership' in operation,
      isSlow: 'isSlow' in operation,
    });
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
