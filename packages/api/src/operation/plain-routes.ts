import { InvariantViolation } from '@transitd/raft-core';
import type { Params, Route } from './operation.ts';
import { canonicalParams } from './path-forms.ts';

/** A route whose path begins with a literal segment, split into its segments. */
interface Pattern {
  readonly route: Route;
  readonly parts: readonly Part[];
}

interface Part {
  /** The literal, or the name of a parameter. */
  readonly text: string;
  /** `one`: a parameter that matches one segment. `more`: a parameter that matches one segment or more. */
  readonly kind: 'literal' | 'one' | 'more';
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
      const parts = route.path.split('/').map(partOf);
      const [first] = parts;
      if (first?.kind !== 'literal') throw new InvariantViolation(`the route ${route.path} does not begin with a literal`);
      const branch: Branch = this.#branches.get(first.text) ?? { patterns: [], bySecond: new Map(), rest: [] };
      branch.patterns.push({ route, parts });
      this.#branches.set(first.text, branch);
    }
    for (const branch of this.#branches.values()) {
      const hasSecond = ({ parts: [, second] }: Pattern, text: string | undefined): boolean =>
        second?.kind !== 'literal' || second.text === text;
      for (const { parts } of branch.patterns) {
        const [, second] = parts;
        if (second?.kind !== 'literal') continue;
        const matching = branch.patterns.filter((pattern) => hasSecond(pattern, second.text));
        branch.bySecond.set(second.text, matching);
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

const partOf = (text: string): Part => {
  if (text.startsWith(':')) return { text: text.slice(1), kind: 'one' };
  return text.startsWith('*') ? { text: text.slice(1), kind: 'more' } : { text, kind: 'literal' };
};

/** Returns the path parameters as written in the request; undefined if the path does not match. */
function paramsOf(parts: readonly Part[], segments: readonly string[]): Params | undefined {
  const more = segments.length - parts.length;
  if (more < 0) return undefined;
  const params: Record<string, string> = {};
  let at = 0;
  for (const { text, kind } of parts) {
    const taken = kind === 'more' ? 1 + more : 1;
    if (kind === 'literal') {
      if (segments[at] !== text) return undefined;
    } else params[text] = taken === 1 ? (segments[at] ?? '') : segments.slice(at, at + taken).join('/');
    at += taken;
  }
  return at === segments.length ? params : undefined;
}
