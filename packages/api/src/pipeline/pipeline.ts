import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Allowance, callerGroup } from '@transitd/access';
import { notExecutedHeader } from '@transitd/cluster';
import { turns } from '@transitd/event-loop';
import {
  indexHeaders,
  pathDisabled,
  type Reply,
  RequestError,
  sendReply,
  tokenOf,
  unavailable,
  valuesBytesOf,
  wrapTtlOf,
} from '@transitd/http';
import type { Span } from '@transitd/process';
import { InvariantViolation } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import { type GuardedOperation, type OpenOperation, type Where, whereOf } from '../operation/operation.ts';
import { takesNothingAway } from '../operation/takes-nothing-away.ts';
import { exchangeOf, isAuditFailure, recorded } from './audit-recording.ts';
import { Authentication } from './authentication.ts';
import { authorize } from './authorization.ts';
import { bodyOf, RequestBodies } from './body-reading.ts';
import { callOf } from './call.ts';
import { addressOf } from './caller-address.ts';
import { failureReply, withAllowance } from './failure.ts';
import { Forwarding, leadershipTransferred, retriesMax } from './forwarding.ts';
import { warnedOfLostIndex } from './lost-index.ts';
import { operationTokenOf, runByOperationToken } from './operation-token.ts';
import { ForwardToActive, isOutcome, type Outcome, outcomeOf, Refused, Replied, Transferred } from './outcome.ts';
import { NotActive, readSource, sourceHolds, stillLeads } from './read-source.ts';
import { isRefusal } from './refusals.ts';
import type { CompleteRequest, PipelineOptions, RoutedRequest, RouteMatch } from './request.ts';
import { ownerOf, wrapped } from './response-wrapping.ts';

/** How long the connection of a slow operation may be idle, in milliseconds. */
const slowMsMax = 30 * 60_000;

/**
 * Answers requests whose route is known. The stages run in the order that the specification requires:
 *
 *     admit → authenticate → read body → wait for a place → authorize → execute → respond → record → send
 *
 * So a sealed node reads no token, no large body is read without a valid token, and nothing is executed before it is recorded. Each stage
 * returns the input of the next one, or the Outcome that ends the request; an exception is a refusal or an internal error.
 */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #bodies: RequestBodies;
  readonly #authentication: Authentication;
  readonly #forwarding: Forwarding;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#bodies = new RequestBodies(options);
    this.#authentication = new Authentication(options, this.#bodies);
    this.#forwarding = new Forwarding(options);
  }

  /** Answers the request; every failure becomes a response. */
  async serve(req: IncomingMessage, res: ServerResponse, route: RouteMatch): Promise<void> {
    const { metrics, limits, tracer } = this.#options;
    const begunMs = performance.now();
    metrics.inFlight.inc();
    const span = tracer?.request(req.headers, this.#options.forwarded);
    const work = (): Promise<Reply | number> =>
      this.#answer(req, res, route).catch((error: unknown) => this.#failure(new Refused(error)));
    const answer = await (span === undefined || tracer === undefined ? work() : tracer.within(span, work));
    const ms = performance.now() - begunMs;
    if (span !== undefined) this.#traced(span, route, { ms, status: typeof answer === 'number' ? answer : answer.status });
    metrics.inFlight.dec();
    metrics.requestMs.observe(ms);
    metrics.route(route.operation.name).observe(ms);
    metrics.responded(typeof answer === 'number' ? answer : answer.status);
    if (typeof answer !== 'number') this.#send(req, res, answer);
    limits?.bodies.answered(res);
  }

  /** Data that has no JSON form is a fault of an operation, and becomes an internal error. */
  #send(req: IncomingMessage, res: ServerResponse, reply: Reply): void {
    const options = { head: false, address: () => addressOf(req, this.#options) };
    try {
      sendReply(res, reply, options);
    } catch (error) {
      sendReply(res, this.#failure(new Refused(error)), options);
    }
  }

  /** Ends the span of a request. Its attributes are constants of the route: no path, no name, nothing that a caller sent. */
  #traced(span: Span, { verb, operation }: RouteMatch, { ms, status }: { readonly ms: number; readonly status: number }): void {
    span.set('transitd.operation', operation.name);
    span.set('transitd.verb', verb);
    span.set('transitd.forwarded', this.#options.forwarded === true);
    span.set('http.response.status_code', status);
    span.end(status >= 500);
    this.#options.metrics.traced(ms, span.traceId);
  }

  /**
   * Returns the reply, or the status of a response that the active node has already sent. If leadership was transferred while the request
   * ran, or if no active node answered until a failover ended, the request is decided again.
   */
  async #answer(req: IncomingMessage, res: ServerResponse, route: RouteMatch): Promise<Reply | number> {
    const { node, forwarded } = this.#options;
    for (let retries = 0; ; retries++) {
      const decided = await this.#decide(req, res, route);
      const forwards = decided instanceof ForwardToActive;
      const outcome = forwards ? await this.#forwarding.forward(req, res, route, decided) : decided;
      if (typeof outcome === 'number') return outcome;
      if (outcome instanceof Replied) return outcome.reply;
      if (outcome instanceof Refused) {
        const { error } = outcome;
        const repeats = forwards && retries < retriesMax && (await this.#forwarding.mayRepeat(req, res, decided, error));
        if (!repeats) return this.#failure(outcome);
        this.#bodies.keep(req, decided.body);
        continue;
      }
      if (!(outcome instanceof Transferred)) throw new InvariantViolation(`a forward ended as ${outcome.kind}`);
      if (forwarded === true) return leadershipTransferred; // the node that forwarded the request tries the next leader
      const isLed = retries < retriesMax && (await node.eligibility.hasActiveNodeAfter(outcome.term));
      if (!isLed) return this.#failure(new Refused(notLed()));
    }
  }

  /** Admits, executes and records a request. A rate limit is checked before anything else. */
  async #decide(req: IncomingMessage, res: ServerResponse, route: RouteMatch): Promise<Outcome> {
    const { services } = this.#options.node;
    const address = addressOf(req, this.#options);
    let allowance: Allowance | undefined;
    try {
      allowance = services?.quotas.admit(route.canonical, address);
    } catch (error) {
      return outcomeOf(error);
    }
    const showsAllowance = services?.quotas.config.responseHeaders === true;
    const exchange = exchangeOf(req, route, address, this.#options);
    let outcome: Outcome;
    try {
      // A sealed node refuses for its own reason.
      const request = { ...route, req, res, address, exchange };
      if (services !== undefined && this.#options.node.eligibility.isSecondary) outcome = await this.#workOnSecondary(request);
      else outcome = await this.#work(request);
    } catch (error) {
      // An operation that needs a token has failed before it was executed.
      const changes = isOpen(route) && whereOf(route.operation, route.verb) === 'leader';
      outcome = outcomeOf(error, { changes });
    }
    outcome = warnedOfLostIndex(outcome, { ...route, req }, this.#options.node);
    if (exchange !== undefined) outcome = await recorded(outcome, exchange, services, (refused) => this.#failure(refused));
    if (allowance === undefined || !showsAllowance) return outcome;
    if (outcome instanceof Replied) return new Replied(withAllowance(outcome.reply, allowance));
    return outcome instanceof Refused ? new Replied(withAllowance(this.#failure(outcome), allowance)) : outcome;
  }

  #work(request: RoutedRequest): Promise<Outcome> {
    return isOpen(request) ? this.#workOpen(request) : this.#workGuarded(request as RoutedRequest<GuardedOperation>);
  }

  /** Runs an operation on a cluster that serves no clients, for a caller with the rights or with an operation token. */
  async #workOnSecondary(request: RoutedRequest): Promise<Outcome> {
    const { req, res, verb, path, canonical, params, operation, address, exchange } = request;
    const allowed = 'byOperationToken' in operation ? operation.byOperationToken : undefined;
    if (operation.onSecondary !== true && allowed === undefined) throw pathDisabled();
    if (allowed === undefined) return this.#work(request);
    const bytes = await this.#bodies.ofUnauthenticated(req, res);
    const body = await bodyOf(bytes, request);
    const token = operationTokenOf(body, req.headers);
    if (token === undefined) return this.#work(request);
    const { node } = this.#options;
    node.services?.quotas.admitToken(canonical, undefined, address);
    if ((await readSource(req.headers, 'leader', this.#options)) === 'none') return new ForwardToActive(bytes);
    if ('isSlow' in operation) res.setTimeout(slowMsMax);
    return this.#inPlace({ res, operation, caller: callerGroup(address) }, 'leader', async () => {
      exchange?.setCaller(token);
      await exchange?.begin(body);
      const call = { verb, path: canonical, written: path.path, params, query: path.query, body, address };
      try {
        return new Replied(await runByOperationToken(node, allowed, call, token));
      } catch (error) {
        return outcomeOf(error, { changes: allowed.use === 'changes' });
      }
    });
  }

  /** Runs the stages of an operation that needs a token. */
  async #workGuarded(request: RoutedRequest<GuardedOperation>): Promise<Outcome> {
    const known = await this.#authentication.authenticate(request);
    if (isOutcome(known)) return known;
    const { operation, req, res, services, principal, address } = known;
    services.wrapping.checkTtl(known.wrapTtlS);
    const body = this.#bodies.of(operation, req, res, () => ({ tokenId: principal.id, address: callerGroup(address) }));
    const bytes = body instanceof Promise ? await body : body;
    if (operation.isSlow) res.setTimeout(slowMsMax);
    const complete: CompleteRequest = { ...known, bytes };
    const values = bytes === undefined ? 0 : valuesBytesOf(bytes, operation);
    return values === 0 ? this.#workComplete(complete) : this.#withValues(complete, values, () => this.#workComplete(complete));
  }

  /** Runs `work`, which parses a body of many values, while few others of its token run and memory for its values is reserved. */
  async #withValues(
    { res, principal, address }: CompleteRequest,
    values: number,
    work: () => Promise<Outcome>,
  ): Promise<Outcome> {
    const { limits } = this.#options;
    if (limits === undefined) return work();
    const { bodies, batches } = limits;
    const caller = { tokenId: principal.id, address: callerGroup(address) };
    const turn = batches.enter(res, principal.id);
    if (turn !== undefined) await turn;
    try {
      const room = bodies.parse(res, caller, values);
      if (room !== undefined) await room;
      return await work().finally(() => bodies.parsed(caller, values));
    } finally {
      batches.leave(principal.id);
    }
  }

  /** Runs the stages of an operation that needs a token from the wait for a place on. */
  #workComplete(complete: CompleteRequest): Promise<Outcome> {
    const { res, operation, principal, where, source } = complete;
    return this.#inPlace({ res, operation, caller: principal.id }, where, async () => {
      // The body may have taken long to arrive. Revocations that other nodes have made since must count here too.
      const holds = sourceHolds(source, this.#options.node.eligibility);
      const isHere = (holds instanceof Promise ? await holds : holds) && !this.#isLeaving(complete);
      if (!isHere) return this.#noLongerHere(complete);
      return this.#respond(complete, await this.#execute(complete));
    });
  }

  /** Authorizes and executes the call with the current policies. */
  async #execute(request: CompleteRequest): Promise<Outcome> {
    const { operation, where, services, token, source, wrapTtlS, canonical, exchange } = request;
    const { node } = this.#options;
    try {
      const made = callOf(request);
      const call = made instanceof Promise ? await made : made;
      if (exchange !== undefined) await exchange.begin(call.body);
      const { principal, granted } = await authorize(request, call);
      // The node may have been sealed while the body was read.
      if (node.services !== services) throw new StoreError('sealed', 'transitd is sealed');
      if (exchange !== undefined && source === 'active' && !(await stillLeads(node.eligibility)))
        throw new StoreError('not_leader', 'this node is not the active one'); // no NotActive: the token has lost a use
      const reply = await operation.run({ node, services, principal, token }, granted);
      return new Replied(
        wrapTtlS === 0 ? reply : await wrapped(services, reply, { path: canonical, wrapTtlS, owner: ownerOf(principal) }),
      );
    } catch (error) {
      return outcomeOf(error, { changes: where === 'leader' || operation.mayWrite === true });
    }
  }

  /**
   * The stage before the response is recorded. A standby responds only with a success, and only while its state is fresh. The active node
   * responds to a change once the change is in force on every node.
   */
  #respond(request: CompleteRequest, outcome: Outcome): Outcome | Promise<Outcome> {
    const { operation, source, where } = request;
    if (source === 'reader') return this.#respondAsStandby(request, outcome);
    const isChange = where === 'leader' || (operation.mayWrite === true && this.#options.forwarded === true);
    return isChange && outcome instanceof Replied ? this.#respondToChange(request, outcome) : outcome;
  }

  async #respondToChange({ operation, where }: CompleteRequest, outcome: Replied): Promise<Outcome> {
    const { reply } = outcome;
    const adds = takesNothingAway.has(operation.name) || where !== 'leader' || reply.status >= 400;
    const index = await this.#options.node.eligibility.waitUntilInForce({ adds });
    return index === undefined ? outcome : new Replied({ ...reply, headers: { ...reply.headers, ...indexHeaders(index) } });
  }

  /**
   * A standby answers with a success if its state is still fresh when the response is ready. It forwards a request that it would refuse to
   * the active node, which may already know a key or a capability that was added a moment ago.
   */
  async #respondAsStandby({ bytes, principal, exchange }: CompleteRequest, outcome: Outcome): Promise<Outcome> {
    const { node } = this.#options;
    const isFresh = (): boolean => node.eligibility.readRole !== undefined;
    if (outcome instanceof Transferred) return outcome;
    if (outcome instanceof Refused) {
      const { error } = outcome;
      // If this node has become the leader meanwhile, it may have proposed a change. The change must not be executed again on another node.
      if (isAuditFailure(error) || !isRefusal(error) || error.code === 'outcome_unknown') return outcome;
    }
    if (outcome instanceof Replied && outcome.reply.status < 400 && isFresh()) {
      if (exchange === undefined) return outcome;
      const reply = await exchange.end(outcome.reply, { isDone: node.active });
      if (isFresh()) return new Replied(reply); // checked again, because writing the audit entries took time
    }
    return new ForwardToActive(bytes ?? nothing, principal.id);
  }

  /** Whether this node is transferring its leadership, so that it would refuse the writes of this forwarded request. */
  #isLeaving({ where, operation }: CompleteRequest): boolean {
    const { node, forwarded } = this.#options;
    const writes = (where === 'leader' && operation.endsLeadership !== true) || operation.mayWrite === true;
    return forwarded === true && writes && node.eligibility.isTransferring;
  }

  #noLongerHere({ operation, bytes, principal }: CompleteRequest): Outcome {
    if (this.#options.forwarded === true) throw new NotActive('this node is no longer the active one');
    return new ForwardToActive(operation.streamsBody ? undefined : (bytes ?? nothing), principal.id);
  }

  /** Runs the stages of an operation that needs no token. */
  async #workOpen(request: RoutedRequest<OpenOperation>): Promise<Outcome> {
    const { req, res, path, canonical, verb, params, operation, address, exchange } = request;
    const { node } = this.#options;
    const { services } = node;
    const wrapTtlS = wrapTtlOf(req.headers);
    exchange?.setWrapTtl(wrapTtlS);
    // Reads of open operations return no secrets, so wrapping is only refused for POST.
    if (wrapTtlS > 0 && operation.wraps !== true && verb === 'POST')
      throw new RequestError('invalid_request', 'this response cannot be wrapped');
    if (operation.wraps === true && services === undefined) throw unavailable(node);
    const where = whereOf(operation, verb);
    services?.quotas.admitToken(canonical, undefined, address);
    // The body is read before forwarding: an unfinished body would occupy a connection to the active node.
    const bytes = await this.#bodies.ofUnauthenticated(req, res);
    if (where !== 'here' && (await readSource(req.headers, where, this.#options)) === 'none') return new ForwardToActive(bytes);
    if (operation.wraps === true) services?.wrapping.checkTtl(wrapTtlS);
    return this.#inPlace({ res, operation, caller: callerGroup(address) }, where, async () => {
      const body = await bodyOf(bytes, request);
      const token = tokenOf(req.headers);
      exchange?.setCaller(token);
      await exchange?.begin(body);
      // The state of the node may have changed while the body was read. A request that began while the node was sealed would not be
      // audited.
      if (where !== 'here' && node.services !== services) throw new StoreError('sealed', 'transitd is sealed');
      const call = { verb, path: canonical, written: path.path, params, query: path.query, body, address };
      const reply = await operation.run(node, call, token);
      const isWrapped = services !== undefined && wrapTtlS > 0 && operation.wraps === true;
      return new Replied(
        isWrapped ? await wrapped(services, reply, { path: canonical, wrapTtlS, owner: callerGroup(address) }) : reply,
      );
    });
  }

  /**
   * Runs `work` within the in-flight limit. The body is complete by now, so a slow caller occupies no place.
   * @param caller - id of the token, or the address of a caller without one
   */
  async #inPlace(
    { res, operation, caller }: Pick<RoutedRequest, 'res' | 'operation'> & { readonly caller: string },
    where: Where,
    work: () => Promise<Outcome>,
  ): Promise<Outcome> {
    const limit = this.#options.limits?.workOf(operation, where);
    const place = limit?.enter(res, caller);
    if (place !== undefined) await place;
    try {
      const turn = turns.next();
      if (turn !== undefined) await turn;
      return await work();
    } finally {
      limit?.leave(caller);
    }
  }

  #failure({ error, warnings }: Refused): Reply {
    const reply = failureReply(error, this.#options, warnings);
    if (this.#options.forwarded !== true || !(error instanceof NotActive)) return reply;
    return { ...reply, headers: { ...reply.headers, [notExecutedHeader]: '1' } }; // the node that forwarded the request may decide it again
  }
}

const nothing = Buffer.alloc(0);

const isOpen = <R extends RouteMatch>(request: R): request is R & { readonly operation: OpenOperation } =>
  request.operation.access === 'open';

const notLed = (): StoreError =>
  new StoreError('not_leader', 'leadership was transferred and nothing else was done, but no active node answers');
