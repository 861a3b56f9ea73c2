import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Allowance, type Denial, type Principal, refusedByPolicy } from '@transitd/access';
import { AuditError, type Exchange } from '@transitd/audit';
import { turns } from '@transitd/event-loop';
import {
  type Body,
  type BodyCaller,
  bodyBytesOf,
  bodyStream,
  discardReply,
  type Encoded,
  encode,
  indexHeader,
  indexHeaders,
  indexWanted,
  joined,
  permissionDenied,
  type Reply,
  RequestError,
  replyWithWarnings,
  sendReply,
  tokenOf,
  unavailable,
  valuesBytesOf,
  type WorkLimit,
  wantsIndex,
  wrapTtlOf,
} from '@transitd/http';
import type { Node, Services } from '@transitd/node';
import { callerGroup } from '@transitd/process';
import { Refusal, type RefusedBy, StoreError, transactionBytesMax } from '@transitd/storage-fsm';
import { type Call, type GuardedOperation, type Where, whereOf } from '../operation/operation.ts';
import { decide, foreignUse, grantingRules, isDenial } from '../operation/rights.ts';
import { takesNothingAway } from '../operation/takes-nothing-away.ts';
import { wrapReply } from '../operation/wrap-info.ts';
import { exchangeOf } from './audit-recording.ts';
import { bodyOf, checkPlaces, ignoreTooLarge, type RequestBodies } from './body-reading.ts';
import { addressOf, certificateOf } from './caller-address.ts';
import { leadershipTransferred } from './forwarding.ts';
import type { Limits } from './limits.ts';
import {
  type ForwardToActive,
  forwardToActive,
  type Outcome,
  outcomeOf,
  type Refused,
  type Replied,
  refusedWith,
  replied,
} from './outcome.ts';
import { type ReadSource, readSource, stillLeads } from './read-source.ts';
import { isRefusal } from './refusals.ts';
import type { AuthenticatedRequest, CompleteRequest, PipelineOptions, RoutedRequest, RouteMatch } from './request.ts';

// The stages of a request, in the order in which the specification requires them:
//
//     admit → authenticate → read body → wait for a place → authorize → execute → respond → record → send
//
// So a sealed node reads no token, no large body is read without a valid token, and nothing is executed before it is recorded. Each stage
// returns the input of the next one, or the Outcome that ends the request; an exception is a refusal or an internal error.
//
// A stage that rarely waits returns its result without a promise: as async functions, the stages took a tenth more time for an encryption
// (decision 113).

/** A request within the rate limits. */
export interface AdmittedRequest extends RoutedRequest {
  /** Shown in the response; undefined if no rate limit applies, or if responses do not show it. */
  readonly allowance: Allowance | undefined;
}

/** Checks the rate limits, before anything else. @throws RateLimited */
export function admit(req: IncomingMessage, res: ServerResponse, route: RouteMatch, options: PipelineOptions): AdmittedRequest {
  const { services } = options.node;
  const address = addressOf(req, options);
  const allowance = services?.quotas.admit(route.canonical, address);
  const isShown = services?.quotas.config.responseHeaders === true;
  const exchange = exchangeOf(req, route, address, options);
  const certificate = certificateOf(req, options);
  return { ...route, req, res, address, certificate, exchange, allowance: isShown ? allowance : undefined };
}

/**
 * Authenticates the caller, and decides whether this node may answer. Returns an outcome on a sealed node, without a valid token, or if the
 * active node has to answer.
 * @throws RequestError, StoreError, RateLimited
 */
export async function authenticate(
  request: RoutedRequest<GuardedOperation>,
  options: PipelineOptions,
  bodies: RequestBodies,
): Promise<AuthenticatedRequest | Outcome> {
  const { req, res, canonical, verb, operation, address, exchange } = request;
  const { node } = options;
  const { services } = node;
  if (services === undefined) {
    // An unsealed node that is still loading its services must not report that it is sealed.
    if (operation.whenSealed !== undefined && node.sealStatus.sealed) return replied(operation.whenSealed);
    throw unavailable(node);
  }
  const wrapTtlS = wrapTtlOf(req.headers);
  if (wrapTtlS > 0 && operation.isSlow) throw new RequestError('invalid_request', 'this response cannot be wrapped');
  const where = wrapTtlS > 0 ? 'leader' : whereOf(operation, verb); // a wrapped response is stored in the log
  const token = tokenOf(req.headers);
  const { epoch } = services.tokens;
  const found = token === undefined ? undefined : services.tokens.authenticate(token);
  let principal = found instanceof Promise ? await found : found;
  // A token that is used outside its bound CIDR blocks, or without its certificate, counts as missing.
  const foreign = principal && foreignUse(principal, request, services.tokens.nowMs);
  if (foreign !== undefined) principal = undefined;
  services.quotas.admitToken(canonical, principal?.id, address);
  // A request without a token does not wait for an index and is not forwarded.
  const chosen = token === undefined ? 'here' : readSource(req.headers, where, options, { waits: principal !== undefined });
  const source: ReadSource = chosen instanceof Promise ? await chosen : chosen;
  if (source === 'reader') exchange?.defer();
  exchange?.setCaller(token, principal);
  exchange?.setWrapTtl(wrapTtlS);
  if (token === undefined || principal === undefined) return refuse(request, source, bodies, foreign ?? invalidToken);
  if (source === 'none') return forwardToActive(await bodies.toForward(operation, req, res), principal.id);
  return { ...request, services, token, principal, epoch, source, where, wrapTtlS };
}

const invalidToken: RefusedBy = { constraint: 'client_token' };

/** Refuses a request without a valid token, or forwards it. @throws RequestError `permission_denied`, or the error in the body */
async function refuse(
  request: RoutedRequest<GuardedOperation>,
  source: ReadSource,
  bodies: RequestBodies,
  refusedBy: RefusedBy,
): Promise<ForwardToActive> {
  const { req, res, operation } = request;
  // A token that this node does not know yet may have been created a moment ago.
  if (source === 'reader' || source === 'none') return forwardToActive(await bodies.toForward(operation, req, res));
  if (operation.streamsBody) throw permissionDenied(refusedBy);
  // Malformed JSON is reported before the missing token, as clients expect; a longer body stays unread and ends the connection.
  const bytes = await bodies.ofUnauthenticated(req, res).catch(ignoreTooLarge);
  await bodyOf(bytes, request);
  throw permissionDenied(refusedBy);
}

/** Reads the body within its limits. Returns undefined if the request has none, or if the operation reads it as a stream. */
export const readBody = (request: AuthenticatedRequest, bodies: RequestBodies): Buffer | undefined | Promise<Buffer> =>
  bodies.of(request.operation, request.req, request.res, () => bodyCallerOf(request));

const bodyCallerOf = ({ principal, address }: Pick<AuthenticatedRequest, 'principal' | 'address'>): BodyCaller => ({
  tokenId: principal.id,
  address: callerGroup(address),
});

/**
 * Waits for memory for the values of the body, if it has many, for a place within the in-flight limit, and for a turn of the event loop.
 * The body is complete by now, so a slow caller occupies no place. The caller holds memory and place until the response is decided, and
 * gives them back by disposal.
 * @throws RequestError `overloaded`, `request_aborted`
 */
export function waitForPlace(request: CompleteRequest, limits: Limits | undefined): Disposable | Promise<Disposable> {
  const values = valuesOf(request);
  return values === 0 || limits === undefined
    ? waitToRun(request, request.where, request.principal.id, limits)
    : waitForMemory(request, limits, values);
}

/** Waits for a place and for a turn. @param caller - id of the token, or the address of a caller without one */
export function waitToRun(
  { res, operation }: Pick<RoutedRequest, 'res' | 'operation'>,
  where: Where,
  caller: string,
  limits: Limits | undefined,
): Disposable | Promise<Disposable> {
  const limit = limits?.workOf(operation, where);
  const waits = limit?.enter(res, caller);
  return waits === undefined ? inTurn(new Place(limit, caller)) : waits.then(() => inTurn(new Place(limit, caller)));
}

/** Few requests with bodies of many values run for one token at a time, and each has memory for the values. */
async function waitForMemory(request: CompleteRequest, limits: Limits, values: number): Promise<Disposable> {
  const { res, principal, where } = request;
  const caller = bodyCallerOf(request);
  using held = new DisposableStack();
  await limits.batches.enter(res, principal.id);
  held.use(new Place(limits.batches, principal.id));
  await limits.bodies.parse(res, caller, values);
  held.defer(() => limits.bodies.parsed(caller, values));
  held.use(await waitToRun(request, where, principal.id, limits));
  return held.move();
}

/** Takes what {@link waitForPlace} waits for, but only if it is free; otherwise returns undefined. */
export function tryPlace(
  request: CompleteRequest,
  { reads, batches, bodies }: Limits,
): Disposable | Promise<Disposable> | undefined {
  const { principal } = request;
  const values = valuesOf(request);
  if (values === 0) return reads.tryEnter(principal.id) ? inTurn(new Place(reads, principal.id)) : undefined;
  const caller = bodyCallerOf(request);
  using held = new DisposableStack();
  if (!batches.tryEnter(principal.id)) return undefined;
  held.use(new Place(batches, principal.id));
  if (!bodies.tryParse(caller, values)) return undefined;
  held.defer(() => bodies.parsed(caller, values));
  if (!reads.tryEnter(principal.id)) return undefined;
  held.use(new Place(reads, principal.id));
  return inTurn(held.move());
}

/** A place within a limit. */
class Place implements Disposable {
  readonly #limit: WorkLimit | undefined;
  readonly #caller: string;

  constructor(limit: WorkLimit | undefined, caller: string) {
    this.#limit = limit;
    this.#caller = caller;
  }

  [Symbol.dispose](): void {
    this.#limit?.leave(this.#caller);
  }
}

const inTurn = (place: Disposable): Disposable | Promise<Disposable> => turns.next()?.then(() => place) ?? place;

const valuesOf = ({ bytes, operation }: CompleteRequest): number => (bytes === undefined ? 0 : valuesBytesOf(bytes, operation));

/** Returns the call for the operation, with the body as JSON or as a stream. @throws RequestError */
export function callOf(request: CompleteRequest): Call | Promise<Call> {
  const body = bodyOf(request.bytes, request);
  return body instanceof Promise ? body.then((members) => guardedCall(request, members)) : guardedCall(request, body);
}

function guardedCall(request: CompleteRequest, body: Body): Call {
  const { req, res, operation, wrapTtlS } = request;
  const call = callWith(request, body);
  if (operation.streamsBody !== true && wrapTtlS === 0) return call;
  return {
    ...call,
    ...(wrapTtlS > 0 && { wrapTtlS }),
    ...(operation.streamsBody === true && { bodyStream: bodyStream(req, res) }),
  };
}

/** Returns the call of a request with this body. */
export const callWith = ({ verb, path, canonical, params, address, certificate }: RoutedRequest, body: Body): Call => ({
  verb,
  path: canonical,
  written: path.path,
  params,
  query: path.query,
  body,
  address,
  certificate,
});

/** A call that the caller's policies allow, with their page size applied to lists. */
export interface Authorized {
  readonly principal: Principal;
  readonly granted: Call;
}

/**
 * Checks the policies, and writes the audit entry of the request with their decision before anything else is done. If the token or any
 * policy has changed since authentication, the token is looked up again, so that changes made while the body arrived take effect. A request
 * uses up one use of the token even if the policies refuse it.
 * @throws RequestError `permission_denied`; AuditError
 */
export async function authorize(request: CompleteRequest, call: Call): Promise<Authorized> {
  const { services, token, principal: found, epoch, exchange } = request;
  let decided: Call | Denial | undefined;
  if (exchange !== undefined) {
    decided = await decideFor(request, found, call);
    await exchange.begin(call.body);
  }
  // If a mount was removed or moved while the body arrived, the change takes effect.
  if (services.mounts.changing !== undefined) await services.mounts.changing;
  let principal: Principal | undefined = found;
  if (services.tokens.epoch !== epoch || principal.goodUntilMs <= services.tokens.nowMs)
    principal = await services.tokens.authenticate(token);
  if (principal !== undefined && principal.record.usesLeft !== 0) principal = await services.registry.spend(principal);
  if (principal === undefined) throw permissionDenied(invalidToken);
  if (decided === undefined || principal !== found) {
    const deciding = decideFor(request, principal, call);
    decided = deciding instanceof Promise ? await deciding : deciding;
  }
  if (isDenial(decided)) throw permissionDenied(refusedByPolicy(decided));
  return { principal, granted: decided };
}

/** Decides, and lets the audit entries say how. */
function decideFor(
  { operation, namePlace, exchange }: CompleteRequest,
  principal: Principal,
  call: Call,
): Call | Denial | Promise<Call | Denial> {
  const deciding = decide(principal, operation, call, namePlace);
  if (exchange === undefined) return deciding;
  const noted = (decided: Call | Denial): Call | Denial => {
    if (isDenial(decided)) exchange.setRefusedBy(refusedByPolicy(decided));
    else exchange.setGrantedBy(grantingRules(principal, operation, call));
    return decided;
  };
  return deciding instanceof Promise ? deciding.then(noted) : noted(deciding);
}

/**
 * Runs the operation, and wraps its reply if the caller asked for it.
 * @throws StoreError if the node was sealed, or lost its leadership, while the body was read
 */
export async function execute(
  { operation, services, token, source, wrapTtlS, canonical, exchange }: CompleteRequest,
  { principal, granted }: Authorized,
  { node }: PipelineOptions,
): Promise<Reply> {
  if (node.services !== services) throw new StoreError('sealed', 'transitd is sealed');
  if (exchange !== undefined && source === 'active' && !(await stillLeads(node.eligibility)))
    throw new StoreError('not_leader', 'this node is not the active one'); // no NotActive: the token has lost a use
  checkPlaces(operation, granted);
  const reply = await operation.run({ node, services, principal, token }, granted);
  return wrapTtlS === 0 ? reply : wrapped(services, reply, { path: canonical, wrapTtlS, owner: ownerOf(principal) });
}

/**
 * Wraps a reply that has a JSON body. A reply that cannot be wrapped is not sent at all. If it contains a new token, which the caller has
 * not seen, the token is revoked.
 */
export async function wrapped(
  { wrapping, registry }: Services,
  reply: Reply,
  { path, wrapTtlS, owner }: { readonly path: string; readonly wrapTtlS: number; readonly owner: string },
): Promise<Reply> {
  const { status, issued, onSent } = reply;
  if (reply.headers?.['Content-Type'] !== undefined) return reply;
  try {
    const encoded = encode(reply);
    if (encoded.body === undefined) return reply;
    checkSize(bodyBytesOf(encoded.body));
    const body = joined(encoded.body) + (await restOf(encoded));
    const answer = { owner, status, path, ttlS: wrapTtlS, wrappedAccessor: issued?.accessor ?? '', body };
    return { ...wrapReply(await wrapping.wrap(answer)), ...(issued && { issued }), ...(onSent && { onSent }) };
  } catch (error) {
    if (issued !== undefined) await registry.revoke({ token: issued.token }).catch(() => false); // otherwise the token ends with its TTL
    throw error;
  }
}

/** Checked before the body is joined and encoded as a record, which takes long for a body that cannot be stored anyway. */
function checkSize(bytes: number): void {
  if (bytes > transactionBytesMax) throw new StoreError('too_large', 'the response is too large to be wrapped');
}

/** Returns the part of a body that is in a stream. @throws StoreError `too_large` if it cannot be stored */
async function restOf({ stream }: Encoded): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    checkSize(bytes);
  }
  return Buffer.concat(chunks).toString();
}

/**
 * Returns the caller to whose share a wrapped response counts: the user or role of a login, so that further logins give no further share,
 * or else the token.
 */
const ownerOf = ({ id, record }: Principal): string => record.source || id;

/**
 * Decides whether this node may send the response. The active node responds to a change once the change is in force on every node. A
 * standby responds only with a success, and only if its state is still fresh. It forwards a request that it would refuse to the active
 * node, which may already know a key or a capability that was added a moment ago.
 */
export function respond(
  request: CompleteRequest,
  outcome: Outcome,
  { node, forwarded }: PipelineOptions,
): Outcome | Promise<Outcome> {
  const { operation, source, where } = request;
  if (source === 'reader') return respondAsStandby(request, outcome, node);
  const isChange = where === 'leader' || (operation.mayWrite === true && forwarded === true);
  return isChange && outcome.kind === 'replied' ? respondToChange(request, outcome, node) : outcome;
}

async function respondToChange({ operation, where }: CompleteRequest, outcome: Replied, node: Node): Promise<Outcome> {
  const { reply } = outcome;
  const adds = takesNothingAway.has(operation.name) || where !== 'leader' || reply.status >= 400;
  const index = await node.eligibility.waitUntilInForce({ adds });
  return index === undefined ? outcome : replied({ ...reply, headers: { ...reply.headers, ...indexHeaders(index) } });
}

async function respondAsStandby({ bytes, principal, exchange }: CompleteRequest, outcome: Outcome, node: Node): Promise<Outcome> {
  if (outcome.kind === 'transferred') return outcome;
  if (outcome.kind === 'refused') {
    const { error } = outcome;
    // If this node has become the leader meanwhile, it may have proposed a change. The change must not be executed again on another node.
    if (isAuditFailure(error) || !isRefusal(error) || error.code === 'outcome_unknown') return outcome;
  }
  const isFresh = (): boolean => node.eligibility.readRole !== undefined;
  if (outcome.kind === 'replied' && outcome.reply.status < 400 && isFresh()) {
    if (exchange === undefined) return outcome;
    const reply = await exchange.end(outcome.reply, { isDone: node.active });
    if (isFresh()) return replied(reply); // checked again, because writing the audit entries took time
  }
  return forwardToActive(bytes ?? Buffer.alloc(0), principal.id);
}

const lostIndexWarning =
  `${indexHeader} names a state that this cluster does not have: ` +
  'it was promoted without it, or the index is of another cluster. The response has a new index';

/**
 * Adds a warning and a new index to the response to a request whose index was lost in a promotion. A client that sends the new index from
 * now on reads its own writes again.
 */
export function warnedOfLostIndex(
  outcome: Outcome,
  { req: { headers }, verb, operation }: Pick<RoutedRequest, 'req' | 'verb' | 'operation'>,
  { eligibility }: Pick<Node, 'eligibility'>,
): Outcome {
  if (!wantsIndex(headers) || outcome.kind !== 'replied' || whereOf(operation, verb) === 'here') return outcome;
  const wanted = indexWanted(headers);
  const index = eligibility.serviceIndex;
  if (wanted === undefined || index === undefined || !eligibility.hasLost(wanted)) return outcome;
  const reply = replyWithWarnings(outcome.reply, [lostIndexWarning]);
  return replied({ ...reply, headers: { ...indexHeaders(index), ...reply.headers } });
}

/**
 * Records an outcome, so that this node sends no response before both audit entries are written. A forwarded request is recorded on the
 * active node.
 * @param failure - makes the reply to a refusal
 * @returns the outcome with the id of its audit entries; Refused with `audit_failed` if the entries cannot be written
 */
export async function record(
  outcome: Outcome,
  exchange: Exchange,
  services: Services | undefined,
  failure: (refused: Refused) => Reply,
): Promise<Outcome> {
  const reply = replyToRecord(outcome, exchange, failure);
  if (reply === undefined) return outcome;
  if (outcome.kind === 'refused' && outcome.error instanceof Refusal) exchange.setRefusedBy(outcome.error.refusedBy);
  try {
    const answer = await exchange.end(reply);
    return outcome.kind === 'transferred' ? outcome : replied(answer);
  } catch (error) {
    discardReply(reply);
    // The caller will not see the new token, so it is revoked.
    if (reply.issued !== undefined) await services?.registry.revoke({ token: reply.issued.token }).catch(() => false);
    return outcomeOf(error);
  }
}

/** Returns the reply to record; undefined if this node did not decide the request. */
function replyToRecord(outcome: Outcome, exchange: Exchange, failure: (refused: Refused) => Reply): Reply | undefined {
  if (outcome.kind === 'replied') return outcome.reply;
  const { begun } = exchange;
  if (outcome.kind === 'transferred') return begun ? leadershipTransferred : undefined;
  if (outcome.kind !== 'refused') return undefined;
  const { error } = outcome;
  return isAuditFailure(error) || (!begun && isUndecided(error)) ? undefined : failure(outcome);
}

const isAuditFailure = (error: unknown): boolean => error instanceof AuditError;

/** Returns whether a refusal means that this node did not decide the request, or did not even begin to process it. */
const isUndecided = (error: unknown): boolean =>
  isRefusal(error) &&
  ['index_not_reached', 'leader_changed', 'not_leader', 'overloaded', 'rate_limited', 'sealed', 'stopped'].includes(error.code);

/** Sends the response. Data that has no JSON form is a fault of an operation: `failure` makes the reply to it. */
export function send(
  { req, res }: Pick<RoutedRequest, 'req' | 'res'>,
  reply: Reply,
  options: PipelineOptions,
  failure: (refused: Refused) => Reply,
): void {
  const sending = { head: false, address: () => addressOf(req, options) };
  try {
    sendReply(res, reply, sending);
  } catch (error) {
    sendReply(res, failure(refusedWith(error)), sending);
  }
}
