import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { healthAnswer, healthResponseText, parseHealthQuery } from '@transitd/health';
import express, { type Express } from 'express';
import { dataPlane } from '../api/data-plane.ts';
import type { GuardedOperation, OpenOperation, Operation, Route, Verb } from '../api/operation.ts';
import type { Node } from '../node/node.ts';
import { announcesBody } from './body.ts';
import { errorsBody } from './envelope.ts';
import { RequestError } from './error-answer.ts';
import { parsePath, type RequestPath } from './path.ts';
import { type Reply, sendReply } from './reply.ts';
import { Pipeline, type Routed, type ServeOptions } from './serve.ts';
import { namespaceOf } from './token-header.ts';

export interface FrontOptions extends ServeOptions {
  readonly routes: readonly Route[];
}

const verbs: Readonly<Record<string, Verb>> = { GET: 'GET', POST: 'POST', PUT: 'POST', DELETE: 'DELETE', LIST: 'LIST' };

/** Everything below `/v1/`: health from memory, the data plane by two look-ups, the rest by Express. */
export function createFront(options: FrontOptions): RequestListener {
  const pipeline = new Pipeline(options);
  const app = createApp(options.routes, pipeline);

  const answer = (req: IncomingMessage, res: ServerResponse): void => {
    const path = parsePath(req.url ?? '');
    if (path.path === 'sys/health' && !path.trailingSlash) {
      sendReply(res, healthReply(options.node, req, path), { head: req.method === 'HEAD' });
      return;
    }
    if (namespaceOf(req.headers) !== '') throw new RequestError('namespace_not_found', 'namespace not found');
    const verb = verbOf(req, path);
    const direct = verb === undefined ? undefined : dataPlane(options.node, path, verb);
    if (direct !== undefined && verb !== undefined) {
      void pipeline.serve(req, res, { path, verb, ...direct });
      return;
    }
    req.url = canonicalUrl(path);
    app(Object.assign(req, { routing: { path, verb } }), res);
  };

  return (req, res) => {
    try {
      answer(req, res);
    } catch (error) {
      sendReply(res, closing(req, pipeline.failure(error)), { head: req.method === 'HEAD' });
    }
  };
}

/** A request refused before its body was read: what follows on the connection is that body, so the connection ends. */
const closing = (req: IncomingMessage, reply: Reply): Reply =>
  !announcesBody(req) || req.complete ? reply : { ...reply, headers: { ...reply.headers, Connection: 'close' } };

/** Undefined for a verb that no operation has. @throws RequestError for `list` that is no boolean */
function verbOf(req: IncomingMessage, { query }: RequestPath): Verb | undefined {
  const verb = verbs[req.method ?? ''];
  if (verb !== 'GET' || query.size === 0) return verb;
  const list = query.get('list');
  if (list === null || list === '' || /^(0|f|F|FALSE|false|False)$/.test(list)) return verb;
  if (/^(1|t|T|TRUE|true|True)$/.test(list)) return 'LIST';
  throw new RequestError('invalid_request', '');
}

/** The path as Express is to see it: encoded anew, so that it decodes to exactly the segments that were checked. */
const canonicalUrl = ({ segments }: RequestPath): string => `/${segments.map(encodeURIComponent).join('/')}`;

interface RoutedRequest extends IncomingMessage {
  readonly routing: { readonly path: RequestPath; readonly verb: Verb | undefined };
}

function createApp(routes: readonly Route[], pipeline: Pipeline): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').enable('case sensitive routing').enable('strict routing');
  const serve = (req: IncomingMessage, res: ServerResponse, operation: Operation, params: Routed['params']): void => {
    const { path, verb } = (req as RoutedRequest).routing;
    void pipeline.serve(req, res, { path, verb: verb ?? 'POST', operation, params });
  };
  for (const { path, accepts, operations } of routes) {
    app.route(`/${path}`).all((req, res, next) => {
      const params = req.params as Readonly<Record<string, string>>;
      if (accepts !== undefined && !accepts(params)) return next();
      const { verb, path: requested } = (req as unknown as RoutedRequest).routing;
      const operation = verb === undefined ? undefined : operations[verb];
      // A slash at the end belongs to lists only.
      if (requested.trailingSlash && verb !== 'LIST' && verb !== 'GET') return next();
      const open = Object.values(operations).some((each) => each.access === 'open');
      serve(req, res, operation ?? (open ? openWithoutVerb : guardedWithoutVerb), params);
      return undefined;
    });
  }
  app.use((req, res) => serve(req, res, unknownPath, {}));
  return app;
}

/** Known path, wrong verb. Asked behind the token like everything else, so that strangers learn nothing of the routes. */
const guardedWithoutVerb: GuardedOperation = {
  name: 'unsupported',
  access: 'token',
  run: () => {
    throw new RequestError('unsupported_operation', 'unsupported operation');
  },
};

const openWithoutVerb: OpenOperation = {
  name: 'unsupported',
  access: 'open',
  run: () => {
    throw new RequestError('unsupported_operation', '');
  },
};

const unknownPath: GuardedOperation = {
  name: 'unknown',
  access: 'token',
  run: ({ service }, { path }) => {
    const known =
      /^(?:sys|auth\/token)\//.test(path) ||
      service.mounts.some((mount) => path === mount.path || path.startsWith(`${mount.path}/`));
    throw known
      ? new RequestError('unsupported_path', 'unsupported path')
      : new RequestError('no_handler', `no handler for route "${path}". route entry not found.`);
  },
};

/** From memory, before authentication, body and limits: what load balancers ask, whatever else the node is doing. */
function healthReply(node: Node, req: IncomingMessage, { query }: RequestPath): Reply {
  const { method } = req;
  if (method !== 'GET' && method !== 'HEAD') return closing(req, { status: 405, body: errorsBody([]) });
  if (namespaceOf(req.headers) !== '') return { status: 400, body: errorsBody(['operation unavailable in namespaces']) };
  const asked = parseHealthQuery(query);
  if (asked === undefined) return { status: 400, body: errorsBody([]) };
  const answer = healthAnswer(node.status, asked, { monotonicMs: performance.now(), utcMs: Date.now() });
  return { status: answer.code, body: healthResponseText(answer) };
}
