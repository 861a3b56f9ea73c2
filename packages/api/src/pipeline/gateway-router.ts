import type { IncomingHttpHeaders, IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { turns } from '@transitd/event-loop';
import type { NodeStatus } from '@transitd/health';
import { parsePath, type Reply, sendReply } from '@transitd/http';
import type { Operation, Route } from '../operation/operation.ts';
import { GatewayPipeline, type GatewayPipelineOptions, type GatewayRequest, isCurrent } from './gateway-pipeline.ts';
import { asksHealth, healthReply, isProbe } from './health-reply.ts';
import { errorReply, isRefusal } from './refusals.ts';
import { checkHead, verbOf } from './request-head.ts';
import { isLookedUp, RouteLookup } from './route-lookup.ts';

interface GatewayRouterOptions extends GatewayPipelineOptions {
  readonly routes: readonly Route[];
  /** Returns the status that health reports, if this node is certainly the active one. @see GatewayServices.activeStatus */
  readonly activeStatus: () => NodeStatus | undefined;
  /** Longest body that this thread reads, in bytes; a request with a longer one is passed on unread. */
  readonly bodyBytesHere: number;
}

/** Requests with one of these headers depend on more than the state: on other nodes, namespaces, the connection, a trace. */
const headersPassed = [
  ...['x-service-wrap-ttl', 'x-vault-wrap-ttl', 'x-service-index', 'x-vault-index', 'x-service-forward', 'x-vault-forward'],
  ...['x-service-namespace', 'x-vault-namespace', 'expect', 'transfer-encoding', 'upgrade', 'traceparent'],
] as const;

/** Routes requests in a gateway thread: to the pipeline if this thread may answer them, otherwise to the main thread. */
export function createGatewayRouter(options: GatewayRouterOptions): RequestListener {
  const { look, activeStatus, pass, bodyBytesHere } = options;
  const pipeline = new GatewayPipeline(options);
  const lookup = new RouteLookup(options.routes.filter(isLookedUp));
  const passedInARow = new PassedInARow();

  const requestOf = (req: IncomingMessage, res: ServerResponse): GatewayRequest | undefined => {
    if (!isPlain(req.headers) || Number(req.headers['content-length'] ?? 0) > bodyBytesHere) {
      passedInARow.passed(req, res);
      return undefined;
    }
    const services = look();
    if (services === undefined) return undefined;
    const url = req.url ?? '';
    const path = parsePath(url);
    const match = lookup.find({ path, url, verb: verbOf(req, path) }, services.mounts);
    if (match === undefined || !isOfGateway(match.operation)) {
      passedInARow.passed(req, res);
      return undefined;
    }
    passedInARow.served(req);
    const request = { ...match, operation: match.operation, services };
    return isCurrent(services, request) ? request : undefined;
  };

  /** Answers a probe of the active node; returns undefined if the main thread has to. */
  const healthOf = (req: IncomingMessage): Reply | undefined => {
    if (!isProbe(req) || !isPlain(req.headers)) return undefined;
    const path = parsePath(req.url ?? '');
    const status = asksHealth(path) ? activeStatus() : undefined;
    return status && healthReply({ status }, req, path);
  };

  const begin = (req: IncomingMessage, res: ServerResponse): void => {
    let request: GatewayRequest | undefined;
    try {
      checkHead(req);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      sendReply(res, errorReply(error), { head: req.method === 'HEAD' }); // the main thread would not see this head
      return;
    }
    try {
      const health = healthOf(req);
      if (health !== undefined) {
        sendReply(res, health, { head: req.method === 'HEAD' });
        return;
      }
      request = requestOf(req, res);
    } catch {
      // The main thread finds the same fault, and answers it.
    }
    if (request === undefined) pass(req, res);
    else void pipeline.serve(req, res, request);
  };

  return (req, res) => {
    const turn = isProbe(req) ? undefined : turns.next();
    if (turn === undefined) begin(req, res);
    else void turn.then(() => res.destroyed || begin(req, res));
  };
}

const isOfGateway = (operation: Operation): operation is GatewayRequest['operation'] => 'inGateway' in operation;

const isPlain = (headers: IncomingHttpHeaders): boolean => headersPassed.every((name) => headers[name] === undefined);

/**
 * Requests in a row after which a connection is closed. A client with a mix of requests rarely sends so many; one that begins with changes
 * probably goes on with them, but a handshake of TLS costs more than to parse some requests twice.
 */
const inARowMax = { first: 3, later: 16 } as const;

/**
 * Closes connections to a gateway whose requests all run in the main thread, because each of them is parsed twice. The client connects
 * again, sooner or later to the main thread. `Connection: close` in an answer loses nothing: the client knows that it may not send more.
 */
class PassedInARow {
  /** How many more requests of each connection may be passed in a row. */
  readonly #left = new WeakMap<Socket, number>();

  /** Call it before the request is passed. */
  passed({ socket }: IncomingMessage, res: ServerResponse): void {
    const left = (this.#left.get(socket) ?? ('encrypted' in socket ? inARowMax.later : inARowMax.first)) - 1;
    this.#left.set(socket, left);
    if (left <= 0) res.shouldKeepAlive = false;
  }

  /** This thread may answer the request itself. */
  served({ socket }: IncomingMessage): void {
    this.#left.set(socket, inARowMax.later);
  }
}
