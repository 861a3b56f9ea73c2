import type { Route } from '../operation/operation.ts';
import { type Pattern, patternOf } from '../operation/path-forms.ts';
import { PathRouter } from './path-router.ts';
import type { RouteMatch } from './request.ts';
import { matchAt, type RequestHead } from './route-lookup.ts';
import { slashAtEnd, unknownPath } from './unrouted.ts';

/** Finds the operations of the control plane. */
export class ControlRoutes {
  readonly #paths: PathRouter<Pattern>;

  /** @param routes - routes in order of precedence */
  constructor(routes: readonly Route[]) {
    this.#paths = new PathRouter(routes.map((route) => [route.path, patternOf(route)]));
  }

  /** Returns the operation and its parameters; a path without an operation leads to one that refuses it. */
  find(head: RequestHead): RouteMatch {
    const { path, url, verb } = head;
    for (const pattern of this.#paths.matches(path.segments)) {
      const match = matchAt(pattern, head);
      if (match !== undefined) return match;
    }
    const operation = path.trailingSlash && verb !== 'LIST' ? slashAtEnd : unknownPath;
    return { path, canonical: path.path, url, verb: verb ?? 'POST', operation, params: {} };
  }
}
