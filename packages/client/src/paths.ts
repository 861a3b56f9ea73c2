/** A path below `/v1/`: its segments as they are meant, or a text with slashes between them. */
export type Path = string | readonly string[];

/** A name that cannot stand in a path. The message does not hold it. */
export class PathError extends TypeError {
  override readonly name = 'PathError';
}

/** Segments that a URL would fold away, and with them the segment before. */
const folded = new Set(['.', '..']);

/**
 * The URL of a path. Each segment is encoded, so that no name becomes a path of its own.
 * @param address - of the service; its own path, behind a proxy that has one, goes before
 * @throws PathError for an empty segment (a trailing slash is none), `.` and `..`
 */
export function urlOf(address: string, path: Path, query: Readonly<Record<string, string>> = {}): URL {
  const segments = typeof path === 'string' ? path.replace(/^\/+|\/+$/g, '').split('/') : path;
  for (const segment of segments)
    if (segment === '' || folded.has(segment)) throw new PathError('a path has no empty segments and none of dots');
  const trailing = typeof path === 'string' && path.endsWith('/') ? '/' : '';
  const prefix = new URL(address).pathname.replace(/\/+$/, '');
  const url = new URL(`${prefix}/v1/${segments.map(encodeURIComponent).join('/')}${trailing}`, address);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url;
}

/** The path of a mount and what lies below it. @param mount - may hold slashes */
export const below = (mount: string, ...segments: readonly string[]): readonly string[] => [
  ...mount.replace(/^\/+|\/+$/g, '').split('/'),
  ...segments,
];

/** What each node answers for itself: another address would answer another question. */
const ofOneNode =
  /^sys\/(?:health|host-info|init|leader|metrics|seal|seal-status|unseal|storage\/raft\/(?:configuration|join))\/*$/;

export const isOfOneNode = (path: Path): boolean =>
  ofOneNode.test(typeof path === 'string' ? path.replace(/^\/+/, '') : path.join('/'));
