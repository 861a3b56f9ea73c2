import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Allowance, allows, type Principal, RateLimited, withinCidrs } from '@transitd/access';
import { StoreError } from '@transitd/storage-fsm';
import type { Call, GuardedOperation, OpenOperation, Operation, Verb } from '../api/operation.ts';
import type { Logger } from '../log.ts';
import type { Metrics } from '../metrics.ts';
import type { Node, Service } from '../node/node.ts';
import { announcesBody, readBody } from './body.ts';
import { callerAddress } from './caller-address.ts';
import { wrapReply } from './envelope.ts';
import { errorReply, isRefusal, permissionDenied, RequestError } from './error-answer.ts';
import { type Body, parseBody, queryBody } from './json.ts';
import type { RequestPath } from './path.ts';
import { type Reply, sendReply } from './reply.ts';
import { tokenOf, wrapTtlOf } from './token-header.ts';
import { unavailable } from './unavailable.ts';

/** What is read of the body of a caller without a valid token, in bytes: enough to tell malformed JSON. */
const anonymousBodyBytesMax = 64 * 1024;
const bodyDeadlineMs = 30_000;

export interface ServeOptions {
  readonly node: Node;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly bodyBytesMax: number;
  /** Whose `X-Forwarded-For` is believed: blocks of addresses. */
  readonly trustedProxies?: readonly string[];
}

/** A request whose operation is known. */
export interface Routed {
  readonly path: RequestPath;
  readonly verb: Verb;
  readonly operation: Operation;
  readonly params: Readonly<Record<string, string>>;
}

/**
 * The one pipeline, for requests from the data-plane look-up and from Express alike. The order is the specification's: sealed,
 * token, body, policy, operation. So without a valid token no large body is ever read, and a sealed node looks at no token.
 */
export class Pipeline {
  readonly #options: ServeOptions;

  constructor(options: ServeOptions) {
    this.#options = options;
  }

  /** Answers the request; every failure becomes an answer. */
  async serve(req: IncomingMessage, res: ServerResponse, routed: Routed): Promise<void> {
    const { metrics } = this.#options;
    const begun = performance.now();
    metrics.inFlight.inc();
    let reply: Reply;
    try {
      reply = await this.#reply(req, res, routed);
    } catch (error) {
      reply = this.failure(error);
    }
    const ms = performance.now() - begun;
    metrics.inFlight.dec();
    metrics.requestMs.observe(ms);
    metrics.route(routed.operation.name).observe(ms);
    metrics.responded(reply.status);
    sendReply(res, reply, { head: false });
  }

  /** The answer to what was thrown. What no table knows is a fault of ours: 500, and logged without anything of the request. */
  failure(error: unknown): Reply {
    if (error instanceof RateLimited) return this.#tooOften(error);
    if (isRefusal(error)) return errorReply(error);
    this.#options.log.error(
      {
        err:
          error instanceof Error ? { name: error.name, message: error.message, stack: error.stack } : { message: String(error) },
      },
      'internal error',
    );
    return { status: 500, body: '{"errors":["internal error"]}\n' };
  }

  #tooOften(error: RateLimited): Reply {
    const reply = errorReply(error);
    const shows = this.#options.node.service?.quotas.config.responseHeaders === true;
    return shows ? { ...reply, headers: { ...reply.headers, ...allowanceHeaders({ ...error, remaining: 0 }) } } : reply;
  }

  async #reply(req: IncomingMessage, res: ServerResponse, routed: Routed): Promise<Reply> {
    const { service } = this.#options.node;
    const address = callerAddress(req, this.#options.trustedProxies ?? []);
    // Before anything else is done for the request: a caller that asks too often is no work.
    const allowance = service?.quotas.admit(routed.path.path, address);
    const { operation } = routed;
    const replying =
      operation.access === 'open'
        ? this.#openReply(req, res, routed, operation, address)
        : this.#guardedReply(req, res, routed, operation, address);
    if (allowance === undefined || service?.quotas.config.responseHeaders !== true) return replying;
    const reply = await replying.catch((error: unknown) => this.failure(error));
    return { ...reply, headers: { ...reply.headers, ...allowanceHeaders(allowance) } };
  }

  async #openReply(
    req: IncomingMessage,
    res: ServerResponse,
    { path, verb, params }: Routed,
    operation: OpenOperation,
    address: string,
  ): Promise<Reply> {
    const { node } = this.#options;
    const wrapTtlS = wrapTtlOf(req.headers);
    // What is only read here is no secret.
    if (wrapTtlS > 0 && operation.wraps !== true && verb === 'POST')
      throw new RequestError('invalid_request', 'this answer cannot be wrapped');
    const { service } = node;
    if (operation.wraps === true) service?.wrapping.checkTtl(wrapTtlS);
    const body = await this.#body(req, res, verb, path, anonymousBodyBytesMax);
    const asked = { verb, path: path.path, params, query: path.query, body, address };
    const reply = await operation.run(node, asked, tokenOf(req.headers));
    return service === undefined || wrapTtlS === 0 || operation.wraps !== true
      ? reply
      : wrapped(service, reply, { path: path.path, wrapTtlS });
  }

  async #guardedReply(
    req: IncomingMessage,
    res: ServerResponse,
    { path, verb, params }: Routed,
    operation: GuardedOperation,
    address: string,
  ): Promise<Reply> {
    const { node } = this.#options;
    const { service } = node;
    if (service === undefined) {
      // An unsealed node that is still loading what serves is not sealed: it must not say that it were.
      if (operation.whenSealed !== undefined && node.sealStatus.sealed) return operation.whenSealed;
      throw unavailable(node);
    }
    const token = tokenOf(req.headers);
    const { epoch } = service.tokens;
    const found = token === undefined ? undefined : service.tokens.authenticate(token);
    let principal = found instanceof Promise ? await found : found;
    // Away from where it is bound to, a token is as good as none.
    if (principal !== undefined && !withinCidrs(principal.record.boundCidrs, address)) principal = undefined;
    if (token === undefined || principal === undefined) {
      // Malformed JSON is told before the missing token, as clients know it; a longer body stays unread and ends the connection.
      await this.#body(req, res, verb, path, anonymousBodyBytesMax).catch(ignoreTooLarge);
      throw permissionDenied();
    }
    const wrapTtlS = wrapTtlOf(req.headers);
    service.wrapping.checkTtl(wrapTtlS);
    const body = await this.#body(req, res, verb, path, this.#options.bodyBytesMax);
    const asked = { verb, path: path.path, params, query: path.query, body, address, ...(wrapTtlS > 0 && { wrapTtlS }) };
    // While the body came in, the token may have been revoked or its policies changed: what was answered meanwhile is in force.
    if (service.tokens.epoch !== epoch || principal.goodUntilMs <= Date.now())
      principal = await service.tokens.authenticate(token);
    if (principal === undefined) throw permissionDenied();
    // A use counts even when the policies refuse it.
    if (principal.record.usesLeft !== 0) principal = await service.registry.spend(principal);
    if (principal === undefined) throw permissionDenied();
    if (!mayRun(principal, operation, asked)) throw permissionDenied();
    // Between the look at the state and this line a body was read: the node may be sealed by now.
    if (node.service !== service) throw new StoreError('sealed', 'transitd is sealed');
    const reply = await operation.run({ node, service, principal, token }, asked);
    return wrapTtlS === 0 ? reply : wrapped(service, reply, { path: path.path, wrapTtlS });
  }

  async #body(req: IncomingMessage, res: ServerResponse, verb: Verb, { query }: RequestPath, bytesMax: number): Promise<Body> {
    const bytes = announcesBody(req) ? await readBody(req, res, { bytesMax, deadlineMs: bodyDeadlineMs }) : undefined;
    if (verb === 'GET' || verb === 'LIST') return queryBody(query);
    return bytes === undefined ? emptyBody : parseBody(bytes, req.headers['content-type']);
  }
}

/**
 * The answer, or where it waits. One that cannot be wrapped is not given at all, and the token that it would have shown, and which nobody
 * has seen, is revoked.
 */
async function wrapped(
  { wrapping, registry }: Service,
  reply: Reply,
  { path, wrapTtlS }: { readonly path: string; readonly wrapTtlS: number },
): Promise<Reply> {
  const { status, body, issued } = reply;
  if (body === undefined || reply.headers?.['Content-Type'] !== undefined) return reply;
  try {
    return wrapReply(
      status,
      await wrapping.wrap({ status, body, path, ttlS: wrapTtlS, wrappedAccessor: issued?.accessor ?? '' }),
    );
  } catch (error) {
    if (issued !== undefined) await registry.revoke({ token: issued.token }).catch(() => false); // it goes with its time
    throw error;
  }
}

const allowanceHeaders = ({ limit, remaining, resetS }: Allowance): Readonly<Record<string, string>> => ({
  'X-Ratelimit-Limit': String(limit),
  'X-Ratelimit-Remaining': String(remaining),
  'X-Ratelimit-Reset': String(resetS),
});

function ignoreTooLarge(error: unknown): void {
  if (!(error instanceof RequestError) || error.code !== 'body_too_large') throw error;
}

const emptyBody: Body = Object.freeze(Object.create(null));
const verbCapability = { GET: 'read', LIST: 'list', DELETE: 'delete', POST: 'update' } as const;

function mayRun(
  principal: Principal,
  { capability, sudo, anyRights }: GuardedOperation,
  { verb, path, body, wrapTtlS = 0 }: Call,
): boolean {
  if (anyRights === true) return true;
  if (sudo === true && !allows(principal, 'sudo', verb === 'LIST' ? `${path}/` : path)) return false;
  if (capability !== undefined) return allows(principal, capability, path, body, wrapTtlS);
  const mayCreate = (): boolean => verb === 'POST' && allows(principal, 'create', path, body, wrapTtlS);
  return allows(principal, verbCapability[verb], path, body, wrapTtlS) || mayCreate();
}
