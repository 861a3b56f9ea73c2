import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { turns } from '@transitd/event-loop';
import { namesNamespace, parsePath, RequestError, sendReply } from '@transitd/http';
import type { Route } from '../operation/operation.ts';
import { ControlRoutes } from './control-routes.ts';
import { failureReply } from './failure.ts';
import { asksHealth, healthReply, isProbe } from './health-reply.ts';
import { Pipeline } from './pipeline.ts';
import type { PipelineOptions } from './request.ts';
import { checkHead, verbOf } from './request-head.ts';
import { isLookedUp, RouteLookup } from './route-lookup.ts';

export interface RouterOptions extends PipelineOptions {
  readonly routes: readonly Route[];
}

/** Routes requests below `/v1/`: health from memory, frequent operations by a look-up, the rest with Express (decision 113). */
export function createRouter(options: RouterOptions): RequestListener {
  const pipeline = new Pipeline(options);
  const lookup = new RouteLookup(options.routes.filter(isLookedUp));
  const control = new ControlRoutes(options.routes.filter((route) => !isLookedUp(route)));

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
    void pipeline.serve(req, res, lookup.find(head, options.node.services?.mounts) ?? control.find(head));
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
