import type { RequestPath, Verb } from '@transitd/http';
import type { Services } from '@transitd/node';
import { isBelowMount, MountRoutes } from '../operation/mount-routes.ts';
import type { Operation, Params, Route } from '../operation/operation.ts';
import { canonicalPath, namePlaceOf } from '../operation/path-forms.ts';
import { PlainRoutes } from '../operation/plain-routes.ts';
import type { RouteMatch } from './request.ts';
import { guardedWithoutVerb, openWithoutVerb, slashAtEnd, unknownPath } from './unrouted.ts';

/** The parsed head of a request. The path is decoded once, when the head is parsed. */
export interface RequestHead {
  readonly path: RequestPath;
  /** The target in the request line. */
  readonly url: string;
  /** Undefined if no operation has this verb. */
  readonly verb: Verb | undefined;
}

/** Finds the operation of a request in the table of routes (decision 113). */
export class RouteFinder {
  readonly #belowMounts: MountRoutes;
  readonly #plain: PlainRoutes;

  constructor(routes: readonly Route[]) {
    this.#belowMounts = new MountRoutes(routes.filter(isBelowMount));
    this.#plain = new PlainRoutes(routes.filter((route) => !isBelowMount(route)));
  }

  /**
   * Returns the operation and its parameters; a path without an operation leads to one that refuses it.
   * @param mounts - absent on a node without services
   * @throws StoreError `sealed`
   */
  find(head: RequestHead, mounts: Services['mounts'] | undefined): RouteMatch {
    const { path, verb } = head;
    const mount = mounts?.under(path.segments);
    const found = mount && this.#belowMounts.find(path.segments, mount);
    const operation = found && operationAt(found.route, head);
    if (found !== undefined && operation !== undefined) return matchOf(head, operation, found);
    for (const match of this.#plain.matches(path.segments)) {
      const matching = operationAt(match.route, head);
      if (matching !== undefined) return matchOf(head, matching, match);
    }
    return matchOf(head, path.trailingSlash && verb !== 'LIST' ? slashAtEnd : unknownPath, { params: {} });
  }
}

function matchOf(
  { path, url, verb }: RequestHead,
  operation: Operation,
  { route, params }: { readonly route?: Route; readonly params: Params },
): RouteMatch {
  const canonical = route === undefined ? path.path : canonicalPath(route, path.path, path.segments);
  const namePlace = route && namePlaceOf(route, path.segments);
  // An unknown verb leads only to operations that refuse it. The body is read as for a POST.
  return { path, canonical, namePlace, url, verb: verb ?? 'POST', operation, params };
}

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
