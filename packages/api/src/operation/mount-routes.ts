import type { Params, Route } from './operation.ts';

/** Prefix of routes below a mount. */
const belowMount = ':mount/';

export const isBelowMount = ({ path }: Route): boolean => path.startsWith(belowMount);

/** Path of a mount and the number of its segments. */
interface MountPlace {
  readonly path: string;
  readonly depth: number;
}

interface Pattern {
  readonly route: Route;
  /** Segments after the first word: a literal, or the name of a parameter. */
  readonly parts: readonly { readonly text: string; readonly isParam: boolean }[];
}

/**
 * Finds routes below a mount without Express, since they are the most frequent ones. Each begins with a word that few other routes share,
 * so few patterns have to be compared.
 */
export class MountRoutes {
  readonly #byWord = new Map<string, Pattern[]>();

  /** @param routes - routes below a mount; the first match wins */
  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const [word = '', ...rest] = route.path.slice(belowMount.length).split('/');
      const parts = rest.map((part) => ({ text: part.replace(/^:/, ''), isParam: part.startsWith(':') }));
      this.#byWord.set(word, [...(this.#byWord.get(word) ?? []), { route, parts }]);
    }
  }

  /** Returns the route of a path and its parameters, including `mount`; undefined if no route matches. */
  find(segments: readonly string[], mount: MountPlace): { readonly route: Route; readonly params: Params } | undefined {
    for (const { route, parts } of this.#byWord.get(segments[mount.depth] ?? '') ?? []) {
      const params = paramsOf(parts, segments, mount);
      if (params !== undefined && (route.accepts === undefined || route.accepts(params))) return { route, params };
    }
    return undefined;
  }
}

function paramsOf(parts: Pattern['parts'], segments: readonly string[], { path, depth }: MountPlace): Params | undefined {
  const first = depth + 1;
  if (segments.length - first !== parts.length) return undefined;
  const params: Record<string, string> = { mount: path };
  for (const [at, { text, isParam }] of parts.entries()) {
    const segment = segments[first + at] ?? '';
    if (isParam) params[text] = segment;
    else if (segment !== text) return undefined;
  }
  return params;
}
