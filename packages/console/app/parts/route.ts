import { useLayoutEffect, useState } from 'preact/hooks';

/** The pages, by their name in the URL. */
export const pages = {
  cluster: { title: 'Cluster' },
  keys: { title: 'Keys' },
  access: { title: 'Access' },
} as const;
export type PageName = keyof typeof pages;

export interface Route {
  readonly page: PageName;
  /** The segments of the URL after the page, decoded: a mount and a key, for example. */
  readonly rest: readonly string[];
}

const isPage = (name: string): name is PageName => Object.hasOwn(pages, name);

/** Reads the fragment of the URL: `#/keys/transit/orders`. It never holds a token. */
export function routeOf(fragment: string): Route {
  const [, page = '', ...rest] = fragment.split('/');
  return { page: isPage(page) ? page : 'cluster', rest: rest.map(decoded) };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Returns the address of a page. */
export const hrefOf = (page: PageName, ...rest: readonly string[]): string =>
  `#/${[page, ...rest.map(encodeURIComponent)].join('/')}`;

/** The page that the URL names, and every later one. The skip link's `#main` is no page. */
export function useRoute(): Route {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  // Before the browser's next task: an effect after the paint would miss a change of the address in between.
  useLayoutEffect(() => {
    const ended = new AbortController();
    const onChange = (): void => {
      if (location.hash.startsWith('#/')) setRoute(routeOf(location.hash));
    };
    addEventListener('hashchange', onChange, { signal: ended.signal });
    return () => ended.abort();
  }, []);
  return route;
}
