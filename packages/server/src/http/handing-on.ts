import type { IncomingMessage, ServerResponse } from 'node:http';
import { StoreError } from '@transitd/storage-fsm';
import { whereOf } from '../api/operation.ts';
import { handedOverHeader, LeadHandedOver } from '../cluster/lead-handed-over.ts';
import { addressOf } from './caller-address.ts';
import type { Reply } from './reply.ts';
import type { Routed, ServeOptions } from './routed.ts';

/** Requests of callers unknown here that are handed on at a time. */
const strangersMax = 32;
/** A lead that goes back and forth more often than that is no lead. */
const handoversMax = 3;

/** The request is for the active node; its body, where it was read already. */
export class Forward {
  readonly body: Buffer | undefined;
  /** Nobody here knows the caller. */
  readonly ofStranger: boolean;
  constructor(body?: Buffer, { ofStranger = false } = {}) {
    this.body = body;
    this.ofStranger = ofStranger;
  }
}

/** Nothing was done but that: the node that reads this asks whoever leads next. */
export const handedOver: Reply = {
  status: 503,
  body: '{"errors":["the lead was handed over"]}\n',
  headers: { [handedOverHeader]: '1' },
};

/** Hands to the active node what is not answered here. */
export class HandingOn {
  readonly #options: ServeOptions;
  #strangers = 0;

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
    handovers = 0,
  ): Promise<Reply | number> {
    const { node, forwarded } = this.#options;
    try {
      const answer = await decide();
      if (!(answer instanceof Forward)) return answer;
      return await (answer.ofStranger ? this.#forwardStranger(req, res, routed) : this.#forward(req, res, routed, answer.body));
    } catch (error) {
      if (!(error instanceof LeadHandedOver)) throw error;
      if (forwarded === true) return handedOver; // the node that took the request asks the next one
      if (handovers < handoversMax && (await node.answering.isLedAfter(error.term)))
        return this.answerOrForward(req, res, routed, decide, handovers + 1);
      throw new StoreError('not_leader', 'the lead was handed over, and nothing else was done: no active node answers');
    }
  }

  #forward(
    req: IncomingMessage,
    res: ServerResponse,
    { url, verb, operation }: Routed,
    body: Buffer | undefined,
  ): Promise<number> {
    return this.#options.node.answering.forward(req, res, {
      url,
      caller: addressOf(req, this.#options),
      body,
      changes: whereOf(operation, verb) === 'leader' || 'mayWrite' in operation,
      endsLead: 'endsLead' in operation,
      isSlow: 'isSlow' in operation,
    });
  }

  /** Callers that only the active node may know take few of the places there, however many they are. */
  async #forwardStranger(req: IncomingMessage, res: ServerResponse, routed: Routed): Promise<number> {
    if (this.#strangers >= strangersMax) throw new StoreError('busy', 'too many requests of unknown callers are being handed on');
    this.#strangers += 1;
    try {
      return await this.#forward(req, res, routed, undefined);
    } finally {
      this.#strangers -= 1;
    }
  }
}
