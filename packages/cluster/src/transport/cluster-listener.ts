import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import { addressText } from '@transitd/configuration';
import { RepeatingTask } from '@transitd/event-loop';
import { OpenResponses, type Reply, readBody, sendReply } from '@transitd/http';
import { clientCertificateTextMax, StartError } from '@transitd/process';
import { frameBytesMax, type NodeId, type WireVersions, wireVersions } from '@transitd/raft-core';
import type { WebSocket } from 'ws';
import type { NodeIdentity } from '../membership/identity.ts';
import type { ForwardedRequests } from '../ports/cluster-host.ts';
import { sendFailure } from '../refusals/refusal-reply.ts';
import { type Caller, type CallerChecks, Callers } from './callers.ts';
import type { ClusterHandler } from './cluster-call.ts';
import { ConnectionEnding } from './connection-ending.ts';
import { type GuestHandlers, GuestServer, noGuests } from './guest-server.ts';
import { type Incarnation, type IncarnationVerdict, incarnationHeader, readIncarnation } from './incarnations.ts';
import { agreedProtocol } from './raft-protocol.ts';
import { channelOf, isOfJoin } from './unsealed-proof.ts';
import { AgreedUpgrades, callOf, offeredBy, refuseUpgrade, targetOf } from './upgrade.ts';

export interface ClusterListenerOptions extends Omit<CallerChecks, 'guests'> {
  /** Handlers by method and path, such as `POST /cluster/echo`. */
  readonly calls: Readonly<Record<string, ClusterHandler>>;
  /** Serves a client's request under `/v1/` that a member forwarded. Its body is unread, and `Expect: 100-continue` is not answered yet. */
  readonly forwarded: Pick<ForwardedRequests, 'handle'>;
  /** Whether members must prove that they are unsealed before they forward requests. */
  readonly forwardedByUnsealed?: boolean;
  readonly raft: RaftStreams;
  /** Serves callers that are no members. By default, there are none. */
  readonly guests?: GuestHandlers;
  /** A handler failed with an error that is not a refusal. */
  readonly onFault: (error: unknown) => void;
  /** Interval at which the port checks whether connected nodes are still members. */
  readonly checkMs?: number;
  /** Frame formats of Raft messages; those of this release by default. */
  readonly versions?: WireVersions;
}

/** Takes the streams of Raft messages that members open. */
export interface RaftStreams {
  accept(socket: WebSocket, from: NodeId, incarnation: Incarnation, ending: ConnectionEnding): void;
  /** Compares an incarnation of a member with those that connected before. */
  judge(from: NodeId, incarnation: Incarnation): IncarnationVerdict;
}

export const raftPath = '/cluster/raft';

const bodyLimits = { bytesMax: 64 * 1024, deadlineMs: 5_000 };
const handshakeMsMax = 5_000;
const checkMs = 1_000;

const removedReply: Reply = { status: 410, json: { removed: true } };
const foreignVersion: Reply = { status: 426, errors: ['no frame format in common'] };
/** Replies to an incarnation that asks for a connection for Raft messages. Its other calls are refused as misdirected (421). */
const incarnationRefusals: Readonly<Record<Exclude<IncarnationVerdict, 'in order'>, Reply>> = {
  overtaken: { status: 409, errors: ['a later incarnation of this node has connected before'] },
  early: { status: 503, errors: ['an earlier incarnation of this node is still connected'] },
};
const misdirected: Reply = { status: 421, errors: ['this node accepts another incarnation of the caller'] };
const noIncarnation: Reply = { status: 400, errors: ['the header x-transitd-run is missing or malformed'] };
const unproved: Reply = { status: 403, errors: ['the caller has not proved that it is unsealed'] };
const notFound: Reply = { status: 404, errors: [] };

/**
 * The port on which members of one cluster call each other: TLS 1.3 with certificates on both sides. Node's certificate check is replaced
 * by our own: signed by the cluster's authority for this cluster, and listed. The connection of an unknown node is closed without an
 * answer; a removed node is told that it was removed, and nothing else.
 */
export class ClusterListener {
  readonly #options: ClusterListenerOptions;
  readonly #server: Server;
  readonly #versions: WireVersions;
  readonly #upgrades = new AgreedUpgrades(frameBytesMax);
  readonly #callers: Callers;
  readonly #guests: GuestServer;
  readonly #checks: RepeatingTask;
  #identity: NodeIdentity;

  constructor(options: ClusterListenerOptions) {
    this.#options = options;
    this.#versions = options.versions ?? wireVersions;
    this.#identity = options.members.requireIdentity();
    const { guests = noGuests } = options;
    this.#callers = new Callers({ ...options, guests });
    this.#guests = new GuestServer(guests, options.onFault);
    this.#checks = new RepeatingTask(options.checkMs ?? checkMs, () => this.recheck());
    this.#server = createServer({
      ...contextOf(this.#identity),
      requestCert: true,
      rejectUnauthorized: false,
      handshakeTimeout: handshakeMsMax,
      headersTimeout: 5_000,
      connectionsCheckingInterval: 1_000,
      requestTimeout: 0, // bodies have their own deadlines, where they are read
      keepAliveTimeout: 60_000,
      maxHeaderSize: 16 * 1024 + clientCertificateTextMax,
      requireHostHeader: false,
      noDelay: true,
    });
    this.#server.maxHeadersCount = 0; // Node would drop headers beyond a number in silence; the length of the head is limited
    this.#server.timeout = 60_000; // nothing read and nothing written for this long
    this.#server.on('connection', (socket: Socket) => this.#callers.handshake(socket));
    this.#server.prependListener('secureConnection', (socket) => this.#callers.admit(socket));
    const onRequest = (req: IncomingMessage, res: ServerResponse): void => this.#onRequest(req, res);
    this.#server.on('request', onRequest).on('checkContinue', onRequest).on('checkExpectation', onRequest);
    this.#server.on('upgrade', (req, socket, head) => this.#onUpgrade(req, socket, head));
    new OpenResponses().watch(this.#server);
  }

  /** Resolves with the port. @throws StartError */
  listen(address: { readonly host: string; readonly port: number }): Promise<number> {
    const { host, port } = address;
    const server = this.#server;
    return new Promise((resolve, reject) => {
      const onError = ({ code, message }: NodeJS.ErrnoException): void =>
        reject(new StartError(`cluster_listen: ${addressText(address)} cannot be used: ${code ?? message}`));
      server.once('error', onError);
      server.listen(port, host, () => {
        server.off('error', onError);
        this.#checks.start();
        const bound = server.address();
        resolve(typeof bound === 'object' && bound !== null ? bound.port : port);
      });
    });
  }

  /**
   * Ends the streams and connections of nodes that are no longer members, and puts a renewed certificate into use. Runs every second; call
   * it to apply a change of the membership list or of this node's identity at once.
   */
  recheck(): void {
    const identity = this.#options.members.requireIdentity();
    if (identity.certificate !== this.#identity.certificate) {
      this.#identity = identity;
      this.#callers.useIdentity(identity);
      this.#server.setSecureContext(contextOf(identity));
    }
    this.#callers.recheck();
  }

  /** Stops accepting connections and cuts all open ones. */
  close(): Promise<void> {
    this.#checks.stop();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#callers.close();
    return closed;
  }

  #onRequest(req: IncomingMessage, res: ServerResponse): void {
    const guest = this.#callers.guestOn(req.socket);
    if (guest !== undefined) {
      void this.#guests.answer(req, res, guest);
      return;
    }
    const caller = this.#callers.on(req.socket);
    const memberState = caller && this.#callers.memberState(caller);
    if (caller === undefined || (memberState === undefined && !this.#callers.isOpenToUnlisted(callOf(req)))) {
      req.socket.destroy();
      return;
    }
    caller.inFlight++;
    res.once('close', () => caller.inFlight--);
    const incarnation = incarnationOf(req);
    const head = req.method === 'HEAD';
    if (memberState === 'removed') sendReply(res, removedReply, { head });
    else if (incarnation === undefined) sendReply(res, noIncarnation, { head });
    else if (this.#options.raft.judge(caller.from, incarnation) !== 'in order') sendReply(res, misdirected, { head });
    else if (req.url?.startsWith('/v1/')) this.#forwarded(req, res, caller);
    else void this.#answer(req, res, caller);
  }

  #forwarded(req: IncomingMessage, res: ServerResponse, { from, isUnsealed }: Caller): void {
    if (this.#options.forwardedByUnsealed !== true || isUnsealed || isOfJoin(req.url ?? ''))
      this.#options.forwarded.handle(req, res, from);
    else sendReply(res, unproved, { head: req.method === 'HEAD' });
  }

  async #answer(req: IncomingMessage, res: ServerResponse, caller: Caller): Promise<void> {
    const head = req.method === 'HEAD';
    try {
      const { query } = targetOf(req);
      const handler = this.#options.calls[callOf(req)];
      if (handler === undefined) return sendReply(res, notFound, { head });
      const body = await readBody(req, res, bodyLimits);
      // The caller may have been removed while its body arrived.
      const memberState = this.#callers.memberState(caller);
      if (memberState === undefined && !this.#callers.isOpenToUnlisted(callOf(req))) return void req.socket.destroy();
      if (memberState === 'removed') return sendReply(res, removedReply, { head });
      const channel = (): Buffer => channelOf(req.socket as TLSSocket);
      const proved = (): void => {
        caller.isUnsealed = true;
      };
      const answer = await handler({ from: caller.from, certificate: caller.certificate, channel, proved, body, query });
      if ('stream' in answer) await this.#stream(res, caller, answer.stream);
      else sendReply(res, { status: answer.status, json: answer.json }, { head });
    } catch (error) {
      sendFailure(res, error, { head, onFault: this.#options.onFault });
    }
  }

  async #stream(res: ServerResponse, { streams }: Caller, stream: AsyncIterable<Uint8Array>): Promise<void> {
    const cut = new AbortController();
    const one = { end: () => cut.abort() };
    streams.add(one);
    res.writeHead(200, { 'Content-Type': 'application/octet-stream' });
    try {
      await pipeline(stream, res, { signal: cut.signal });
    } catch (error) {
      res.destroy();
      if (!cut.signal.aborted && !isLost(error)) throw error;
    } finally {
      streams.delete(one);
    }
  }

  #onUpgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    const guest = this.#callers.guestOn(req.socket);
    if (guest !== undefined) {
      this.#guests.upgrade(req, socket, head, guest);
      return;
    }
    const caller = this.#callers.on(req.socket);
    const memberState = caller && this.#callers.memberState(caller);
    if (caller === undefined || memberState === undefined) {
      socket.destroy();
      return;
    }
    const [incarnation, agreed] = [incarnationOf(req), agreedProtocol(offeredBy(req), this.#versions)];
    const verdict = incarnation && this.#options.raft.judge(caller.from, incarnation);
    if (memberState === 'removed') refuseUpgrade(socket, removedReply);
    else if (targetOf(req).path !== raftPath) refuseUpgrade(socket, notFound);
    else if (agreed === undefined) refuseUpgrade(socket, foreignVersion);
    else if (incarnation === undefined || verdict === undefined) refuseUpgrade(socket, noIncarnation);
    else if (verdict !== 'in order') refuseUpgrade(socket, incarnationRefusals[verdict]);
    else {
      const ending = new ConnectionEnding(socket);
      this.#upgrades.accept(req, { socket, head, protocol: agreed }, (webSocket) => {
        caller.streams.add({ end: () => webSocket.terminate() });
        this.#options.raft.accept(webSocket, caller.from, incarnation, ending);
      });
    }
  }
}

const contextOf = ({ key, certificate, authority }: NodeIdentity): SecureContextOptions => ({
  key,
  cert: certificate,
  ca: authority,
  minVersion: 'TLSv1.3',
});

const incarnationOf = ({ headers }: IncomingMessage): Incarnation | undefined =>
  readIncarnation(String(headers[incarnationHeader] ?? ''));

/** Whether the error only says that the reader disconnected. */
const isLost = (error: unknown): boolean =>
  ['ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED', 'ECONNRESET', 'EPIPE'].includes(
    (error as NodeJS.ErrnoException).code ?? '',
  );
