import { InvariantViolation } from '@transitd/raft-core';
import type { Params, Route } from './operation.ts';
import { canonicalParams, isParam, paramsOf } from './path-forms.ts';

/** A route whose path begins with a literal segment, split into its segments. */
interface Pattern {
  readonly route: Route;
  readonly parts: readonly string[];
}

/** Routes with the same first segment, in the order of the route table. */
interface Branch {
  readonly patterns: Pattern[];
  /** The patterns that a path with this second segment can match. */
  readonly bySecond: Map<string, readonly Pattern[]>;
  /** The patterns that a path can match if its second segment is absent or not in `bySecond`. */
  rest: readonly Pattern[];
}

/** A route that matches a path, and its parameters in their canonical form. */
export interface FoundRoute {
  readonly route: Route;
  readonly params: Params;
}

/** Finds routes that are not below a mount. Their first two segments leave few patterns to compare. */
export class PlainRoutes {
  readonly #branches = new Map<string, Branch>();

  /** @param routes - routes in order of precedence; each begins with a literal segment */
  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const parts = route.path.split('/');
      const [first = ''] = parts;
      if (isParam(first)) throw new InvariantViolation(`the route ${route.path} does not begin with a literal`);
      const branch: Branch = this.#branches.get(first) ?? { patterns: [], bySecond: new Map(), rest: [] };
      branch.patterns.push({ route, parts });
      this.#branches.set(first, branch);
    }
    for (const branch of this.#branches.values()) {
      const hasSecond = ({ parts: [, second] }: Pattern, text: string | undefined): boolean =>
        second === undefined || isParam(second) || second === text;
      for (const { parts } of branch.patterns) {
        const [, second] = parts;
        if (second === undefined || isParam(second) || branch.bySecond.has(second)) continue;
        const matching = branch.patterns.filter((pattern) => hasSecond(pattern, second));
        branch.bySecond.set(second, matching);
      }
      branch.rest = branch.patterns.filter((pattern) => hasSecond(pattern, undefined));
    }
  }

  /** Yields every route that matches the path, in the order of the route table. */
  *matches(segments: readonly string[]): Generator<FoundRoute, undefined> {
    const [first = '', second = ''] = segments;
    const branch = this.#branches.get(first);
    for (const { route, parts } of branch?.bySecond.get(second) ?? branch?.rest ?? []) {
      const written = paramsOf(parts, segments);
      if (written === undefined) continue;
      const params = canonicalParams(route, written);
      if (route.accepts === undefined || route.accepts(params)) yield { route, params };
    }
    return undefined;
  }
}
