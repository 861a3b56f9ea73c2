import type { Params, Route } from './operation.ts';

/** What a route is called by below its mount. */
const belowMount = ':mount/';

export const isBelowMount = ({ path }: Route): boolean => path.startsWith(belowMount);

/** Where a mount lies, and how many segments of a request's path that takes. */
interface MountPlace {
  readonly path: string;
  readonly depth: number;
}

interface Pattern {
  readonly route: Route;
  /** Behind the word: what stands there itself, or the name of the parameter that does. */
  readonly parts: readonly { readonly text: string; readonly isParam: boolean }[];
}

/** What callers ask all day, found without Express: each route below a mount begins with a word, and few have the same one. */
export class MountRoutes {
  readonly #byWord = new Map<string, Pattern[]>();

  /** @param routes - below a mount; the first one that a path leads to counts */
  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const [word = '', ...rest] = route.path.slice(belowMount.length).split('/');
      const parts = rest.map((part) => ({ text: part.replace(/^:/, ''), isParam: part.startsWith(':') }));
      this.#byWord.set(word, [...(this.#byWord.get(word) ?? []), { route, parts }]);
    }
  }

  /** The route that a path leads to and the parameters in it, `mount` among them; undefined when it leads nowhere. */
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
