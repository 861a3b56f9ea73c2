import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import express, { type Express } from 'express';
import { dataPlane } from '../api/data-plane.ts';
import type { GuardedOperation, OpenOperation, Operation, Route, Verb } from '../api/operation.ts';
import { noHandler, RequestError, unsupportedOperation, unsupportedPath } from './error-answer.ts';
import { failureReply } from './failure.ts';
import { asksHealth, healthReply } from './health-reply.ts';
import { parsePath, type RequestPath } from './path.ts';
import { sendReply } from './reply.ts';
import type { Routed, ServeOptions } from './routed.ts';
import { Pipeline } from './serve.ts';
import { namesNamespace } from './token-header.ts';

export interface FrontOptions extends ServeOptions {
  readonly routes: readonly Route[];
}

const verbs: Readonly<Record<string, Verb>> = { GET: 'GET', POST: 'POST', PUT: 'POST', DELETE: 'DELETE', LIST: 'LIST' };

/** Everything below `/v1/`: health from memory, the data plane by two look-ups, the rest by Express. */
export function createFront(options: FrontOptions): RequestListener {
  const pipeline = new Pipeline(options);
  const app = createApp(options, pipeline);

  const answer = (req: IncomingMessage, res: ServerResponse): void => {
    checkHead(req);
    const url = req.url ?? '';
    const path = parsePath(url);
    if (asksHealth(path)) {
      sendReply(res, healthReply(options.node, req, path), { head: req.method === 'HEAD' });
      return;
    }
    if (namesNamespace(req.headers)) throw new RequestError('namespace_not_found', 'namespace not found');
    const verb = verbOf(req, path);
    const direct = verb === undefined ? undefined : dataPlane(options.node, path, verb);
    if (direct !== undefined && verb !== undefined) {
      void pipeline.serve(req, res, { path, url, verb, ...direct });
      return;
    }
    req.url = canonicalUrl(path, options.node.service?.mounts.under(path.segments)?.depth);
    app(Object.assign(req, { routing: { path, url, verb } }), res);
  };

  const answerOrFail = (req: IncomingMessage, res: ServerResponse): void => {
    try {
      answer(req, res);
    } catch (error) {
      sendReply(res, failureReply(error, options), { head: req.method === 'HEAD' });
    }
  };

  return (req, res) => {
    const changing = options.node.service?.mounts.changing;
    if (changing === undefined) answerOrFail(req, res);
    else void changing.then(() => answerOrFail(req, res));
  };
}

/** A proxy in front could read these heads in another way (RFC 9112 §3, §3.2). @throws RequestError `invalid_request` */
function checkHead({ rawHeaders, httpVersion }: IncomingMessage): void {
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    throw new RequestError('invalid_request', 'a request names its version, HTTP/1.1');
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) {
    throw new RequestError('invalid_request', 'a request of HTTP/1.1 has one Host');
  }
}

/** Undefined for a verb that no operation has. @throws RequestError for `list` that is no boolean, and for a PATCH of no known form */
function verbOf({ method = '', headers }: IncomingMessage, { query }: RequestPath): Verb | undefined {
  const verb = verbs[method];
  if (method === 'PATCH' && !/^\s*application\/merge-patch\+json\s*(?:;|$)/i.test(headers['content-type'] ?? ''))
    throw new RequestError('unsupported_media_type', 'PATCH requires the content type application/merge-patch+json');
  if (verb !== 'GET' || query.size === 0) return verb;
  const list = query.get('list');
  if (list === null || list === '' || /^(0|f|F|FALSE|false|False)$/.test(list)) return verb;
  if (/^(1|t|T|TRUE|true|True)$/.test(list)) return 'LIST';
  throw new RequestError('invalid_request', '');
}

/**
 * The path as Express is to see it: encoded anew, so that it decodes to exactly the segments that were checked. Those of a mount become
 * one, which no caller can send.
 */
const canonicalUrl = ({ segments }: RequestPath, mountDepth = 1): string =>
  `/${[segments.slice(0, mountDepth).join('/'), ...segments.slice(mountDepth)].map(encodeURIComponent).join('/')}`;

interface RoutedRequest extends IncomingMessage {
  readonly routing: { readonly path: RequestPath; readonly url: string; readonly verb: Verb | undefined };
}

function createApp({ routes, node }: FrontOptions, pipeline: Pipeline): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').enable('case sensitive routing').enable('strict routing');
  // A verb that no operation has comes only to operations that refuse it, and what is read of its body is what a POST's would be.
  const serve = (req: IncomingMessage, res: ServerResponse, operation: Operation, params: Routed['params']): void => {
    const { path, url, verb = 'POST' } = (req as RoutedRequest).routing;
    void pipeline.serve(req, res, { path, url, verb, operation, params });
  };
  for (const { path, accepts, operations } of routes) {
    const mounted = path.startsWith(':mount/');
    const open = Object.values(operations).some(({ access }) => access === 'open');
    const withoutVerb = open ? openWithoutVerb : guardedWithoutVerb;
    app.route(`/${path}`).all((req, res, next) => {
      const params = req.params as Readonly<Record<string, string>>;
      if (accepts !== undefined && !accepts(params)) return next();
      if (mounted && node.service?.mounts.engines.has(params['mount'] ?? '') !== true) return next();
      const { verb, path: requested } = (req as unknown as RoutedRequest).routing;
      // GET where a list lies is a list that lacks its verb.
      if (requested.trailingSlash && verb !== 'LIST' && !(verb === 'GET' && operations.LIST !== undefined)) return next();
      serve(req, res, (verb && operations[verb]) ?? withoutVerb, params);
      return undefined;
    });
  }
  app.use((req, res) => {
    const { verb, path } = (req as unknown as RoutedRequest).routing;
    serve(req, res, path.trailingSlash && verb !== 'LIST' ? slashAtEnd : unknownPath, {});
  });
  return app;
}

/** Known path, wrong verb. Asked behind the token like everything else, so that strangers learn nothing of the routes. */
const guardedWithoutVerb: GuardedOperation = {
  name: 'unsupported',
  access: 'token',
  run: () => {
    throw unsupportedOperation();
  },
};

const openWithoutVerb: OpenOperation = {
  name: 'unsupported',
  access: 'open',
  run: () => {
    throw new RequestError('unsupported_operation', '');
  },
};

/** A slash at the end belongs to lists only (it is an empty segment); also behind the token. */
const slashAtEnd: GuardedOperation = {
  name: 'unknown',
  access: 'token',
  run: () => {
    throw new RequestError('invalid_path', 'only the path of a list may end with a slash');
  },
};

const unknownPath: GuardedOperation = {
  name: 'unknown',
  access: 'token',
  run: ({ service }, { path }) => {
    const known =
      /^(?:sys|auth\/token)\//.test(path) ||
      service.mounts.list.some((mount) => path === mount.path || path.startsWith(`${mount.path}/`));
    throw known ? unsupportedPath() : noHandler(path);
  },
};
