import type { IncomingMessage, ServerResponse } from 'node:http';
import { callerGroup, type Principal, withinCidrs } from '@transitd/access';
import type { Exchange } from '@transitd/audit';
import { LeadershipTransferred } from '@transitd/cluster';
import {
  contentOf,
  indexHeaders,
  permissionDenied,
  type Reply,
  RequestError,
  sendReply,
  tokenOf,
  turns,
  unavailable,
  wrapTtlOf,
} from '@transitd/http';
import type { Services } from '@transitd/node';
import { StoreError } from '@transitd/storage-fsm';
import {
  type Call,
  type GuardedOperation,
  type OpenOperation,
  type Operation,
  type Where,
  whereOf,
} from '../operation/operation.ts';
import { mayRun, withinPage } from '../operation/rights.ts';
import { addressOf } from './caller-address.ts';
import { isRefusal } from './error-answer.ts';
import { failureReply, withAllowance } from './failure.ts';
import { Forward, Forwarding } from './forwarding.ts';
import { exchangeOf, isAuditFailure, recorded } from './recording.ts';
import { bodyOf, ignoreTooLarge, RequestBodies } from './request-body.ts';
import type { Asked, Routed, ServeOptions } from './routed.ts';
import { isStill, notActive, type Source, sourceOf, stillLeads } from './source.ts';
import { wrapped } from './wrapped.ts';

/** How long a slow operation may leave its caller without a byte. */
const slowMsMax = 30 * 60_000;

/** A request whose caller is known, and whose body is here unless it is taken as it comes. */
interface Admitted {
  readonly services: Services;
  readonly token: string;
  readonly principal: Principal;
  /** Of the tokens and policies that the caller was found by. */
  readonly epoch: number;
  readonly source: Source;
  readonly where: Where;
  readonly wrapTtlS: number;
  readonly bytes: Buffer | undefined;
}

/**
 * The one pipeline, for requests that a look-up or Express found the operation of. The order is the specification's: sealed,
 * token, body, policy, operation. So without a valid token no large body is ever read, and a sealed node looks at no token.
 */
export class Pipeline {
  readonly #options: ServeOptions;
  readonly #bodies: RequestBodies;
  readonly #forwarding: Forwarding;

  constructor(options: ServeOptions) {
    this.#options = options;
    this.#bodies = new RequestBodies(options);
    this.#forwarding = new Forwarding(options);
  }

  /** Answers the request; every failure becomes an answer. */
  async serve(req: IncomingMessage, res: ServerResponse, routed: Routed): Promise<void> {
    const { metrics } = this.#options;
    const begun = performance.now();
    metrics.inFlight.inc();
    let answer: Reply | number;
    try {
      answer = await this.#forwarding.answerOrForward(req, res, routed, () => this.#answer(req, res, routed));
    } catch (error) {
      answer = this.#failure(error);
    }
    const ms = performance.now() - begun;
    metrics.inFlight.dec();
    metrics.requestMs.observe(ms);
    metrics.route(routed.operation.name).observe(ms);
    metrics.responded(typeof answer === 'number' ? answer : answer.status);
    if (typeof answer !== 'number') sendReply(res, answer, { head: false });
    this.#options.limits?.bodies.answered(res);
  }

  #failure(error: unknown): Reply {
    return failureReply(error, this.#options);
  }

  async #answer(req: IncomingMessage, res: ServerResponse, routed: Routed): Promise<Reply | Forward> {
    const { services } = this.#options.node;
    const address = addressOf(req, this.#options);
    // Before anything else is done for the request: a caller that asks too often is no work.
    const allowance = services?.quotas.admit(routed.canonical, address);
    const { operation } = routed;
    const exchange = exchangeOf(req, { ...routed, address }, this.#options);
    const decided =
      operation.access === 'open'
        ? this.#answerOpen(req, res, { ...routed, operation, address, exchange })
        : this.#answerGuarded(req, res, { ...routed, operation, address, exchange });
    const eligibility = exchange === undefined ? decided : recorded(decided, exchange, services, (error) => this.#failure(error));
    if (allowance === undefined || services?.quotas.config.responseHeaders !== true) return eligibility;
    const answer = await eligibility.catch((error: unknown) => {
      if (error instanceof LeadershipTransferred) throw error;
      return this.#failure(error);
    });
    return answer instanceof Forward ? answer : withAllowance(answer, allowance);
  }

  async #answerOpen(req: IncomingMessage, res: ServerResponse, asked: Asked<OpenOperation>): Promise<Reply | Forward> {
    const { path, canonical, verb, params, operation, address, exchange } = asked;
    const { node } = this.#options;
    const wrapTtlS = wrapTtlOf(req.headers);
    exchange?.wraps(wrapTtlS);
    // What is only read here is no secret.
    if (wrapTtlS > 0 && operation.wraps !== true && verb === 'POST')
      throw new RequestError('invalid_request', 'this answer cannot be wrapped');
    const { services } = node;
    if (operation.wraps === true && services === undefined) throw unavailable(node);
    const where = whereOf(operation, verb);
    services?.quotas.admitToken(canonical, undefined, address);
    // Before the active node is asked: an unfinished body would hold a connection to it that others need.
    const bytes = await this.#bodies.ofStranger(req, res);
    if (where !== 'here' && (await sourceOf(req.headers, where, this.#options)) === 'none') return new Forward(bytes);
    if (operation.wraps === true) services?.wrapping.checkTtl(wrapTtlS);
    return this.#inTurn(res, asked, where, async () => {
      const call = {
        verb,
        path: canonical,
        written: path.path,
        params,
        query: path.query,
        body: await bodyOf(bytes, req, asked),
        address,
      };
      const token = tokenOf(req.headers);
      exchange?.from(token);
      await exchange?.begin(call.body);
      // What began while the node did not serve is recorded nowhere; and since the look at the state a body was read.
      if (where !== 'here' && node.services !== services) throw new StoreError('sealed', 'transitd is sealed');
      const reply = await operation.run(node, call, token);
      return services === undefined || wrapTtlS === 0 || operation.wraps !== true
        ? reply
        : await wrapped(services, reply, { path: canonical, wrapTtlS });
    });
  }

  async #answerGuarded(req: IncomingMessage, res: ServerResponse, asked: Asked<GuardedOperation>): Promise<Reply | Forward> {
    const { canonical, verb, operation, address, exchange } = asked;
    const { node } = this.#options;
    const { services } = node;
    if (services === undefined) {
      // An unsealed node that is still loading what serves is not sealed: it must not say that it were.
      if (operation.whenSealed !== undefined && node.sealStatus.sealed) return operation.whenSealed;
      throw unavailable(node);
    }
    const wrapTtlS = wrapTtlOf(req.headers);
    if (wrapTtlS > 0 && operation.isSlow) throw new RequestError('invalid_request', 'this answer cannot be wrapped');
    const where = wrapTtlS > 0 ? 'leader' : whereOf(operation, verb); // what waits, wrapped, waits in the log
    const token = tokenOf(req.headers);
    const { epoch } = services.tokens;
    const found = token === undefined ? undefined : services.tokens.authenticate(token);
    let principal = found instanceof Promise ? await found : found;
    // Away from where it is bound to, a token is as good as none.
    if (principal !== undefined && !withinCidrs(principal.record.boundCidrs, address)) principal = undefined;
    services.quotas.admitToken(canonical, principal?.id, address);
    // Nobody waits, and no place at the active node is taken, for a request without a token.
    const source: Source =
      token === undefined ? 'here' : await sourceOf(req.headers, where, this.#options, { waits: principal !== undefined });
    if (source === 'reader') exchange?.waitForAnswer();
    exchange?.from(token, principal);
    exchange?.wraps(wrapTtlS);
    if (token === undefined || principal === undefined) {
      // A token that this node does not know yet may have been made a moment ago.
      if (source === 'reader' || source === 'none') return new Forward(await this.#bodies.ifSmall(req, res));
      if (operation.streamsBody) throw permissionDenied();
      // Malformed JSON is told before the missing token, as clients know it; a longer body stays unread and ends the connection.
      const bytes = await this.#bodies.ofStranger(req, res).catch(ignoreTooLarge);
      await bodyOf(bytes, req, asked);
      throw permissionDenied();
    }
    if (source === 'none') {
      const read = operation.endsLeadership ? this.#bodies.kept(req, res) : this.#bodies.ifSmall(req, res);
      return new Forward(await read, principal.id);
    }
    services.wrapping.checkTtl(wrapTtlS);
    const bytes = await this.#bodies.of(operation, req, res, { tokenId: principal.id, address: callerGroup(address) });
    if (operation.isSlow) res.setTimeout(slowMsMax);
    const admitted = { services, token, principal, epoch, source, where, wrapTtlS, bytes };
    return this.#inTurn(res, asked, where, () => this.#answerAdmitted(req, res, asked, admitted));
  }

  /** All of the request is here: what waits for a caller takes nobody's place. */
  async #inTurn<T>(
    res: ServerResponse,
    { operation, address }: Pick<Asked<Operation>, 'operation' | 'address'>,
    where: Where,
    task: () => Promise<T>,
  ): Promise<T> {
    const work = this.#options.limits?.workOf(operation, where);
    const caller = operation.access === 'open' && work !== undefined ? callerGroup(address) : undefined;
    const place = work?.enter(res, caller);
    if (place !== undefined) await place;
    try {
      const turn = turns.next();
      if (turn !== undefined) await turn;
      return await task();
    } finally {
      work?.leave(caller);
    }
  }

  async #answerAdmitted(
    req: IncomingMessage,
    res: ServerResponse,
    asked: Asked<GuardedOperation>,
    admitted: Admitted,
  ): Promise<Reply | Forward> {
    const { operation, exchange } = asked;
    const { source, where, bytes } = admitted;
    const { node, forwarded } = this.#options;
    // The body may have taken long: what was revoked elsewhere meanwhile is in force here too.
    if (!(await isStill(source, node.eligibility))) {
      if (forwarded === true) throw new StoreError('not_leader', 'this node is not the active one any more');
      return new Forward(operation.streamsBody ? undefined : (bytes ?? nothing), admitted.principal.id);
    }
    const run = (): Promise<Reply> => this.#run(req, res, asked, admitted);
    if (source === 'reader') return this.#asReader(run, { body: bytes ?? nothing, tokenId: admitted.principal.id }, exchange);
    const reply = await run();
    const adds = operation.adds === true || where !== 'leader';
    const tells = where === 'leader' || (operation.mayWrite === true && forwarded === true);
    return tells ? this.#settled(reply, { adds }) : reply;
  }

  /** Policy and operation, by what is in force now. */
  async #run(
    req: IncomingMessage,
    res: ServerResponse,
    asked: Asked<GuardedOperation>,
    { services, token, principal: found, epoch, source, wrapTtlS, bytes }: Admitted,
  ): Promise<Reply> {
    const { verb, path, canonical, params, operation, address, exchange } = asked;
    const { node } = this.#options;
    const body = bodyOf(bytes, req, asked);
    const content = operation.streamsBody ? contentOf(req, res) : undefined;
    const call: Call = {
      verb,
      path: canonical,
      written: path.path,
      params,
      query: path.query,
      body: body instanceof Promise ? await body : body,
      address,
      ...(wrapTtlS > 0 && { wrapTtlS }),
      ...(content && { content }),
    };
    await exchange?.begin(call.body);
    // Where a mount was removed or has moved while the body came in, what was answered meanwhile is in force.
    if (services.mounts.changing !== undefined) await services.mounts.changing;
    let principal: Principal | undefined = found;
    // While the body came in, the token may have been revoked or its policies changed: what was answered meanwhile is in force.
    if (services.tokens.epoch !== epoch || principal.goodUntilMs <= services.tokens.nowMs)
      principal = await services.tokens.authenticate(token);
    if (principal === undefined) throw permissionDenied();
    // A use counts even when the policies refuse it.
    if (principal.record.usesLeft !== 0) principal = await services.registry.spend(principal);
    if (principal === undefined) throw permissionDenied();
    const may = mayRun(principal, operation, call, asked.nameAt);
    const granted = (may instanceof Promise ? await may : may) && withinPage(principal, operation, call);
    if (granted === false || granted === undefined) throw permissionDenied();
    // Between the look at the state and this line a body was read: the node may be sealed by now.
    if (node.services !== services) throw new StoreError('sealed', 'transitd is sealed');
    if (exchange !== undefined && source === 'active' && !(await stillLeads(node.eligibility))) throw notActive();
    const reply = await operation.run({ node, services, principal, token }, granted);
    return wrapTtlS === 0 ? reply : wrapped(services, reply, { path: canonical, wrapTtlS });
  }

  /**
   * A replica answers what succeeds, as long as it is fresh enough when the answer is ready. What it would refuse is asked of the
   * active node, which may know more: a key that was made, a right that was given a moment ago.
   */
  async #asReader(
    run: () => Promise<Reply>,
    { body, tokenId }: { readonly body: Buffer; readonly tokenId: string },
    exchange?: Exchange,
  ): Promise<Reply | Forward> {
    const { node } = this.#options;
    try {
      const reply = await run();
      if (reply.status < 400 && node.eligibility.readRole !== undefined) {
        if (exchange === undefined) return reply;
        const recorded = await exchange.end(reply, { isDone: node.active });
        if (node.eligibility.readRole !== undefined) return recorded; // writing took its time
      }
    } catch (error) {
      if (isAuditFailure(error)) throw error;
      // A node that has begun to lead meanwhile may have proposed something: that is never done again elsewhere.
      if (!isRefusal(error) || error.code === 'outcome_unknown') throw error;
    }
    return new Forward(body, tokenId);
  }

  /** A change is answered when no node serves what was before it, and tells the index that holds it. */
  async #settled(reply: Reply, { adds }: { readonly adds: boolean }): Promise<Reply> {
    const { node } = this.#options;
    const index = await node.eligibility.settled({ adds: adds || reply.status >= 400 });
    return index === undefined ? reply : { ...reply, headers: { ...reply.headers, ...indexHeaders(index) } };
  }
}

const nothing = Buffer.alloc(0);
