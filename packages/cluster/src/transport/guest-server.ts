import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Reply, readBody, sendReply } from '@transitd/http';
import type { WebSocket } from 'ws';
import { sendFailure } from '../refusals/refusal-reply.ts';
import type { Guest, GuestChecks } from './callers.ts';
import { AgreedUpgrades, callOf, offeredBy, refuseUpgrade } from './upgrade.ts';

/** Serves callers that are no members: none of their requests reaches the handlers of members. */
export interface GuestHandlers extends GuestChecks {
  /** Answers a request; undefined if there is no such call. `body` reads the body, of at most 16 KiB. */
  call(request: GuestRequest, body: () => Promise<Buffer>): Promise<Reply | undefined>;
  /** Decides on a request for a stream; undefined if there is no such stream. */
  stream(request: GuestRequest): Reply | GuestStream | undefined;
}

export interface GuestRequest {
  /** As in `calls`. */
  readonly call: string;
  /** Fingerprint of the guest's certificate. */
  readonly certificate: string;
  /** WebSocket subprotocols that the guest offers. */
  readonly offered: ReadonlySet<string>;
}

/** Accepts a stream. A message of the guest has at most 64 KiB. */
export interface GuestStream {
  readonly protocol: string;
  readonly serve: (socket: WebSocket) => void;
}

const bodyLimits = { bytesMax: 16 * 1024, deadlineMs: 5_000 };
/** Maximum size of a message of a guest. */
const frameBytesMax = 64 * 1024;
const noHandler: Reply = { status: 404, errors: [] };

/** Admits no guest. */
export const noGuests: GuestHandlers = { standing: () => undefined, call: async () => undefined, stream: () => undefined };

export class GuestServer {
  readonly #handlers: GuestHandlers;
  readonly #onFault: (error: unknown) => void;
  readonly #upgrades = new AgreedUpgrades(frameBytesMax);

  constructor(handlers: GuestHandlers, onFault: (error: unknown) => void) {
    this.#handlers = handlers;
    this.#onFault = onFault;
  }

  async answer(req: IncomingMessage, res: ServerResponse, guest: Guest): Promise<void> {
    const head = req.method === 'HEAD';
    try {
      const body = async (): Promise<Buffer> => readBody(req, res, bodyLimits);
      sendReply(res, (await this.#handlers.call(requestOf(req, guest), body)) ?? noHandler, { head });
    } catch (error) {
      sendFailure(res, error, { head, onFault: this.#onFault });
    }
  }

  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer, guest: Guest): void {
    const decision = this.#handlers.stream(requestOf(req, guest)) ?? noHandler;
    if ('status' in decision) {
      refuseUpgrade(socket, decision);
      return;
    }
    this.#upgrades.accept(req, { socket, head, protocol: decision.protocol }, decision.serve);
  }
}

const requestOf = (req: IncomingMessage, { certificate }: Guest): GuestRequest => ({
  call: callOf(req),
  certificate,
  offered: offeredBy(req),
});
