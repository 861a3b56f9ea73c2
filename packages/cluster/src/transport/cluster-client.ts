import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream';
import type { NodeId } from '@transitd/raft-core';
import type { NodeIdentity } from '../membership/identity.ts';
import { certificatesOf, type Member, parseHostAndPort } from '../membership/membership.ts';
import { incarnationHeader, type Run, writeIncarnation } from './incarnations.ts';
import { connectToPeer, type PeerConnectionOptions } from './peer-connection.ts';

/** `not_sent`: no byte of the request left, so it may be sent again. `outcome_unknown`: the peer may have acted on it. */
export type ClusterCallErrorCode = 'not_sent' | 'outcome_unknown';

/** A call to a peer that has no answer. */
export class ClusterCallError extends Error {
  override readonly name = 'ClusterCallError';
  readonly code: ClusterCallErrorCode;
  constructor(code: ClusterCallErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export interface ClusterRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Uint8Array | Readable;
  /** Ends the call, and the answer's body while it is on its way. */
  readonly signal?: AbortSignal;
  /** Until the head of the answer, connecting included. */
  readonly timeoutMs: number;
}

/** An answer, whatever its status: 410 says that this node was removed, 421 that another run of it is the one that counts. The body has to be read to its end or destroyed. */
export interface ClusterResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
}

export interface ClusterClientOptions {
  readonly identity: () => NodeIdentity;
  /** This node's, named in every call. */
  readonly run: () => Run;
  /** Who the peers are, by the newest list. */
  readonly member: (id: NodeId) => Member | undefined;
  readonly localAddress?: string | undefined;
  /** For a connection and its handshake. */
  readonly connectMsMax?: number;
  /** How long an answer's body may stand still. */
  readonly stallMsMax?: number;
}

/** Requests under way to one peer at a time, and how many calls of the cluster's own besides: those never wait behind the clients'. */
const forwardedMax = 128;
const ownMax = 16;
/** Shorter than the listener keeps them, so that a request seldom meets a connection that is being closed. */
const idleMs = 10_000;
const defaultConnectMsMax = 2_500;
const defaultStallMsMax = 10_000;
/** What is read of the answer to a call in JSON. */
const jsonBytesMax = 64 * 1024;

/** HTTP to peers over kept-alive connections, each bound to the certificate that the member list names. */
export class ClusterClient {
  readonly #options: ClusterClientOptions;
  readonly #peers = new Map<NodeId, Peer>();
  #closed = false;

  constructor(options: ClusterClientOptions) {
    this.#options = options;
  }

  /**
   * Resolves with the head of the answer; its body streams, and breaks with an error when it is cut or stands still.
   * @throws ClusterCallError
   */
  async request(to: NodeId, asked: ClusterRequest): Promise<ClusterResponse> {
    if (this.#closed) throw new ClusterCallError('not_sent', 'the cluster port is closed');
    if (asked.signal?.aborted) throw new ClusterCallError('not_sent', 'the call was given up');
    const peer = this.#peer(to);
    if (peer === undefined) throw new ClusterCallError('not_sent', `node ${to} is no member of the cluster`);
    const headers = { ...asked.headers, [incarnationHeader]: writeIncarnation(this.#options.run()) };
    return exchange(peer, { ...asked, headers }, this.#options.stallMsMax ?? defaultStallMsMax);
  }

  /**
   * One of the cluster's own calls, JSON both ways; `json` is undefined when the answer has none.
   * @throws ClusterCallError, `outcome_unknown` too when the answer's body breaks, is no JSON or is longer than 64 KiB
   */
  async post(
    to: NodeId,
    path: string,
    { json, ...rest }: { readonly json: unknown; readonly signal?: AbortSignal; readonly timeoutMs: number },
  ): Promise<{ readonly status: number; readonly json: unknown }> {
    const headers = { 'Content-Type': 'application/json' };
    const { status, body } = await this.request(to, {
      method: 'POST',
      path,
      headers,
      body: Buffer.from(JSON.stringify(json)),
      ...rest,
    });
    try {
      const text = await textOf(body);
      return { status, json: text === '' ? undefined : JSON.parse(text) };
    } catch (error) {
      throw new ClusterCallError('outcome_unknown', `node ${to}: the answer to ${path} cannot be read`, { cause: error });
    }
  }

  /** The member list changed: requests to nodes that it does not name any more are cut, connections that it made stale go when they are free. */
  recheck(): void {
    for (const id of this.#peers.keys()) this.#peer(id);
  }

  /** Cuts everything under way. */
  close(): void {
    this.#closed = true;
    for (const peer of this.#peers.values()) peer.destroy();
    this.#peers.clear();
  }

  #peer(id: NodeId): Peer | undefined {
    const known = this.#peers.get(id);
    const member = this.#options.member(id);
    if (member === undefined) {
      known?.destroy();
      this.#peers.delete(id);
      return undefined;
    }
    const identity = this.#options.identity();
    const terms = [member.clusterAddress, ...certificatesOf(member), identity.certificate].join();
    if (known?.terms === terms) return known;
    known?.retire();
    const { localAddress, connectMsMax = defaultConnectMsMax } = this.#options;
    const peer = new Peer(terms, member, { identity, localAddress, connectMsMax });
    this.#peers.set(id, peer);
    return peer;
  }
}

/** The connections to one peer, all made on the same terms: its address, its certificates, and our own. */
class Peer {
  readonly terms: string;
  readonly member: Member;
  readonly #local: PeerAgent;
  readonly #forwarded: PeerAgent;

  constructor(terms: string, member: Member, via: PeerConnectionOptions) {
    this.terms = terms;
    this.member = member;
    this.#local = new PeerAgent({ ...via, member, maxSockets: ownMax });
    this.#forwarded = new PeerAgent({ ...via, member, maxSockets: forwardedMax });
  }

  agentFor(path: string): Agent {
    return path.startsWith('/cluster/') ? this.#local : this.#forwarded;
  }

  /** After a call without an answer the free connections are suspect: TCP may be waiting long after the network is well again. */
  dropFree(): void {
    this.#local.dropFree();
    this.#forwarded.dropFree();
  }

  /** Requests under way end in order; no connection is used again. */
  retire(): void {
    this.#local.maxFreeSockets = 0;
    this.#forwarded.maxFreeSockets = 0;
    this.dropFree();
  }

  destroy(): void {
    this.retire();
    this.#local.destroy();
    this.#forwarded.destroy();
  }
}

interface PeerAgentOptions extends PeerConnectionOptions {
  readonly member: Member;
  readonly maxSockets: number;
}

class PeerAgent extends Agent {
  readonly #to: PeerAgentOptions;

  constructor(to: PeerAgentOptions) {
    super({ keepAlive: true, maxSockets: to.maxSockets, maxFreeSockets: to.maxSockets, timeout: idleMs, scheduling: 'lifo' });
    this.#to = to;
  }

  /** Only by the callback, so that no request gets a connection, and sends, before the peer is known. */
  override createConnection(_options: unknown, callback?: (error: Error | null, socket: Duplex) => void): undefined {
    connectToPeer(this.#to.member, this.#to, (error, connection) => {
      const given = callback as ((error: Error | null, socket?: Duplex) => void) | undefined;
      given?.(error ?? null, connection?.socket);
    });
  }

  dropFree(): void {
    for (const sockets of Object.values(this.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }
}

function exchange(peer: Peer, asked: ClusterRequest, stallMs: number): Promise<ClusterResponse> {
  const { method, path, headers = {}, body, signal, timeoutMs } = asked;
  return new Promise((resolve, reject) => {
    const address = parseHostAndPort(peer.member.clusterAddress);
    const req = httpsRequest({ ...address, agent: peer.agentFor(path), method, path, headers });
    let mayBeSent = false;
    const fail = (error: Error): void => {
      const code = mayBeSent ? 'outcome_unknown' : 'not_sent';
      reject(new ClusterCallError(code, `node ${peer.member.id}: ${error.message}`, { cause: error }));
    };
    const giveUp = (reason: string): void => {
      const error = new Error(reason);
      req.destroy(error);
      if (!mayBeSent) fail(error); // it would tell only when it gets a connection, on which it sends nothing any more
    };
    const deadline = setTimeout(() => {
      giveUp(`no answer within ${timeoutMs} ms`);
      peer.dropFree();
    }, timeoutMs);
    const onAbort = (): void => giveUp('the call was given up');
    signal?.addEventListener('abort', onAbort);
    req.once('socket', () => {
      mayBeSent = true;
    });
    req.once('close', () => {
      clearTimeout(deadline);
      signal?.removeEventListener('abort', onAbort);
    });
    req.on('error', fail);
    req.once('response', (res) => {
      clearTimeout(deadline);
      breakWhenStalled(res, stallMs);
      resolve({ status: res.statusCode ?? 0, headers: res.headers, body: res });
    });
    if (body === undefined || body instanceof Uint8Array) req.end(body);
    else pipeline(body, req, () => undefined); // its failure destroys the request, which tells
  });
}

/** A reader that has taken everything and sees nothing more come for that long is not left waiting; a slow reader is. */
function breakWhenStalled(res: IncomingMessage, stallMs: number): void {
  const { socket } = res;
  let before = socket.bytesRead;
  const timer = setInterval(() => {
    if (socket.bytesRead === before && res.readableLength === 0)
      res.destroy(new Error(`the answer stood still for ${stallMs} ms`));
    before = socket.bytesRead;
  }, stallMs);
  res.once('close', () => clearInterval(timer));
}

async function textOf(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > jsonBytesMax) throw new Error(`the answer has more than ${jsonBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
