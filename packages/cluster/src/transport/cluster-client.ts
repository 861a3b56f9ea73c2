import type { ClientRequest, IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { type Duplex, finished, type Readable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { arrivalDeadline } from '@transitd/http';
import { bytesOf } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { certificatesOf, type Member, parseHostAndPort } from '../membership/membership.ts';
import { type Incarnation, incarnationHeader, writeIncarnation } from './incarnations.ts';
import { connectToPeer, type LocalEnd, type PeerConnectionOptions, PeerUnreachable } from './peer-connection.ts';
import { isOfJoin, proveUnsealed, type UnsealedProofOptions, type UnsealedProofs } from './unsealed-proof.ts';

/** `not_sent`: no byte of the request left, so it may be sent again. `outcome_unknown`: the peer may have acted on it. */
type ClusterCallErrorCode = 'not_sent' | 'outcome_unknown';

/** A call to a peer that has no answer. */
export class ClusterCallError extends Error {
  override readonly name = 'ClusterCallError';
  readonly code: ClusterCallErrorCode;
  constructor(code: ClusterCallErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

interface ClusterRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Uint8Array | Readable;
  /** Aborts the call, or the body of the answer while it arrives. */
  readonly signal?: AbortSignal;
  /** Limit for the time until the head of the answer, connecting included. */
  readonly timeoutMs: number;
}

/**
 * An answer, whatever its status: 410 says that this node was removed, 421 that the peer accepts another incarnation of this node. The
 * caller reads the body to its end or destroys it.
 */
export interface ClusterResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
}

export interface ClusterClientOptions extends LocalEnd {
  /** The present identity of this node, and the members by the newest membership list. */
  readonly members: LocalEnd['members'] & { member(id: NodeId): Member | undefined };
  /** Limit for a connection and its handshake together. */
  readonly connectMsMax?: number;
  /** How long the body of an answer may make no progress. */
  readonly stallMsMax?: number;
}

/** A use of connections. Each use has its own to each peer, so that the cluster's own calls never wait for clients' requests. */
interface Use {
  /** Maximum number of concurrent requests to one peer. */
  readonly requestsMax: number;
  /** Checks a fresh connection before its first request. @param done - called once, with the reason if the connection is refused */
  readonly check: (socket: TLSSocket, options: Omit<UnsealedProofOptions, 'proofs'>, done: (refused?: string) => void) => void;
}

const unchecked: Use['check'] = (_socket, _options, done) => done();
const calls: Use = { requestsMax: 16, check: unchecked };
const joins: Use = { requestsMax: 8, check: unchecked };
const forwards: Use = { requestsMax: 128, check: unchecked };
/** Shorter than the listener's keep-alive, so that a request seldom uses a connection that the peer is closing. */
const idleMs = 10_000;
const defaultConnectMsMax = 2_500;
const defaultStallMsMax = 10_000;
/** Limit for the body of a JSON answer. */
const jsonBytesMax = 64 * 1024;

/** Sends requests of clients to peers. */
export type ForwardingClient = Pick<ClusterClient, 'request'>;

/**
 * Calls peers by HTTP over keep-alive connections. Each connection is bound to a certificate that the membership list names for the peer.
 */
export class ClusterClient {
  readonly #options: ClusterClientOptions;
  readonly #peers = new Map<NodeId, Peer>();
  #closed = false;

  constructor(options: ClusterClientOptions) {
    this.#options = options;
  }

  /**
   * Makes one of the cluster's own calls; resolves with the head of the answer. The body streams; it fails with an error when the
   * connection breaks or stalls.
   * @throws ClusterCallError
   */
  request(to: NodeId, request: ClusterRequest): Promise<ClusterResponse> {
    return this.#exchange(to, request, calls);
  }

  /**
   * Returns the client for requests of clients, which has connections of its own to the same peers. They are used only after both ends have
   * proved to each other that they are unsealed. Joining nodes need no such proof.
   * @param proofs - absent where certificates show that nodes are unsealed
   */
  forwarding(proofs?: UnsealedProofs): ForwardingClient {
    const use: Use =
      proofs === undefined
        ? forwards
        : { ...forwards, check: (socket, options, done) => proveUnsealed(socket, { proofs, ...options }, done) };
    return { request: (to, request) => this.#exchange(to, request, isOfJoin(request.path) ? joins : use) };
  }

  async #exchange(to: NodeId, request: ClusterRequest, use: Use): Promise<ClusterResponse> {
    if (this.#closed) throw new ClusterCallError('not_sent', 'the cluster port is closed');
    if (request.signal?.aborted) throw new ClusterCallError('not_sent', 'the caller aborted the call');
    const peer = this.#peer(to);
    if (peer === undefined) throw new ClusterCallError('not_sent', `node ${to} is not a member of the cluster`);
    const headers = { ...request.headers, [incarnationHeader]: writeIncarnation(this.#options.incarnation) };
    return exchange(peer, peer.agent(use), { ...request, headers }, this.#options.stallMsMax ?? defaultStallMsMax);
  }

  /**
   * Makes one of the cluster's own calls, with JSON both ways; `json` is undefined when the answer has no body.
   * @throws ClusterCallError, `outcome_unknown` also when the body of the answer breaks off, is not JSON or is longer than 64 KiB
   */
  async post(
    to: NodeId,
    path: string,
    { json, timeoutMs }: { readonly json: unknown; readonly timeoutMs: number },
  ): Promise<{ readonly status: number; readonly json: unknown }> {
    const headers = { 'Content-Type': 'application/json' };
    const sent = Buffer.from(JSON.stringify(json));
    const { status, body } = await this.request(to, { method: 'POST', path, headers, body: sent, timeoutMs });
    try {
      const text = (await bytesOf(body, jsonBytesMax)).toString('utf8');
      return { status, json: text === '' ? undefined : JSON.parse(text) };
    } catch (error) {
      throw new ClusterCallError('outcome_unknown', `node ${to}: cannot read the answer to ${path}`, { cause: error });
    }
  }

  /** Applies a changed membership list: cuts requests to nodes that it no longer names, and closes stale connections once they are idle. */
  recheck(): void {
    for (const id of this.#peers.keys()) this.#peer(id);
  }

  /** Cuts all requests in flight. */
  close(): void {
    this.#closed = true;
    for (const peer of this.#peers.values()) peer.destroy();
    this.#peers.clear();
  }

  #peer(id: NodeId): Peer | undefined {
    const known = this.#peers.get(id);
    const { members, localAddress, connectMsMax = defaultConnectMsMax, incarnation } = this.#options;
    const member = members.member(id);
    if (member === undefined) {
      known?.destroy();
      this.#peers.delete(id);
      return undefined;
    }
    const identity = members.requireIdentity();
    const connectionKey = [member.clusterAddress, ...certificatesOf(member), identity.certificate].join();
    if (known?.connectionKey === connectionKey) return known;
    known?.retire();
    const peer = new Peer(connectionKey, member, { identity, localAddress, connectMsMax, incarnation });
    this.#peers.set(id, peer);
    return peer;
  }
}

/**
 * The connections to one peer. All have the same address, the same certificates of the peer and the same certificate of this node:
 * `connectionKey`.
 */
class Peer {
  readonly connectionKey: string;
  readonly member: Member;
  readonly #via: PeerVia;
  readonly #agents = new Map<Use, PeerAgent>();

  constructor(connectionKey: string, member: Member, via: PeerVia) {
    this.connectionKey = connectionKey;
    this.member = member;
    this.#via = via;
  }

  agent(use: Use): PeerAgent {
    const agent = this.#agents.get(use) ?? new PeerAgent(this.member, this.#via, use);
    this.#agents.set(use, agent);
    return agent;
  }

  /** Closes idle connections after a call without an answer: TCP may still be backing off long after the network has recovered. */
  dropFree(): void {
    for (const agent of this.#agents.values()) agent.dropFree();
  }

  /** Lets requests in flight finish; reuses no connection. */
  retire(): void {
    for (const agent of this.#agents.values()) agent.maxFreeSockets = 0;
    this.dropFree();
  }

  destroy(): void {
    this.retire();
    for (const agent of this.#agents.values()) agent.destroy();
  }
}

interface PeerVia extends PeerConnectionOptions {
  readonly incarnation: Incarnation;
}

class PeerAgent extends Agent {
  readonly #member: Member;
  readonly #via: PeerVia;
  readonly #check: Use['check'];

  constructor(member: Member, via: PeerVia, { requestsMax, check }: Use) {
    super({ keepAlive: true, maxSockets: requestsMax, maxFreeSockets: requestsMax, timeout: idleMs, scheduling: 'lifo' });
    this.#member = member;
    this.#via = via;
    this.#check = check;
  }

  /** Passes the connection to the callback only, so that no request is sent before the peer is verified. */
  override createConnection(_options: unknown, done: (error: Error | null, socket?: Duplex) => void): undefined {
    const { incarnation, connectMsMax: msMax } = this.#via;
    connectToPeer(this.#member, this.#via, (error, connection) => {
      if (connection === undefined) return done(error ?? null);
      const { socket } = connection;
      this.#check(socket, { incarnation, msMax }, (refused) => {
        if (refused === undefined) return done(null, socket);
        socket.destroy();
        done(new PeerUnreachable(refused));
      });
    });
  }

  dropFree(): void {
    for (const sockets of Object.values(this.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }
}

function exchange(peer: Peer, agent: Agent, request: ClusterRequest, stallMs: number): Promise<ClusterResponse> {
  const { method, path, headers = {}, body, signal, timeoutMs } = request;
  return new Promise((resolve, reject) => {
    const address = parseHostAndPort(peer.member.clusterAddress);
    const req = httpsRequest({ ...address, agent, method, path, headers });
    let mayBeSent = false;
    let open: ClientRequest | IncomingMessage = req;
    const fail = (error: Error): void => {
      const code = mayBeSent ? 'outcome_unknown' : 'not_sent';
      reject(new ClusterCallError(code, `node ${peer.member.id}: ${error.message}`, { cause: error }));
    };
    const giveUp = (reason: string): void => {
      const error = new Error(reason);
      // Node drops the unread part of an answer when its request is destroyed. The reader would find a shorter body without an error.
      open.destroy(error);
      if (!mayBeSent) fail(error); // the request itself reports the error only once it gets a connection
    };
    const endDeadline = arrivalDeadline(timeoutMs, () => {
      giveUp(`no answer within ${timeoutMs} ms`);
      peer.dropFree();
    });
    const onAbort = (): void => giveUp('the caller aborted the call');
    signal?.addEventListener('abort', onAbort);
    req.once('socket', () => {
      mayBeSent = true;
    });
    req.once('close', () => {
      if (open === req) fail(new Error('the connection ended without an answer'));
      endDeadline();
      signal?.removeEventListener('abort', onAbort);
    });
    req.on('error', fail);
    req.once('response', (res) => {
      open = res;
      endDeadline();
      breakWhenStalled(res, stallMs);
      resolve({ status: res.statusCode ?? 0, headers: res.headers, body: res });
    });
    if (body === undefined || body instanceof Uint8Array) req.end(body);
    else send(body, req);
  });
}

/**
 * Sends a body as long as the exchange lasts. An answer may come before the end of the body, and end the exchange. The owner of the body
 * discards the rest; to destroy it would close the connection that it comes from, which still needs the answer.
 */
function send(body: Readable, req: ClientRequest): void {
  finished(body, { writable: false }, (error) => {
    if (error != null) req.destroy(error);
  });
  body.pipe(req);
}

/**
 * Fails the body when nothing arrives for `stallMs` although the reader has consumed everything; a slow reader does not count as a stall.
 */
function breakWhenStalled(res: IncomingMessage, stallMs: number): void {
  const { socket } = res;
  let before = socket.bytesRead;
  const check = (): void => {
    if (socket.bytesRead === before && res.readableLength === 0) res.destroy(new Error(`the answer stalled for ${stallMs} ms`));
    before = socket.bytesRead;
  };
  // After a stall of this process, the timer is due before the bytes that came meanwhile are read: they count.
  const timer = setInterval(() => setImmediate(check), stallMs);
  res.once('close', () => clearInterval(timer));
}
