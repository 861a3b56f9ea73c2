import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { turns } from '@transitd/event-loop';
import { namesNamespace, parsePath, RequestError, type RequestPath, sendReply, type Verb } from '@transitd/http';
import { isBelowMount, MountRoutes } from '../operation/mount-routes.ts';
import type { Operation, Params, Route } from '../operation/operation.ts';
import { canonicalPath, nameAtOf } from '../operation/path-forms.ts';
import { PlainRoutes } from '../operation/plain-routes.ts';
import { failureReply } from './failure.ts';
import { asksHealth, healthReply, isProbe } from './health-reply.ts';
import { Pipeline } from './pipeline.ts';
import type { PipelineOptions } from './request.ts';
import { checkHead, verbOf } from './request-head.ts';
import { guardedWithoutVerb, openWithoutVerb, slashAtEnd, unknownPath } from './unrouted.ts';

export interface RouterOptions extends PipelineOptions {
  readonly routes: readonly Route[];
}

/** The parsed head of a request. The path is decoded once, when the head is parsed. */
interface RequestHead {
  readonly path: RequestPath;
  /** The target in the request line. */
  readonly url: string;
  /** Undefined if no operation has this verb. */
  readonly verb: Verb | undefined;
}

/** Routes requests below `/v1/`: health from memory, everything else by lookup in the table of routes (decision 113). */
export function createRouter(options: RouterOptions): RequestListener {
  const pipeline = new Pipeline(options);
  const belowMounts = new MountRoutes(options.routes.filter(isBelowMount));
  const serve: Serve = (req, res, { path, url, verb }, operation, params, route) => {
    const canonical = route === undefined ? path.path : canonicalPath(route, path.path, path.segments);
    const nameAt = route && nameAtOf(route);
    // An unknown verb leads only to operations that refuse it. The body is read as for a POST.
    void pipeline.serve(req, res, { path, canonical, nameAt, url, verb: verb ?? 'POST', operation, params });
  };
  const plain = new PlainRoutes(options.routes.filter((route) => !isBelowMount(route)));

  const route = (req: IncomingMessage, res: ServerResponse): void => {
    checkHead(req);
    const url = req.url ?? '';
    const path = parsePath(url);
    if (asksHealth(path)) {
      sendReply(res, healthReply(options.node, req, path), { head: req.method === 'HEAD' });
      return;
    }
    if (namesNamespace(req.headers)) throw new RequestError('namespace_not_found', 'namespace not found');
    const head = { path, url, verb: verbOf(req, path) };
    const mount = options.node.services?.mounts.under(path.segments);
    const found = mount && belowMounts.find(path.segments, mount);
    const operation = found && operationAt(found.route, head);
    if (found !== undefined && operation !== undefined) {
      serve(req, res, head, operation, found.params, found.route);
      return;
    }
    for (const match of plain.matches(path.segments)) {
      const matching = operationAt(match.route, head);
      if (matching !== undefined) {
        serve(req, res, head, matching, match.params, match.route);
        return;
      }
    }
    serve(req, res, head, path.trailingSlash && head.verb !== 'LIST' ? slashAtEnd : unknownPath, {});
  };

  const routeOrRefuse = (req: IncomingMessage, res: ServerResponse): void => {
    try {
      route(req, res);
    } catch (error) {
      sendReply(res, failureReply(error, options), { head: req.method === 'HEAD' });
    }
  };

  /** Routes the request once a pending change of the mounts is in force. */
  const begin = (req: IncomingMessage, res: ServerResponse): void => {
    const changing = options.node.services?.mounts.changing;
    if (changing === undefined) routeOrRefuse(req, res);
    else void changing.then(() => routeOrRefuse(req, res));
  };

  return (req, res) => {
    const turn = isProbe(req) ? undefined : turns.next();
    if (turn === undefined) begin(req, res);
    else void turn.then(() => res.destroyed || begin(req, res));
  };
}

type Serve = (
  req: IncomingMessage,
  res: ServerResponse,
  head: RequestHead,
  operation: Operation,
  params: Params,
  /** Absent if there is no route. */
  route?: Route,
) => void;

/**
 * Returns the operation for a verb, or an operation that refuses the verb. Returns undefined if the path ends with a slash and is therefore
 * a different path.
 */
function operationAt({ operations }: Route, { verb, path }: RequestHead): Operation | undefined {
  // A GET may also have the trailing slash of a list, if the path has a LIST.
  if (path.trailingSlash && verb !== 'LIST' && !(verb === 'GET' && operations.LIST !== undefined)) return undefined;
  const operation = verb && operations[verb];
  if (operation !== undefined) return operation;
  return Object.values(operations).some(({ access }) => access === 'open') ? openWithoutVerb : guardedWithoutVerb;
}
