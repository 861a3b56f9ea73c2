import type { IncomingMessage, ServerResponse } from 'node:http';
import { notExecutedHeader } from '@transitd/cluster';
import { pathDisabled, type Reply, RequestError, tokenOf, unavailable, wrapTtlOf } from '@transitd/http';
import { callerGroup, release, type Span } from '@transitd/process';
import { InvariantViolation } from '@transitd/raft-core';
import { StoreError } from '@transitd/storage-fsm';
import { type GuardedOperation, type OpenOperation, whereOf } from '../operation/operation.ts';
import { bodyOf, checkPlaces, RequestBodies } from './body-reading.ts';
import { failureReply, withAllowance } from './failure.ts';
import { Forwarding, leadershipTransferred, retriesMax } from './forwarding.ts';
import { operationTokenOf, runByOperationToken } from './operation-token.ts';
import { forwardToActive, isOutcome, type Outcome, outcomeOf, type Refused, refusedWith, replied } from './outcome.ts';
import { NotActive, readSource, sourceHolds } from './read-source.ts';
import type { CompleteRequest, PipelineOptions, RoutedRequest, RouteMatch } from './request.ts';
import * as stages from './stages.ts';

/** How long the connection of a slow operation may be idle, in milliseconds. */
const slowMsMax = 30 * 60_000;

/** Answers requests whose route is known: leads each through the stages, and decides again after a failover. */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #bodies: RequestBodies;
  readonly #forwarding: Forwarding;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#bodies = new RequestBodies(options);
    this.#forwarding = new Forwarding(options);
  }

  /** Answers the request; every failure becomes a response. */
  async serve(req: IncomingMessage, res: ServerResponse, route: RouteMatch): Promise<void> {
    const { metrics, limits, tracer } = this.#options;
    const begunMs = performance.now();
    metrics.inFlight.inc();
    const span = tracer?.request(req.headers, this.#options.forwarded);
    const work = (): Promise<Reply | number> =>
      this.#answer(req, res, route).catch((error: unknown) => this.#failure(refusedWith(error)));
    const answer = await (span === undefined || tracer === undefined ? work() : tracer.within(span, work));
    const ms = performance.now() - begunMs;
    if (span !== undefined) this.#traced(span, route, { ms, status: typeof answer === 'number' ? answer : answer.status });
    metrics.inFlight.dec();
    metrics.requestMs.observe(ms);
    metrics.route(route.operation.name).observe(ms);
    metrics.responded(typeof answer === 'number' ? answer : answer.status);
    if (typeof answer !== 'number') {
      stages.send({ req, res }, answer, this.#options, (refused) => this.#failure(refused));
      answer.onSent?.();
    }
    limits?.bodies.answered(res);
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
      const forwards = decided.kind === 'forward';
      const outcome = forwards ? await this.#forwarding.forward(req, res, route, decided) : decided;
      if (typeof outcome === 'number') return outcome;
      if (outcome.kind === 'replied') return outcome.reply;
      if (outcome.kind === 'refused') {
        const { error } = outcome;
        const repeats = forwards && retries < retriesMax && (await this.#forwarding.mayRepeat(req, res, decided, error));
        if (!repeats) return this.#failure(outcome);
        this.#bodies.keep(req, decided.body);
        continue;
      }
      if (outcome.kind !== 'transferred') throw new InvariantViolation(`a forward ended as ${outcome.kind}`);
      if (forwarded === true) return leadershipTransferred; // the node that forwarded the request tries the next leader
      const isLed = retries < retriesMax && (await node.eligibility.hasActiveNodeAfter(outcome.term));
      if (!isLed) return this.#failure(refusedWith(notLed()));
    }
  }

  /** Admits, executes and records a request. */
  async #decide(req: IncomingMessage, res: ServerResponse, route: RouteMatch): Promise<Outcome> {
    const { services } = this.#options.node;
    let request: stages.AdmittedRequest;
    try {
      request = stages.admit(req, res, route, this.#options);
    } catch (error) {
      return outcomeOf(error);
    }
    const { allowance, exchange } = request;
    let outcome: Outcome;
    try {
      // A sealed node refuses for its own reason.
      if (services !== undefined && this.#options.node.eligibility.isSecondary) outcome = await this.#workOnSecondary(request);
      else outcome = await this.#work(request);
    } catch (error) {
      // An operation that needs a token has failed before it was executed.
      const changes = isOpen(route) && whereOf(route.operation, route.verb) === 'leader';
      outcome = outcomeOf(error, { changes });
    }
    outcome = stages.warnedOfLostIndex(outcome, request, this.#options.node);
    if (exchange !== undefined) outcome = await stages.record(outcome, exchange, services, (refused) => this.#failure(refused));
    if (allowance === undefined) return outcome;
    if (outcome.kind === 'replied') return replied(withAllowance(outcome.reply, allowance));
    return outcome.kind === 'refused' ? replied(withAllowance(this.#failure(outcome), allowance)) : outcome;
  }

  #work(request: RoutedRequest): Promise<Outcome> {
    return isOpen(request) ? this.#workOpen(request) : this.#workGuarded(request as RoutedRequest<GuardedOperation>);
  }

  /** Runs an operation on a cluster that serves no clients, for a caller with the rights or with an operation token. */
  async #workOnSecondary(request: RoutedRequest): Promise<Outcome> {
    const { req, res, canonical, operation, address, exchange } = request;
    const allowed = 'byOperationToken' in operation ? operation.byOperationToken : undefined;
    if (operation.onSecondary !== true && allowed === undefined) throw pathDisabled();
    if (allowed === undefined) return this.#work(request);
    const bytes = await this.#bodies.ofUnauthenticated(req, res);
    const body = await bodyOf(bytes, request);
    const token = operationTokenOf(body, req.headers);
    if (token === undefined) return this.#work(request);
    const { node, limits } = this.#options;
    node.services?.quotas.admitToken(canonical, undefined, address);
    if ((await readSource(req.headers, 'leader', this.#options)) === 'none') return forwardToActive(bytes);
    if ('isSlow' in operation) res.setTimeout(slowMsMax);
    using _place = await stages.waitToRun(request, 'leader', callerGroup(address), limits);
    exchange?.setCaller(token);
    await exchange?.begin(body);
    try {
      const run: typeof allowed.run = (on, call) => {
        checkPlaces(operation, call);
        return allowed.run(on, call);
      };
      return replied(await runByOperationToken(node, { ...allowed, run }, stages.callWith(request, body), token));
    } catch (error) {
      return outcomeOf(error, { changes: allowed.use === 'changes' });
    }
  }

  /** Runs the stages of an operation that needs a token. */
  async #workGuarded(request: RoutedRequest<GuardedOperation>): Promise<Outcome> {
    const { limits, node } = this.#options;
    const known = await stages.authenticate(request, this.#options, this.#bodies);
    if (isOutcome(known)) return known;
    const { operation, res, services, where, source } = known;
    services.wrapping.checkTtl(known.wrapTtlS);
    const body = stages.readBody(known, this.#bodies);
    const complete: CompleteRequest = { ...known, bytes: body instanceof Promise ? await body : body };
    if (operation.isSlow) res.setTimeout(slowMsMax);
    const waits = stages.waitForPlace(complete, limits);
    const place = waits instanceof Promise ? await waits : waits;
    // V8 does not optimize a function with `using`: it took 5 % more time for an encryption.
    try {
      // The body may have taken long to arrive. Revocations that other nodes have made since must count here too.
      const holds = sourceHolds(source, node.eligibility);
      if (!(holds instanceof Promise ? await holds : holds) || this.#isLeaving(complete)) return this.#noLongerHere(complete);
      let outcome: Outcome;
      try {
        const made = stages.callOf(complete);
        const call = made instanceof Promise ? await made : made;
        outcome = replied(await stages.execute(complete, await stages.authorize(complete, call), this.#options));
      } catch (error) {
        outcome = outcomeOf(error, { changes: where === 'leader' || operation.mayWrite === true });
      }
      const responding = stages.respond(complete, outcome, this.#options);
      const response = responding instanceof Promise ? await responding : responding;
      if (response.kind === 'replied' && complete.bytes !== undefined) release(complete.bytes); // only other outcomes are decided again
      return response;
    } finally {
      place[Symbol.dispose]();
    }
  }

  /** Whether this node is transferring its leadership, so that it would refuse the writes of this forwarded request. */
  #isLeaving({ where, operation }: CompleteRequest): boolean {
    const { node, forwarded } = this.#options;
    const writes = (where === 'leader' && operation.endsLeadership !== true) || operation.mayWrite === true;
    return forwarded === true && writes && node.eligibility.isTransferring;
  }

  #noLongerHere({ operation, bytes, principal }: CompleteRequest): Outcome {
    if (this.#options.forwarded === true) throw new NotActive('this node is no longer the active one');
    return forwardToActive(operation.streamsBody ? undefined : (bytes ?? Buffer.alloc(0)), principal.id);
  }

  /** Runs the stages of an operation that needs no token. */
  async #workOpen(request: RoutedRequest<OpenOperation>): Promise<Outcome> {
    const { req, res, canonical, verb, operation, address, exchange } = request;
    const { node, limits } = this.#options;
    const { services } = node;
    const wrapTtlS = wrapTtlOf(req.headers);
    exchange?.setWrapTtl(wrapTtlS);
    // Reads of open operations return no secrets, so wrapping is only refused for POST.
    if (wrapTtlS > 0 && operation.wraps !== true && verb === 'POST')
      throw new RequestError('invalid_request', 'this response cannot be wrapped');
    const where = whereOf(operation, verb);
    // A sealed node cannot forward, so it refuses for its own reason and not because no active node answers it.
    const isRefused = operation.wraps === true || (where !== 'here' && node.sealStatus.sealed);
    if (services === undefined && isRefused) throw unavailable(node);
    services?.quotas.admitToken(canonical, undefined, address);
    // The body is read before forwarding: an unfinished body would occupy a connection to the active node.
    const bytes = await this.#bodies.ofUnauthenticated(req, res);
    if (where !== 'here' && (await readSource(req.headers, where, this.#options)) === 'none') return forwardToActive(bytes);
    if (operation.wraps === true) services?.wrapping.checkTtl(wrapTtlS);
    using _place = await stages.waitToRun(request, where, callerGroup(address), limits);
    const body = await bodyOf(bytes, request);
    const token = tokenOf(req.headers);
    exchange?.setCaller(token);
    await exchange?.begin(body);
    // The state of the node may have changed while the body was read. A request that began while the node was sealed would not be audited.
    if (where !== 'here' && node.services !== services) throw new StoreError('sealed', 'transitd is sealed');
    const call = stages.callWith(request, body);
    checkPlaces(operation, call);
    const reply = await operation.run(node, call, token);
    if (services === undefined || wrapTtlS === 0 || operation.wraps !== true) return replied(reply);
    return replied(await stages.wrapped(services, reply, { path: canonical, wrapTtlS, owner: callerGroup(address) }));
  }

  #failure({ error, warnings }: Refused): Reply {
    const reply = failureReply(error, this.#options, warnings);
    if (this.#options.forwarded !== true || !(error instanceof NotActive)) return reply;
    return { ...reply, headers: { ...reply.headers, [notExecutedHeader]: '1' } }; // the node that forwarded the request may decide it again
  }
}

const isOpen = <R extends RouteMatch>(request: R): request is R & { readonly operation: OpenOperation } =>
  request.operation.access === 'open';

const notLed = (): StoreError =>
  new StoreError('not_leader', 'leadership was transferred and nothing else was done, but no active node answers');
