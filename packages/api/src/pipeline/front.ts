import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import {
  namesNamespace,
  noHandler,
  parsePath,
  RequestError,
  type RequestPath,
  sendReply,
  turns,
  unsupportedOperation,
  unsupportedPath,
  type Verb,
} from '@transitd/http';
import express, { type Express } from 'express';
import { isBelowMount, MountRoutes } from '../operation/mount-routes.ts';
import type { GuardedOperation, OpenOperation, Operation, Route } from '../operation/operation.ts';
import { canonicalParams, canonicalPath, nameAtOf } from '../operation/path-forms.ts';
import { failureReply } from './failure.ts';
import { asksHealth, healthReply, isProbe } from './health-reply.ts';
import type { Routed, ServeOptions } from './routed.ts';
import { Pipeline } from './serve.ts';

export interface FrontOptions extends ServeOptions {
  readonly routes: readonly Route[];
}

const verbs: Readonly<Record<string, Verb>> = { GET: 'GET', POST: 'POST', PUT: 'POST', DELETE: 'DELETE', LIST: 'LIST' };

/** Everything below `/v1/`: health from memory, what lies below a mount by a look-up, the rest by Express (decision 75). */
export function createFront(options: FrontOptions): RequestListener {
  const pipeline = new Pipeline(options);
  const belowMounts = new MountRoutes(options.routes.filter(isBelowMount));
  const serve: Serve = (req, res, { path, url, verb }, operation, params, route) => {
    const canonical = route === undefined ? path.path : canonicalPath(route, path.path, path.segments);
    const nameAt = route && nameAtOf(route);
    // A verb that no operation has comes only to operations that refuse it, and what is read of its body is what a POST's would be.
    void pipeline.serve(req, res, { path, canonical, nameAt, url, verb: verb ?? 'POST', operation, params });
  };
  const app = createApp(
    options.routes.filter((route) => !isBelowMount(route)),
    serve,
  );

  const answer = (req: IncomingMessage, res: ServerResponse): void => {
    checkHead(req);
    const url = req.url ?? '';
    const path = parsePath(url);
    if (asksHealth(path)) {
      sendReply(res, healthReply(options.node, req, path), { head: req.method === 'HEAD' });
      return;
    }
    if (namesNamespace(req.headers)) throw new RequestError('namespace_not_found', 'namespace not found');
    const routing = { path, url, verb: verbOf(req, path) };
    const mount = options.node.services?.mounts.under(path.segments);
    const found = mount && belowMounts.find(path.segments, mount);
    const operation = found && operationAt(found.route, routing);
    if (found !== undefined && operation !== undefined) {
      serve(req, res, routing, operation, found.params, found.route);
      return;
    }
    req.url = canonicalUrl(path);
    app(Object.assign(req, { routing }), res);
  };

  const answerOrFail = (req: IncomingMessage, res: ServerResponse): void => {
    try {
      answer(req, res);
    } catch (error) {
      sendReply(res, failureReply(error, options), { head: req.method === 'HEAD' });
    }
  };

  const begin = (req: IncomingMessage, res: ServerResponse): void => {
    const changing = options.node.services?.mounts.changing;
    if (changing === undefined) answerOrFail(req, res);
    else void changing.then(() => answerOrFail(req, res));
  };

  return (req, res) => {
    const turn = isProbe(req) ? undefined : turns.next();
    if (turn === undefined) begin(req, res);
    else void turn.then(() => res.destroyed || begin(req, res));
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

/** The path as Express is to see it: encoded anew, so that it decodes to exactly the segments that were checked. */
const canonicalUrl = ({ segments }: RequestPath): string => `/${segments.map(encodeURIComponent).join('/')}`;

/** What a request asks for, read once. */
interface Routing {
  readonly path: RequestPath;
  readonly url: string;
  /** Undefined for one that no operation has. */
  readonly verb: Verb | undefined;
}

type Serve = (
  req: IncomingMessage,
  res: ServerResponse,
  routing: Routing,
  operation: Operation,
  params: Routed['params'],
  /** Absent where no route is. */
  route?: Route,
) => void;

/** What a route does for a verb, be it to refuse it; undefined where the slash at the end of the path makes it another one. */
function operationAt({ operations }: Route, { verb, path }: Routing): Operation | undefined {
  // GET where a list lies is a list that lacks its verb.
  if (path.trailingSlash && verb !== 'LIST' && !(verb === 'GET' && operations.LIST !== undefined)) return undefined;
  const operation = verb && operations[verb];
  if (operation !== undefined) return operation;
  return Object.values(operations).some(({ access }) => access === 'open') ? openWithoutVerb : guardedWithoutVerb;
}

function createApp(routes: readonly Route[], serve: Serve): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').enable('case sensitive routing').enable('strict routing');
  for (const route of routes) {
    app.route(`/${route.path}`).all((req, res, next) => {
      const params = canonicalParams(route, req.params as Routed['params']);
      if (route.accepts !== undefined && !route.accepts(params)) return next();
      const { routing } = req as unknown as { readonly routing: Routing };
      const operation = operationAt(route, routing);
      if (operation === undefined) return next();
      serve(req, res, routing, operation, params, route);
      return undefined;
    });
  }
  app.use((req, res) => {
    const { routing } = req as unknown as { readonly routing: Routing };
    serve(req, res, routing, routing.path.trailingSlash && routing.verb !== 'LIST' ? slashAtEnd : unknownPath, {});
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
  run: ({ services }, { path }) => {
    const known =
      /^(?:sys|auth\/token)\//.test(path) ||
      services.mounts.list.some((mount) => path === mount.path || path.startsWith(`${mount.path}/`));
    throw known ? unsupportedPath() : noHandler(path);
  },
};
