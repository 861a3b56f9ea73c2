import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AuditWriter, Exchange } from '@transitd/audit';
import { isStreamed, type Reply, sendReply, tokenOf } from '@transitd/http';
import type { Services } from '@transitd/node';
import { release } from '@transitd/process';
import type { GuardedOperation } from '../operation/operation.ts';
import { isOrdinary } from '../operation/rights.ts';
import { exchangeOf } from './audit-recording.ts';
import { checkPlaces, RequestBodies } from './body-reading.ts';
import { addressOf, certificateOf } from './caller-address.ts';
import type { Limits } from './limits.ts';
import { errorReply, isRefusal } from './refusals.ts';
import type { CompleteRequest, RouteMatch } from './request.ts';
import { authorize, callOf, readBody, tryPlace } from './stages.ts';

export interface GatewayPipelineOptions {
  /** Returns the services if this thread may answer from them now, with every change in force. @see GatewayServices.look */
  readonly look: () => Services | undefined;
  /** This thread's share of the node's limits. */
  readonly limits: Limits;
  readonly bodyBytesMax: number;
  /** CIDR blocks of the proxies whose `X-Forwarded-For` header is trusted. */
  readonly trustedProxies?: readonly string[];
  /** Absent if requests are not audited. */
  readonly audit?: AuditWriter | undefined;
  /** Called when a request begins here; the returned function is called once it is answered or passed on. */
  readonly begun: () => () => void;
  /** Called for each answer of this thread. */
  readonly answered: (operation: string, ms: number, status: number) => void;
  /** Passes the request to the main thread, which answers it. @param body - the body, if this thread has read it */
  readonly pass: (req: IncomingMessage, res: ServerResponse, body?: Buffer) => void;
}

/** A request that a gateway may answer. */
export interface GatewayRequest extends RouteMatch {
  readonly operation: GuardedOperation & Required<Pick<GuardedOperation, 'inGateway'>>;
  readonly services: Services;
}

/** How far a request has come. */
interface Progress {
  readonly address: string;
  readonly exchange: Exchange | undefined;
  bytes: Buffer | undefined;
  isReadingBody: boolean;
}

/**
 * Answers requests in a gateway thread as a performance standby does (decision 40): only successes, and only while the state of this thread
 * is current. Passes every other request to the main thread, complete and before anything was done.
 *
 * A request takes a look at the shared memory when it begins, after its body, and before its answer. Each look takes all published changes.
 * The rights must be the same at the last two looks. So the answer is correct for one moment between them, and includes every change that
 * was answered before the request began.
 */
export class GatewayPipeline {
  readonly #options: GatewayPipelineOptions;
  readonly #bodies: RequestBodies;

  constructor(options: GatewayPipelineOptions) {
    this.#options = options;
    this.#bodies = new RequestBodies(options);
  }

  /** Answers the request, or passes it to the main thread. */
  async serve(req: IncomingMessage, res: ServerResponse, request: GatewayRequest): Promise<void> {
    const { limits, pass, begun, answered, audit } = this.#options;
    const begunMs = performance.now();
    const ended = begun();
    const address = addressOf(req, this.#options);
    const exchange = exchangeOf(req, request, address, { audit, node: request });
    exchange?.defer();
    const progress: Progress = { address, exchange, bytes: undefined, isReadingBody: false };
    let reply: Reply | undefined;
    try {
      reply = await this.#answer(req, res, request, progress);
    } catch (error) {
      // A part of the body was read, so no other thread can answer. These refusals depend on the connection only.
      if (progress.isReadingBody) reply = await bodyRefusal(error, exchange);
    }
    ended();
    if (reply !== undefined && sends(res, reply, address)) {
      answered(request.operation.name, performance.now() - begunMs, reply.status);
      reply.onSent?.();
      if (progress.bytes !== undefined) release(progress.bytes);
    } else if (progress.isReadingBody) res.destroy();
    else if (!res.destroyed) pass(req, res, progress.bytes);
    limits.bodies.answered(res);
  }

  /** Returns the answer; undefined if the main thread has to answer. */
  async #answer(
    req: IncomingMessage,
    res: ServerResponse,
    request: GatewayRequest,
    progress: Progress,
  ): Promise<Reply | undefined> {
    const { services } = request;
    const { address, exchange } = progress;
    const token = tokenOf(req.headers);
    if (token === undefined) return undefined;
    const { epoch } = services.tokens;
    const found = services.tokens.authenticate(token);
    const principal = found instanceof Promise ? await found : found;
    const certificate = certificateOf(req, {});
    if (principal === undefined || !isOrdinary(principal, { address, certificate }, services.tokens.nowMs)) return undefined;
    exchange?.setCaller(token, principal);
    const common = { token, principal, epoch, source: 'reader', where: 'replica', wrapTtlS: 0 } as const;
    const known = { ...request, ...common, req, res, address, certificate, exchange };
    const body = readBody(known, this.#bodies);
    progress.isReadingBody = body instanceof Promise;
    progress.bytes = body instanceof Promise ? await body : body;
    progress.isReadingBody = false;
    const complete = { ...known, bytes: progress.bytes };
    // The main thread has the only queue, so that no request waits twice, and callers take turns over all threads.
    const free = tryPlace(complete, this.#options.limits);
    if (free === undefined) return undefined;
    const place = free instanceof Promise ? await free : free;
    try {
      return await this.#execute(complete);
    } finally {
      place[Symbol.dispose]();
    }
  }

  async #execute(request: CompleteRequest & GatewayRequest): Promise<Reply | undefined> {
    const { services, operation, token, exchange } = request;
    const made = callOf(request);
    const call = made instanceof Promise ? await made : made;
    if (!isCurrent(this.#options.look(), request)) return undefined;
    const { tokens, mounts } = services;
    const { epoch } = tokens;
    const { engines } = mounts;
    const rightsHold = (): boolean =>
      isCurrent(this.#options.look(), request) && tokens.epoch === epoch && mounts.engines === engines;
    const { principal, granted } = await authorize(request, call);
    checkPlaces(operation, granted);
    const reply = await operation.inGateway({ services, principal, token }, granted);
    if (reply.status >= 300 || isStreamed(reply) || reply.issued !== undefined || !rightsHold()) return undefined;
    if (exchange === undefined) return reply;
    const recorded = await exchange.end(reply, { isDone: false });
    return rightsHold() ? recorded : undefined; // looked at again, because writing the audit entries took time
  }
}

/** Returns whether a request may be answered from the services that it began with: they are current, and no change is still being read. */
export const isCurrent = (
  now: Services | undefined,
  { services, canonical }: Pick<GatewayRequest, 'services' | 'canonical'>,
): boolean => now === services && services.mounts.changing === undefined && !services.quotas.mayCount(canonical);

/** Sends an answer. Returns false for data without a JSON form: the main thread gets the same data, and answers with an internal error. */
function sends(res: ServerResponse, reply: Reply, address: string): boolean {
  try {
    sendReply(res, reply, { head: false, address: () => address });
    return true;
  } catch {
    return false;
  }
}

/** Returns the reply to a failure while the body was read; undefined if the connection has to be closed. */
async function bodyRefusal(error: unknown, exchange: Exchange | undefined): Promise<Reply | undefined> {
  if (!isRefusal(error)) return undefined;
  const reply = errorReply(error);
  try {
    return exchange === undefined ? reply : await exchange.end(reply);
  } catch (failure) {
    return isRefusal(failure) ? errorReply(failure) : reply;
  }
}
