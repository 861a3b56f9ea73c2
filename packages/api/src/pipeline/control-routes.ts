import { createRequire } from 'node:module';
import type { Route } from '../operation/operation.ts';
import { isParam, type Pattern, patternOf } from '../operation/path-forms.ts';
import type { RouteMatch } from './request.ts';
import { matchAt, type RequestHead } from './route-lookup.ts';
import { slashAtEnd, unknownPath } from './unrouted.ts';

/** Express is loaded where its router is used: gateway threads have none. */
const loadExpress = (): typeof import('express') => createRequire(import.meta.url)('express');

/** One pass of the router over its routes, in place of a request. */
interface Walk {
  readonly method: 'GET';
  readonly url: string;
  /** The route at which the router stopped; undefined if no further route matches. */
  stop: { readonly pattern: Pattern; readonly next: () => void } | undefined;
  failure: unknown;
}

/** What we use of Express's router. Its type wants a request and a response. */
interface WalkRouter {
  (walk: Walk, response: undefined, end: (error?: unknown) => void): void;
  all(path: string, step: (walk: Walk, response: undefined, next: () => void) => void): void;
}

/**
 * Finds the operations of the control plane with Express's router (decision 113).
 *
 * The router only matches paths. It gets a `Walk` instead of the request and no response, so it can neither change a request nor answer
 * one. It stops at each route that matches; what the route accepts is decided outside of it, because it would catch our errors.
 */
export class ControlRoutes {
  readonly #router: WalkRouter;

  /** @param routes - routes in order of precedence */
  constructor(routes: readonly Route[]) {
    const router = loadExpress().Router({ caseSensitive: true, strict: true }) as unknown as WalkRouter;
    for (const pattern of routes.map(patternOf))
      router.all(expressPath(pattern), (walk, _response, next) => {
        walk.stop = { pattern, next };
      });
    this.#router = router;
  }

  /** Returns the operation and its parameters; a path without an operation leads to one that refuses it. */
  find(head: RequestHead): RouteMatch {
    const { path, url, verb } = head;
    // Encoded again, so that the router sees exactly the segments that were checked, and has nothing to refuse when it decodes them.
    const encoded = `/${path.segments.map(encodeURIComponent).join('/')}`;
    const walk: Walk = { method: 'GET', url: encoded, stop: undefined, failure: undefined };
    this.#router(walk, undefined, (error) => {
      walk.failure = error ?? undefined;
    });
    while (walk.stop !== undefined) {
      const { pattern, next } = walk.stop;
      const match = matchAt(pattern, head);
      if (match !== undefined) return match;
      walk.stop = undefined;
      next();
    }
    if (walk.failure !== undefined) throw walk.failure;
    const operation = path.trailingSlash && verb !== 'LIST' ? slashAtEnd : unknownPath;
    return { path, canonical: path.path, url, verb: verb ?? 'POST', operation, params: {} };
  }
}

/** Returns the path of a route as Express writes it. Both write parameters alike. */
const expressPath = ({ parts }: Pattern): string =>
  parts.map((part) => `/${isParam(part) ? part : encodeURIComponent(part).replace(/[!*()]/g, '\\$&')}`).join('');
