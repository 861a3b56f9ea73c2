import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { announcesBody, indexHeader, indexIn, strictTransportSecurity, uncountedBytes } from '@transitd/http';
import type { LogIndex, NodeId, Term } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import { ClusterCallError, type ClusterClient } from './cluster-client.ts';
import { LeadershipTransferred, leadershipTransferredHeader } from './leadership-transferred.ts';

/** Who leads, as this node knows it. */
export interface Leader {
  readonly id: NodeId;
  readonly term: Term;
}

export interface ForwarderOptions {
  readonly client: Pick<ClusterClient, 'request'>;
  readonly clusterId: string;
  /** Another node than this one; undefined while none is known. */
  readonly leader: () => Leader | undefined;
  readonly reached: (index: LogIndex, withinMs: number) => Promise<boolean>;
  /** The name of this node. */
  readonly self: string;
}

export interface ForwardOptions {
  readonly url: string;
  readonly body: Buffer | undefined;
  readonly changes: boolean;
  readonly endsLeadership?: boolean;
  readonly isSlow?: boolean;
  /** Address of the caller. */
  readonly caller: string;
}

/** Until the head of the answer. */
const deadlineMs = 10_000;
/** The same where a body may be on its way: the active node has it wait for room, and cuts it when it arrives too slowly. */
const bodyDeadlineMs = 120_000;
/** The same for what may take minutes, such as a restore, its body included. */
const slowDeadlineMs = 30 * 60_000;
/** How long a forwarded write waits for this node's own copy of it (decision 25). */
const ownCopyMs = 1000;

/** Headers of one connection only (RFC 9110 §7.6.1), and what the way to the active node says by itself. */
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

/** Says from where the caller came; believed on the cluster port alone. */
export const callerHeader = 'x-transitd-caller';
/** Says by which node, for the audit entries of the node that decides; believed there alone too. */
export const forwardedByHeader = 'x-transitd-forwarded-by';

/**
 * Hands whole requests to the active node. None is ever sent twice: what has failed when its first byte may have been processed is
 * told as outcome unknown. All of them are cut when another node leads.
 */
export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #underWay = new Map<AbortController, Term>();

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /** The lead has changed: whoever led before may never answer. */
  leaderChanged(): void {
    const leader = this.#options.leader();
    for (const [abort, term] of this.#underWay) if (term !== leader?.term) abort.abort();
  }

  /**
   * Answers `res` with what the active node says.
   * @param url - path and query as they came
   * @param caller - address of whoever asked
   * @param body - the request's body where it was read already
   * @param changes - whether the request may change anything
   * @param endsLeadership - it may be this request by which another node comes to lead: it is not cut then
   * @param isSlow - it may take minutes
   * @param caller - its address, as this node believes it
   * @returns the status that was answered
   * @throws StoreError `not_leader` while nobody leads; `outcome_unknown`; LeadershipTransferred
   */
  async forward(
    req: IncomingMessage,
    res: ServerResponse,
    { url, caller, body, changes, endsLeadership = false, isSlow = false }: ForwardOptions,
  ): Promise<number> {
    const leader = this.#options.leader();
    if (leader === undefined) throw noLeader();
    const abort = new AbortController();
    const gone = (): void => abort.abort();
    res.once('close', gone);
    if (!endsLeadership) this.#underWay.set(abort, leader.term);
    try {
      if (body === undefined && req.headers.expect !== undefined) res.writeContinue();
      const answer = await this.#options.client.request(leader.id, {
        ...targetOf(req.method ?? 'GET', url),
        headers: headersOf(req, body, { caller, self: this.#options.self }),
        body: body ?? req,
        signal: abort.signal,
        timeoutMs: isSlow ? slowDeadlineMs : isLong(req, body) ? bodyDeadlineMs : deadlineMs,
      });
      // This node was removed, or is a copy: it learns so by its echoes and its connections, and its callers find another one.
      if (answer.status === 410 || answer.status === 421) {
        answer.body.destroy();
        throw new ClusterCallError('not_sent', 'the active node knows this node no more');
      }
      if (answer.headers[leadershipTransferredHeader] !== undefined) {
        answer.body.destroy();
        throw new LeadershipTransferred(leader.term);
      }
      const index = indexIn(answer.headers[indexHeader.toLowerCase()], this.#options.clusterId);
      if (index !== undefined) await this.#options.reached(index, ownCopyMs);
      this.#underWay.delete(abort); // the answer is there: another leader changes nothing about it
      const unread = body === undefined && !req.readableEnded && announcesBody(req);
      res.writeHead(answer.status, { ...answerHeaders(answer.headers), ...(unread && { connection: 'close' }) });
      if (unread) req.resume(); // what still comes of it is read away, or closing would reset the answer out of the caller's hands
      await pipeline(answer.body, res);
      return answer.status;
    } catch (error) {
      if (res.headersSent) {
        res.destroy();
        return 502;
      }
      if (error instanceof LeadershipTransferred) throw error;
      if (error instanceof ClusterCallError && error.code === 'not_sent') throw noLeader();
      if (changes)
        throw new StoreError('outcome_unknown', 'the active node took the request and did not answer', { cause: error });
      throw noLeader();
    } finally {
      res.off('close', gone);
      this.#underWay.delete(abort);
    }
  }
}

/** A body that the active node may have to make room for. */
const isLong = (req: IncomingMessage, body: Buffer | undefined): boolean =>
  body === undefined ? announcesBody(req) : body.length > uncountedBytes;

function headersOf(
  { headers }: IncomingMessage,
  body: Buffer | undefined,
  { caller, self }: { readonly caller: string; readonly self: string },
): Record<string, string | string[]> {
  const forwarded: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !notForwarded.has(name) && !name.startsWith('x-transitd-')) forwarded[name] = value;
  }
  if (body !== undefined) forwarded['content-length'] = String(body.length);
  else if (headers['transfer-encoding'] !== undefined) forwarded['transfer-encoding'] = 'chunked';
  forwarded[callerHeader] = caller;
  forwarded[forwardedByHeader] = self;
  return forwarded;
}

/** Node's parser knows no LIST: on the cluster port it goes as the GET that means the same. */
function targetOf(method: string, url: string): { readonly method: string; readonly path: string } {
  if (method !== 'LIST') return { method, path: url };
  const at = url.indexOf('?');
  return { method: 'GET', path: at === -1 ? `${url}?list=true` : `${url.slice(0, at)}?list=true&${url.slice(at + 1)}` };
}

const noLeader = (): StoreError => new StoreError('not_leader', 'no active node answers');

function answerHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const answered: Record<string, string | string[]> = { 'strict-transport-security': strictTransportSecurity };
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !notForwarded.has(name) && name !== 'date') answered[name] = value;
  }
  return answered;
}
