import type { RequestPath, Verb } from '@transitd/http';
import type { Services } from '@transitd/node';
import { isBelowMount, MountRoutes } from '../operation/mount-routes.ts';
import type { Operation, Params, Route } from '../operation/operation.ts';
import { canonicalPath, namePlaceOf, type Pattern, paramsOf, patternOf } from '../operation/path-forms.ts';
import { asksForHelp, helpOn } from './help.ts';
import type { RouteMatch } from './request.ts';
import { guardedWithoutVerb, openWithoutVerb } from './unrouted.ts';

/** The parsed head of a request. The path is decoded once, when the head is parsed. */
export interface RequestHead {
  readonly path: RequestPath;
  /** The target in the request line. */
  readonly url: string;
  /** Undefined if no operation has this verb. */
  readonly verb: Verb | undefined;
}

/** Returns whether a route is found by the look-up: below a mount, or with an operation that gateway threads run too. */
export const isLookedUp = (route: Route): boolean =>
  isBelowMount(route) || Object.values(route.operations).some((operation) => 'inGateway' in operation);

/** Finds the operations that need no more than this look-up, in every thread (decision 113). */
export class RouteLookup {
  readonly #belowMounts: MountRoutes;
  /** So few that each is compared. */
  readonly #others: readonly Pattern[];

  /** @param routes - routes in order of precedence */
  constructor(routes: readonly Route[]) {
    this.#belowMounts = new MountRoutes(routes.filter(isBelowMount));
    this.#others = routes.filter((route) => !isBelowMount(route)).map(patternOf);
  }

  /**
   * Returns the operation and its parameters; undefined if no route has the path.
   * @param mounts - absent on a node without services
   * @throws StoreError `sealed`
   */
  find(head: RequestHead, mounts: Services['mounts'] | undefined): RouteMatch | undefined {
    const { segments } = head.path;
    const mount = mounts?.under(segments);
    const found = mount && this.#belowMounts.find(segments, mount);
    const match = found && matchOf(head, found.route, found.params);
    if (match !== undefined) return match;
    for (const pattern of this.#others) {
      const other = matchAt(pattern, head);
      if (other !== undefined) return other;
    }
    return undefined;
  }
}

/** Returns the operation of a route, or one that refuses the verb; undefined if the route does not have the path. */
export function matchAt(pattern: Pattern, head: RequestHead): RouteMatch | undefined {
  const params = paramsOf(pattern, head.path.segments);
  return params && matchOf(head, pattern.route, params);
}

function matchOf(head: RequestHead, route: Route, params: Params): RouteMatch | undefined {
  const { path, url, verb } = head;
  const operation = operationAt(route, head);
  if (operation === undefined) return undefined;
  const canonical = canonicalPath(route, path.path, path.segments);
  const namePlace = namePlaceOf(route, path.segments);
  // An unknown verb leads only to operations that refuse it. The body is read as for a POST.
  return { path, canonical, namePlace, url, verb: verb ?? 'POST', operation, params };
}

/**
 * Returns the operation for a verb, or an operation that refuses the verb or describes the path. Returns undefined if the path ends with a
 * slash and is therefore a different path.
 */
function operationAt(route: Route, head: RequestHead): Operation | undefined {
  const { operations } = route;
  const { verb, path } = head;
  // A GET may also have the trailing slash of a list, if the path has a LIST.
  if (path.trailingSlash && verb !== 'LIST' && !(verb === 'GET' && operations.LIST !== undefined)) return undefined;
  if (asksForHelp(head, route)) return helpOn(route);
  const operation = verb && operations[verb];
  if (operation !== undefined) return operation;
  return Object.values(operations).some(({ access }) => access === 'open') ? openWithoutVerb : guardedWithoutVerb;
}
