import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { announcesBody, endAfterDrain, indexHeader, indexIn, strictTransportSecurity, uncountedBytes } from '@transitd/http';
import { type ClientCertificate, clientCertificateText, type Span } from '@transitd/process';
import type { NodeId, Term } from '@transitd/raft-core';
import { type ServiceIndex, StoreError } from '@transitd/storage-fsm';
import { ClusterCallError, type ClusterResponse, type ForwardingClient } from './cluster-client.ts';

/** No active node executed a forwarded request, and nothing was changed: the request may be decided again. */
export class NoActiveNode extends StoreError {
  /** The term of the leader that did not answer, or refused; 0 if no leader was known. */
  readonly term: Term;
  constructor(term: Term) {
    super('not_leader', 'no active node answers');
    this.term = term;
  }
}

/** The called node gave up leadership because of this request and did nothing else for it: send the request to the next leader. */
export class LeadershipTransferred extends Error {
  override readonly name = 'LeadershipTransferred';
  /** The term whose leader gave up leadership. */
  readonly term: Term;
  constructor(term: Term) {
    super('leadership was transferred');
    this.term = term;
  }
}

/** The leader, as this node knows it. */
export interface Leader {
  readonly id: NodeId;
  readonly term: Term;
  /** It has not answered heartbeats for so long that it may be dead: a request might hang there until its outcome is unknown. */
  readonly isSilent: boolean;
}

interface ForwarderOptions {
  readonly client: ForwardingClient;
  /** `present` is undefined while no leader is known, and while this node leads itself. */
  readonly leader: { readonly present: Leader | undefined };
  /** Waits until this node has applied a state that contains the index. Returns whether it has. */
  readonly reached: (index: ServiceIndex, withinMs: number) => Promise<boolean>;
  /** The name of this node. */
  readonly self: string;
}

interface ForwardOptions {
  /** Path and query as received. */
  readonly url: string;
  /** The body of the request, when it has been read already. */
  readonly body: Buffer | undefined;
  /** Whether the request may change anything. */
  readonly changes: boolean;
  /** Whether the request itself may end the leader's term: if so, a change of leader does not abort the request. */
  readonly endsLeadership?: boolean;
  /** Whether the request may take minutes. */
  readonly isSlow?: boolean;
  /** The client's address, as this node trusts it. */
  readonly caller: string;
  /** The client's certificate, as this node has verified it; undefined for none. */
  readonly certificate?: ClientCertificate | undefined;
  /** Replaces the W3C header `traceparent` of the request, unless undefined. */
  readonly traceparent?: string | undefined;
  /** The span of the forward, which gets the wait for this node's own apply as a step; absent if the request is not traced. */
  readonly span?: Span | undefined;
}

/** Deadline for the head of the answer. */
const deadlineMs = 10_000;
/** Deadline for a request with a body: the active node may queue the request, and closes the connection if the body arrives too slowly. */
const bodyDeadlineMs = 120_000;
/** Deadline for a request that may take minutes, such as a restore; includes its body. */
const slowDeadlineMs = 30 * 60_000;
/** Maximum time for which a forwarded write waits until this node has applied it (decision 25). */
const ownApplyMs = 1000;

/** Maximum time for which a leader that has transferred its leadership may still answer the requests that it received before. */
const formerLeaderMs = 2000;

/** Headers that are not forwarded: hop-by-hop (RFC 9110 §7.6.1), or set again by the connection to the active node. */
const notForwarded = new Set([
  'connection',
  'expect',
  'forwarded',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-forwarded-for',
]);

/** Header with the client's address; trusted on the cluster port only. */
export const callerHeader = 'x-transitd-caller';
/** Header with the client's verified certificate; trusted on the cluster port only. */
export const certificateHeader = 'x-transitd-certificate';
/** Header with the name of the forwarding node, for the audit entries of the active node; trusted on the cluster port only. */
export const forwardedByHeader = 'x-transitd-forwarded-by';
/** Header of a refusal on the cluster port: the node is not the active one, or is transferring its leadership, and executed nothing. */
export const notExecutedHeader = 'x-transitd-not-executed';
/** Header that reports a leadership transfer on the cluster port. */
export const leadershipTransferredHeader = 'x-transitd-handed-over';

/**
 * Forwards whole requests to the active node. Sends no request twice: a failure after the first byte may have been processed is reported as
 * outcome unknown. Cuts all requests without an answer when the leader changes; after a transfer of leadership it does so a moment later,
 * because the former leader is probably alive and knows their outcomes.
 */
export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #inFlight = new Map<AbortController, Term>();

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /**
   * Cuts the requests to the former leader, which may never answer.
   * @param byTransfer - whether the former leader has transferred its leadership
   */
  leaderChanged({ byTransfer }: { readonly byTransfer: boolean }): void {
    const leader = this.#options.leader.present;
    const former = [...this.#inFlight].flatMap(([abort, term]) => (term === leader?.term ? [] : [abort]));
    if (former.length === 0) return;
    const cut = (): void => {
      for (const abort of former) if (this.#inFlight.has(abort)) abort.abort();
    };
    if (byTransfer) setTimeout(cut, formerLeaderMs).unref();
    else cut();
  }

  /**
   * Copies the active node's answer to `res`; returns its status.
   * @throws NoActiveNode, also if the answer to a request that changes nothing was lost; StoreError `outcome_unknown`;
   * LeadershipTransferred
   */
  async forward(
    req: IncomingMessage,
    res: ServerResponse,
    { url, caller, certificate, body, changes, endsLeadership = false, isSlow = false, traceparent, span }: ForwardOptions,
  ): Promise<number> {
    const leader = this.#options.leader.present;
    if (leader === undefined || leader.isSilent) throw new NoActiveNode(leader?.term ?? 0);
    const abort = new AbortController();
    const onClose = (): void => abort.abort();
    res.once('close', onClose);
    if (!endsLeadership) this.#inFlight.set(abort, leader.term);
    try {
      if (body === undefined && req.headers.expect !== undefined) res.writeContinue();
      const answer = await this.#options.client.request(leader.id, {
        ...targetOf(req.method ?? 'GET', url),
        headers: headersOf(req, body, { caller, certificate, self: this.#options.self, traceparent }),
        body: body ?? req,
        signal: abort.signal,
        timeoutMs: isSlow ? slowDeadlineMs : isLong(req, body) ? bodyDeadlineMs : deadlineMs,
      });
      this.#inFlight.delete(abort); // the outcome is known: a new leader must not abort the answer
      const refusal = refusalIn(answer, { term: leader.term, endsLeadership });
      if (refusal !== undefined) {
        answer.body.destroy();
        throw refusal;
      }
      const index = indexIn(answer.headers[indexHeader.toLowerCase()]);
      if (index !== undefined) await this.#applied(index, span);
      const { errored } = answer.body;
      if (errored !== null) throw errored; // the body broke during the wait, and nothing was sent to the caller yet
      const unread = body === undefined && !req.readableEnded && announcesBody(req);
      res.writeHead(answer.status, { ...answerHeaders(answer.headers), ...(unread && { connection: 'close' }) });
      await pipeline(answer.body, res, { end: !unread });
      if (unread) endAfterDrain(res);
      return answer.status;
    } catch (error) {
      if (res.headersSent) {
        res.destroy();
        return 502;
      }
      if (error instanceof LeadershipTransferred || error instanceof NoActiveNode) throw error;
      const isSent = !(error instanceof ClusterCallError && error.code === 'not_sent');
      if (!changes || !isSent) throw new NoActiveNode(leader.term);
      throw new StoreError('outcome_unknown', 'the active node received the request and did not answer', { cause: error });
    } finally {
      res.off('close', onClose);
      this.#inFlight.delete(abort);
    }
  }

  /** Waits until this node has applied the change that the active node made, at most for a second. */
  async #applied(index: ServiceIndex, forward: Span | undefined): Promise<void> {
    const span = forward?.child('apply');
    span?.set('transitd.raft.index', index.index);
    const isThere = await this.#options.reached(index, ownApplyMs);
    span?.end(!isThere);
  }
}

/** Returns the error for an answer that says that the request was not executed; undefined for every other answer. */
function refusalIn(
  { status, headers }: Pick<ClusterResponse, 'status' | 'headers'>,
  { term, endsLeadership }: { readonly term: Term; readonly endsLeadership: boolean },
): LeadershipTransferred | NoActiveNode | undefined {
  // This node was removed or runs on a copied disk. Its heartbeats and connections tell it so; its clients choose another node.
  if (status === 410 || status === 421) return new NoActiveNode(term);
  if (headers[leadershipTransferredHeader] !== undefined) return new LeadershipTransferred(term);
  return !endsLeadership && headers[notExecutedHeader] !== undefined ? new NoActiveNode(term) : undefined;
}

/** Whether the active node may queue the request because of its body. */
const isLong = (req: IncomingMessage, body: Buffer | undefined): boolean =>
  body === undefined ? announcesBody(req) : body.length > uncountedBytes;

function headersOf(
  { headers }: IncomingMessage,
  body: Buffer | undefined,
  {
    caller,
    certificate,
    self,
    traceparent,
  }: Pick<ForwardOptions, 'caller' | 'certificate' | 'traceparent'> & { readonly self: string },
): Record<string, string | string[]> {
  const forwarded: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !notForwarded.has(name) && !name.startsWith('x-transitd-')) forwarded[name] = value;
  }
  if (body !== undefined) forwarded['content-length'] = String(body.length);
  else if (headers['transfer-encoding'] !== undefined) forwarded['transfer-encoding'] = 'chunked';
  forwarded[callerHeader] = caller;
  if (certificate !== undefined) forwarded[certificateHeader] = clientCertificateText(certificate);
  forwarded[forwardedByHeader] = self;
  if (traceparent !== undefined) forwarded['traceparent'] = traceparent;
  return forwarded;
}

/** Rewrites LIST, which Node's HTTP parser does not know, as the equivalent GET. */
function targetOf(method: string, url: string): { readonly method: string; readonly path: string } {
  if (method !== 'LIST') return { method, path: url };
  const at = url.indexOf('?');
  return { method: 'GET', path: at === -1 ? `${url}?list=true` : `${url.slice(0, at)}?list=true&${url.slice(at + 1)}` };
}

function answerHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const answered: Record<string, string | string[]> = { 'strict-transport-security': strictTransportSecurity };
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !notForwarded.has(name) && name !== 'date') answered[name] = value;
  }
  return answered;
}
