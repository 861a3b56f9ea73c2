import type { IncomingMessage, ServerResponse } from 'node:http';
import { allows, type Principal, withinCidrs } from '@transitd/access';
import { StoreError } from '@transitd/storage-fsm';
import type { Call, GuardedOperation, Operation, Verb } from '../api/operation.ts';
import type { Logger } from '../log.ts';
import type { Metrics } from '../metrics.ts';
import type { Node } from '../node/node.ts';
import { announcesBody, readBody } from './body.ts';
import { callerAddress } from './caller-address.ts';
import { errorReply, isRefusal, permissionDenied, RequestError } from './error-answer.ts';
import { type Body, parseBody, queryBody } from './json.ts';
import type { RequestPath } from './path.ts';
import { type Reply, sendReply } from './reply.ts';
import { tokenOf, wantsWrapping } from './token-header.ts';
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

  async #reply(req: IncomingMessage, res: ServerResponse, { path, verb, operation, params }: Routed): Promise<Reply> {
    const { node } = this.#options;
    const address = callerAddress(req, this.#options.trustedProxies ?? []);
    const call = (body: Body): Call => ({ verb, path: path.path, params, query: path.query, body });
    if (operation.access === 'open') {
      const asked = call(await this.#body(req, res, verb, path, anonymousBodyBytesMax));
      return operation.run(node, asked, { address, token: tokenOf(req.headers) });
    }
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
    // A secret must not leave in clear because the header that asked for it wrapped is not known yet.
    if (wantsWrapping(req.headers)) throw new RequestError('invalid_request', 'response wrapping is not supported');
    const asked = call(await this.#body(req, res, verb, path, this.#options.bodyBytesMax));
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
    return operation.run({ node, service, principal, token }, asked);
  }

  async #body(req: IncomingMessage, res: ServerResponse, verb: Verb, { query }: RequestPath, bytesMax: number): Promise<Body> {
    const bytes = announcesBody(req) ? await readBody(req, res, { bytesMax, deadlineMs: bodyDeadlineMs }) : undefined;
    if (verb === 'GET' || verb === 'LIST') return queryBody(query);
    return bytes === undefined ? emptyBody : parseBody(bytes, req.headers['content-type']);
  }
}

function ignoreTooLarge(error: unknown): void {
  if (!(error instanceof RequestError) || error.code !== 'body_too_large') throw error;
}

const emptyBody: Body = Object.freeze(Object.create(null));
const verbCapability = { GET: 'read', LIST: 'list', DELETE: 'delete', POST: 'update' } as const;

function mayRun(principal: Principal, { capability, sudo }: GuardedOperation, { verb, path, body }: Call): boolean {
  if (sudo === true && !allows(principal, 'sudo', verb === 'LIST' ? `${path}/` : path)) return false;
  if (capability !== undefined) return allows(principal, capability, path, body);
  return allows(principal, verbCapability[verb], path, body) || (verb === 'POST' && allows(principal, 'create', path, body));
}
