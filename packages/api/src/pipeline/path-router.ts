import { createRequire } from 'node:module';
import { isParam } from '../operation/path-forms.ts';

/** Express is loaded where its router is used: gateway threads have none. */
const loadExpress = (): typeof import('express') => createRequire(import.meta.url)('express');

/** One pass of the router over its paths, in place of a request. */
interface Walk<T> {
  readonly method: 'GET';
  readonly url: string;
  /** The path at which the router stopped; undefined if no further path matches. */
  stop: { readonly value: T; readonly next: () => void } | undefined;
  failure: unknown;
}

/** What we use of Express's router. Its type wants a request and a response. */
interface WalkRouter<T> {
  (walk: Walk<T>, response: undefined, end: (error?: unknown) => void): void;
  all(path: string, step: (walk: Walk<T>, response: undefined, next: () => void) => void): void;
}

/**
 * Matches paths with Express's router (decision 113). It gets a `Walk` instead of the request and no response, so it can neither change a
 * request nor answer one. It stops at each path that matches; the caller decides outside of it, because it would catch our errors.
 */
export class PathRouter<T> {
  readonly #router: WalkRouter<T>;

  /** @param paths - paths as {@link Route} declares them, in order of precedence, each with its value */
  constructor(paths: readonly (readonly [path: string, value: T])[]) {
    const router = loadExpress().Router({ caseSensitive: true, strict: true }) as unknown as WalkRouter<T>;
    for (const [path, value] of paths)
      router.all(expressPath(path), (walk, _response, next) => {
        walk.stop = { value, next };
      });
    this.#router = router;
  }

  /**
   * Yields the value of every path that matches.
   * @param segments - once decoded
   */
  *matches(segments: readonly string[]): Generator<T, undefined> {
    // Encoded again, so that the router sees exactly these segments, and has nothing to refuse when it decodes them.
    const url = `/${segments.map(encodeURIComponent).join('/')}`;
    const walk: Walk<T> = { method: 'GET', url, stop: undefined, failure: undefined };
    this.#router(walk, undefined, (error) => {
      walk.failure = error ?? undefined;
    });
    while (walk.stop !== undefined) {
      const { value, next } = walk.stop;
      yield value;
      walk.stop = undefined;
      next();
    }
    if (walk.failure !== undefined) throw walk.failure;
    return undefined;
  }
}

/** Returns a path as Express writes it. Both write parameters alike. */
const expressPath = (path: string): string =>
  path
    .split('/')
    .map((part) => `/${isParam(part) ? part : encodeURIComponent(part).replace(/[!*()]/g, '\\$&')}`)
    .join('');
