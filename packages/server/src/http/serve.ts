import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Allowance, allows, type Principal, plainAddress, RateLimited, withinCidrs } from '@transitd/access';
import { StoreError } from '@transitd/storage-fsm';
import {
  type Call,
  type GuardedOperation,
  type OpenOperation,
  type Operation,
  type Verb,
  type Where,
  whereOf,
} from '../api/operation.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import { Exchange } from '../audit/exchange.ts';
import { callerHeader, forwardedByHeader } from '../cluster/forwarder.ts';
import { handedOverHeader, LeadHandedOver } from '../cluster/lead-handed-over.ts';

import type { Logger } from '../log.ts';
import type { Metrics } from '../metrics.ts';
import type { Standing } from '../node/answering.ts';
import type { Node } from '../node/node.ts';
import type { Service } from '../node/service.ts';
import { announcesBody, readBody } from './body.ts';
import { callerAddress } from './caller-address.ts';
import { contentOf } from './content.ts';
import { wrapReply } from './envelope.ts';
import { errorReply, isRefusal, permissionDenied, RequestError } from './error-answer.ts';
import { type Body, parseBody, queryBody } from './json.ts';
import type { Limits } from './limits.ts';
import type { RequestPath } from './path.ts';
import { type Reply, sendReply } from './reply.ts';
import { indexHeaders, indexWanted } from './service-index.ts';
import { tokenOf, wrapTtlOf } from './token-header.ts';
import { unavailable } from './unavailable.ts';

/** What is read of the body of a caller without a valid token, in bytes: enough to tell malformed JSON. */
const anonymousBodyBytesMax = 64 * 1024;
const bodyDeadlineMs = 30_000;
/** Requests of callers unknown here that are handed on at a time. */
const strangersMax = 32;
/** How long a slow operation may leave its caller without a byte. */
const slowMsMax = 30 * 60_000;

export interface ServeOptions {
  readonly node: Node;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly bodyBytesMax: number;
  /** What the node takes on at a time, by this way and all others together; absent for anything. */
  readonly limits?: Limits | undefined;
  /** Where requests and answers are recorded; absent for nowhere. */
  readonly audit?: AuditTrail | undefined;
  /** Whose `X-Forwarded-For` is believed: blocks of addresses. */
  readonly trustedProxies?: readonly string[];
  /** These requests come from another node, which took them from their callers: they are handed to nobody else. */
  readonly forwarded?: true;
}

/** A request whose operation is known. */
export interface Routed {
  readonly path: RequestPath;
  /** As it came. */
  readonly url: string;
  readonly verb: Verb;
  readonly operation: Operation;
  readonly params: Readonly<Record<string, string>>;
}

/** A request with its kind of operation, and where it comes from. */
type Asked<Kind extends Operation> = Routed & {
  readonly operation: Kind;
  readonly address: string;
  /** Where it is recorded; undefined where it is not. */
  readonly exchange: Exchange | undefined;
};

/** What this node may answer a request from. `none`: it has to be handed to the active node. */
type Source = Standing | 'none' | 'here';

/** The request is for the active node; its body, where it was read already. */
class Forward {
  readonly body: Buffer | undefined;
  /** Nobody here knows the caller. */
  readonly ofStranger: boolean;
  constructor(body?: Buffer, { ofStranger = false } = {}) {
    this.body = body;
    this.ofStranger = ofStranger;
  }
}

/**
 * The one pipeline, for requests from the data-plane look-up and from Express alike. The order is the specification's: sealed,
 * token, body, policy, operation. So without a valid token no large body is ever read, and a sealed node looks at no token.
 */
export class Pipeline {
  readonly #options: ServeOptions;
  readonly #kept = new WeakMap<IncomingMessage, Buffer>();
  #strangers = 0;

  constructor(options: ServeOptions) {
    this.#options = options;
  }

  /** Answers the request; every failure becomes an answer. */
  async serve(req: IncomingMessage, res: ServerResponse, routed: Routed): Promise<void> {
    const { metrics } = this.#options;
    const begun = performance.now();
    metrics.inFlight.inc();
    let answer: Reply | number;
    try {
      answer = await this.#answerOrForward(req, res, routed);
    } catch (error) {
      answer = this.failure(error);
    }
    const ms = performance.now() - begun;
    metrics.inFlight.dec();
    metrics.requestMs.observe(ms);
    metrics.route(routed.operation.name).observe(ms);
    metrics.responded(typeof answer === 'number' ? answer : answer.status);
    if (typeof answer !== 'number') sendReply(res, answer, { head: false });
    this.#options.limits?.bodies.answered(res);
  }

  /** The answer, or the status with which another node answered. */
  async #answerOrForward(req: IncomingMessage, res: ServerResponse, routed: Routed, handovers = 0): Promise<Reply | number> {
    const { node, forwarded } = this.#options;
    try {
      const answer = await this.#answer(req, res, routed);
      if (!(answer instanceof Forward)) return answer;
      return await (answer.ofStranger ? this.#forwardStranger(req, res, routed) : this.#forward(req, res, routed, answer.body));
    } catch (error) {
      if (!(error instanceof LeadHandedOver)) throw error;
      if (forwarded === true) return handedOver; // the node that took the request asks the next one
      if (handovers < handoversMax && (await node.answering.isLedAfter(error.term)))
        return this.#answerOrForward(req, res, routed, handovers + 1);
      throw new StoreError('not_leader', 'the lead was handed over, and nothing else was done: no active node answers');
    }
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
    this.#options.metrics.limited.inc();
    const reply = errorReply(error);
    const shows = this.#options.node.service?.quotas.config.responseHeaders === true;
    return shows ? { ...reply, headers: { ...reply.headers, ...allowanceHeaders({ ...error, remaining: 0 }) } } : reply;
  }

  async #answer(req: IncomingMessage, res: ServerResponse, routed: Routed): Promise<Reply | Forward> {
    const { service } = this.#options.node;
    const address = this.#addressOf(req);
    // Before anything else is done for the request: a caller that asks too often is no work.
    const allowance = service?.quotas.admit(routed.path.path, address);
    const { operation } = routed;
    const exchange = this.#exchangeFor(req, routed, address);
    const decided =
      operation.access === 'open'
        ? this.#answerOpen(req, res, { ...routed, operation, address, exchange })
        : this.#answerGuarded(req, res, { ...routed, operation, address, exchange });
    const answering = exchange === undefined ? decided : this.#recorded(decided, exchange, service);
    if (allowance === undefined || service?.quotas.config.responseHeaders !== true) return answering;
    const answer = await answering.catch((error: unknown) => {
      if (error instanceof LeadHandedOver) throw error;
      return this.failure(error);
    });
    return answer instanceof Forward ? answer : { ...answer, headers: { ...answer.headers, ...allowanceHeaders(allowance) } };
  }

  /** What this node decides while it is unsealed is recorded, with few exceptions. */
  #exchangeFor(req: IncomingMessage, { operation, verb, path }: Routed, address: string): Exchange | undefined {
    const { audit: trail, node, forwarded } = this.#options;
    const { service } = node;
    if (trail === undefined || service === undefined || 'unaudited' in operation) return undefined;
    const { remoteAddress, remotePort } = req.socket;
    const isDirect = forwarded !== true && plainAddress(remoteAddress ?? '') === address;
    const forwarder = forwarded === true ? req.headers[forwardedByHeader] : undefined;
    return new Exchange({
      trail,
      service,
      verb,
      path: path.path,
      address,
      port: isDirect ? remotePort : undefined,
      forwardedFrom: typeof forwarder === 'string' ? forwarder : undefined,
    });
  }

  /** Nothing that this node has decided leaves before both entries of it are written; what another decides is recorded there. */
  async #recorded(
    deciding: Promise<Reply | Forward>,
    exchange: Exchange,
    service: Service | undefined,
  ): Promise<Reply | Forward> {
    let answer: Reply | Forward;
    try {
      answer = await deciding;
    } catch (error) {
      if (isAuditFailure(error) || (!exchange.begun && isUndecided(error))) throw error;
      if (error instanceof LeadHandedOver) {
        await exchange.end(handedOver);
        throw error;
      }
      answer = this.failure(error);
    }
    if (answer instanceof Forward) return answer;
    const { issued, stream } = answer;
    try {
      return await exchange.end(answer);
    } catch (error) {
      stream?.destroy();
      if (issued !== undefined) await service?.registry.revoke({ token: issued.token }).catch(() => false); // nobody has seen it
      throw error;
    }
  }

  async #answerOpen(req: IncomingMessage, res: ServerResponse, asked: Asked<OpenOperation>): Promise<Reply | Forward> {
    const { path, verb, params, operation, address, exchange } = asked;
    const { node } = this.#options;
    const wrapTtlS = wrapTtlOf(req.headers);
    exchange?.wraps(wrapTtlS);
    // What is only read here is no secret.
    if (wrapTtlS > 0 && operation.wraps !== true && verb === 'POST')
      throw new RequestError('invalid_request', 'this answer cannot be wrapped');
    const { service } = node;
    if (operation.wraps === true && service === undefined) throw unavailable(node);
    const where = whereOf(operation, verb);
    service?.quotas.admitToken(path.path, undefined, address);
    if (where !== 'here' && (await this.#source(req, where)) === 'none') return new Forward();
    if (operation.wraps === true) service?.wrapping.checkTtl(wrapTtlS);
    const bytes = await this.#bytes(req, res, anonymousBodyBytesMax);
    const work = this.#options.limits?.workOf(operation, where);
    const turn = work?.enter(res);
    if (turn !== undefined) await turn;
    try {
      const call = { verb, path: path.path, params, query: path.query, body: await bodyOf(bytes, req, asked), address };
      const token = tokenOf(req.headers);
      exchange?.from(token);
      await exchange?.begin(call.body);
      // What began while the node did not serve is recorded nowhere; and since the look at the state a body was read.
      if (where !== 'here' && node.service !== service) throw new StoreError('sealed', 'transitd is sealed');
      const reply = await operation.run(node, call, token);
      return service === undefined || wrapTtlS === 0 || operation.wraps !== true
        ? reply
        : await wrapped(service, reply, { path: path.path, wrapTtlS });
    } finally {
      work?.leave();
    }
  }

  async #answerGuarded(req: IncomingMessage, res: ServerResponse, routed: Asked<GuardedOperation>): Promise<Reply | Forward> {
    const { path, verb, operation, params, address, exchange } = routed;
    const { node } = this.#options;
    const { service } = node;
    if (service === undefined) {
      // An unsealed node that is still loading what serves is not sealed: it must not say that it were.
      if (operation.whenSealed !== undefined && node.sealStatus.sealed) return operation.whenSealed;
      throw unavailable(node);
    }
    const wrapTtlS = wrapTtlOf(req.headers);
    if (wrapTtlS > 0 && operation.isSlow) throw new RequestError('invalid_request', 'this answer cannot be wrapped');
    const where = wrapTtlS > 0 ? 'leader' : whereOf(operation, verb); // what waits, wrapped, waits in the log
    const token = tokenOf(req.headers);
    const { epoch } = service.tokens;
    const found = token === undefined ? undefined : service.tokens.authenticate(token);
    let principal = found instanceof Promise ? await found : found;
    // Away from where it is bound to, a token is as good as none.
    if (principal !== undefined && !withinCidrs(principal.record.boundCidrs, address)) principal = undefined;
    service.quotas.admitToken(path.path, principal?.id, address);
    // Nobody waits, and no place at the active node is taken, for a request without a token.
    const source = token === undefined ? 'here' : await this.#source(req, where, { waits: principal !== undefined });
    if (source === 'reader') exchange?.waitForAnswer();
    exchange?.from(token, principal);
    exchange?.wraps(wrapTtlS);
    if (token === undefined || principal === undefined) {
      // A token that this node does not know yet may have been made a moment ago.
      if (source === 'reader' || source === 'none') return new Forward(undefined, { ofStranger: true });
      if (operation.streamsBody) throw permissionDenied();
      // Malformed JSON is told before the missing token, as clients know it; a longer body stays unread and ends the connection.
      const bytes = await this.#bytes(req, res, anonymousBodyBytesMax).catch(ignoreTooLarge);
      await bodyOf(bytes, req, routed);
      throw permissionDenied();
    }
    if (source === 'none') return new Forward(operation.endsLead && (await this.#keptBytes(req, res)));
    service.wrapping.checkTtl(wrapTtlS);
    const bytes = await this.#bytesFor(operation, req, res);
    if (operation.isSlow) res.setTimeout(slowMsMax);
    // All of the request is here: what waits for a caller takes nobody's place.
    const work = this.#options.limits?.workOf(operation, where);
    const turn = work?.enter(res);
    if (turn !== undefined) await turn;
    try {
      const run = async (): Promise<Reply> => {
        const body = bodyOf(bytes, req, routed);
        const content = operation.streamsBody ? contentOf(req, res) : undefined;
        const asked = {
          verb,
          path: path.path,
          params,
          query: path.query,
          body: body instanceof Promise ? await body : body,
          address,
          ...(wrapTtlS > 0 && { wrapTtlS }),
          ...(content && { content }),
        };
        await exchange?.begin(asked.body);
        // Where a mount was removed or has moved while the body came in, what was answered meanwhile is in force.
        if (service.mounts.changing !== undefined) await service.mounts.changing;
        // While the body came in, the token may have been revoked or its policies changed: what was answered meanwhile is in force.
        if (service.tokens.epoch !== epoch || (principal !== undefined && principal.goodUntilMs <= Date.now()))
          principal = await service.tokens.authenticate(token);
        if (principal === undefined) throw permissionDenied();
        // A use counts even when the policies refuse it.
        if (principal.record.usesLeft !== 0) principal = await service.registry.spend(principal);
        if (principal === undefined) throw permissionDenied();
        if (!mayRun(principal, operation, asked)) throw permissionDenied();
        // Between the look at the state and this line a body was read: the node may be sealed by now.
        if (node.service !== service) throw new StoreError('sealed', 'transitd is sealed');
        if (exchange !== undefined && source === 'active' && !(await this.#stillLeads())) throw notActive();
        const reply = await operation.run({ node, service, principal, token }, asked);
        return wrapTtlS === 0 ? reply : wrapped(service, reply, { path: path.path, wrapTtlS });
      };
      // The body may have taken long: what was revoked elsewhere meanwhile is in force here too.
      if (!(await this.#isStill(source))) {
        if (this.#options.forwarded === true) throw new StoreError('not_leader', 'this node is not the active one any more');
        return new Forward(operation.streamsBody ? undefined : (bytes ?? nothing));
      }
      if (source === 'reader') return await this.#asReader(run, bytes, exchange);
      const reply = await run();
      const adds = operation.adds === true || where !== 'leader';
      const tells = where === 'leader' || (operation.mayWrite === true && this.#options.forwarded === true);
      return tells ? await this.#settled(reply, { adds }) : reply;
    } finally {
      work?.leave();
    }
  }

  /** Whether this node may still answer from what it could when it began to read. */
  async #isStill(source: Source): Promise<boolean> {
    const { answering } = this.#options.node;
    if (source === 'here') return true;
    if (source === 'reader') return answering.standing !== undefined;
    return answering.standing === 'active' || (answering.active && (await answering.leads()));
  }

  /** From what this request may be answered; waits for the state that its caller has seen elsewhere. @throws RequestError, StoreError */
  async #source(req: IncomingMessage, where: Where, { waits = true } = {}): Promise<Source> {
    const { node, forwarded } = this.#options;
    if (where === 'here') return 'here';
    const { clusterId } = node.answering;
    const index = clusterId === undefined ? undefined : indexWanted(req.headers, clusterId);
    const isThere = index === undefined || (waits && (await node.answering.reached(index)));
    let source: Source = node.answering.standing ?? 'none';
    // The active node without a lease (it has just begun, or was paused) asks the others whether it still leads.
    if (source === 'none' && node.active && (await node.answering.leads())) source = 'active';
    if (source === 'active' && !isThere && waits)
      throw new RequestError('index_not_reached', 'the active node itself has not reached the index that is asked for');
    if (source === 'reader' && (!isThere || where === 'leader' || asksForActive(req.headers))) source = 'none';
    // The node that handed the request on may know of the new lead before it is ready.
    if (source === 'none' && forwarded === true && (await node.answering.begins())) source = 'active';
    if (source === 'none' && (forwarded === true || !node.answering.forwards)) throw notActive();
    return source;
  }

  /** Whether the active node is that still; since it was asked before, an entry was written. */
  async #stillLeads(): Promise<boolean> {
    const { answering } = this.#options.node;
    return answering.standing === 'active' || (await answering.leads());
  }

  /**
   * A replica answers what succeeds, as long as it is fresh enough when the answer is ready. What it would refuse is asked of the
   * active node, which may know more: a key that was made, a right that was given a moment ago.
   */
  async #asReader(run: () => Promise<Reply>, body: Buffer | undefined, exchange?: Exchange): Promise<Reply | Forward> {
    const { node } = this.#options;
    try {
      const reply = await run();
      if (reply.status < 400 && node.answering.standing !== undefined) {
        if (exchange === undefined) return reply;
        const recorded = await exchange.end(reply, { isDone: node.active });
        if (node.answering.standing !== undefined) return recorded; // writing took its time
      }
    } catch (error) {
      if (isAuditFailure(error)) throw error;
      // A node that has begun to lead meanwhile may have proposed something: that is never done again elsewhere.
      if (!isRefusal(error) || error.code === 'outcome_unknown') throw error;
    }
    return new Forward(body ?? nothing);
  }

  /** A change is answered when no node serves what was before it, and tells the index that holds it. */
  async #settled(reply: Reply, { adds }: { readonly adds: boolean }): Promise<Reply> {
    const { node } = this.#options;
    const index = await node.answering.settled({ adds: adds || reply.status >= 400 });
    return index === undefined ? reply : { ...reply, headers: { ...reply.headers, ...indexHeaders(index) } };
  }

  #forward(
    req: IncomingMessage,
    res: ServerResponse,
    { url, verb, operation }: Routed,
    body: Buffer | undefined,
  ): Promise<number> {
    return this.#options.node.answering.forward(req, res, {
      url,
      caller: this.#addressOf(req),
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

  /** As the node says that has taken the request; on its own listeners a caller's word counts for nothing. */
  #addressOf(req: IncomingMessage): string {
    const { forwarded, trustedProxies = [] } = this.#options;
    const told = forwarded === true ? req.headers[callerHeader] : undefined;
    return typeof told === 'string' ? told : callerAddress(req, trustedProxies);
  }

  async #bytesFor(operation: GuardedOperation, req: IncomingMessage, res: ServerResponse): Promise<Buffer | undefined> {
    if (operation.streamsBody) return undefined;
    return operation.endsLead ? this.#keptBytes(req, res) : this.#bytes(req, res, this.#options.bodyBytesMax);
  }

  /** The body of a request that may be asked more than once for it. */
  async #keptBytes(req: IncomingMessage, res: ServerResponse): Promise<Buffer> {
    const bytes = this.#kept.get(req) ?? (await this.#bytes(req, res, anonymousBodyBytesMax)) ?? nothing;
    this.#kept.set(req, bytes);
    return bytes;
  }

  async #bytes(req: IncomingMessage, res: ServerResponse, bytesMax: number): Promise<Buffer | undefined> {
    if (!announcesBody(req)) return undefined;
    return readBody(req, res, { bytesMax, deadlineMs: bodyDeadlineMs, memory: this.#options.limits?.bodies });
  }
}

const notActive = (): StoreError => new StoreError('not_leader', 'this node is not the active one');

const isAuditFailure = (error: unknown): boolean => error instanceof RequestError && error.code === 'audit_failed';

/** What a node says that is not the one to decide, or that has looked at nothing of the request. */
const isUndecided = (error: unknown): boolean =>
  error instanceof LeadHandedOver ||
  (isRefusal(error) &&
    ['index_not_reached', 'leader_changed', 'not_leader', 'overloaded', 'rate_limited', 'sealed', 'stopped'].includes(
      error.code,
    ));

/** Nothing was done but that: the node that reads this asks whoever leads next. */
const handedOver: Reply = {
  status: 503,
  body: '{"errors":["the lead was handed over"]}\n',
  headers: { [handedOverHeader]: '1' },
};
/** A lead that goes back and forth more often than that is no lead. */
const handoversMax = 3;

function bodyOf(bytes: Buffer | undefined, { headers }: IncomingMessage, { verb, path }: Routed): Body | Promise<Body> {
  if (verb === 'GET' || verb === 'LIST') return queryBody(path.query);
  return bytes === undefined ? emptyBody : parseBody(bytes, headers['content-type']);
}

/** The caller insists on the active node's answer. */
const asksForActive = (headers: IncomingMessage['headers']): boolean =>
  (headers['x-service-forward'] || headers['x-vault-forward']) === 'active-node';

const nothing = Buffer.alloc(0);

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

function ignoreTooLarge(error: unknown): undefined {
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
