/** A path below `/v1/`: a list of unencoded segments, or a string with slashes between the segments. */
export type Path = string | readonly string[];

/** A name is not valid in a path. The message does not contain the name. */
export class PathError extends TypeError {
  override readonly name = 'PathError';
}

/** Segments that URL normalization removes. For `..` it also removes the segment before. */
const dotSegments = new Set(['.', '..']);

/**
 * Returns the URL of a path. Each segment is encoded, so that a name cannot become several segments.
 * @param address - address of a node; its path, for example that of a proxy, is kept as a prefix
 * @throws PathError for an empty segment (a trailing slash is allowed), `.` and `..`
 */
export function urlOf(address: string, path: Path, query: Readonly<Record<string, string>> = {}): URL {
  const segments = typeof path === 'string' ? path.replace(/^\/+|\/+$/g, '').split('/') : path;
  for (const segment of segments)
    if (segment === '' || dotSegments.has(segment)) throw new PathError('a path must not have empty segments, "." or ".."');
  const trailing = typeof path === 'string' && path.endsWith('/') ? '/' : '';
  const prefix = new URL(address).pathname.replace(/\/+$/, '');
  const url = new URL(`${prefix}/v1/${segments.map(encodeURIComponent).join('/')}${trailing}`, address);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url;
}

/** Returns the segments of a path below a mount. @param mount - may contain slashes */
export const below = (mount: string, ...segments: readonly string[]): readonly string[] => [
  ...mount.replace(/^\/+|\/+$/g, '').split('/'),
  ...segments,
];

/** Returns a path as text, without encoding. */
export const textOf = (path: Path): string => (typeof path === 'string' ? path.replace(/^\/+/, '') : path.join('/'));

/** Paths about one node: another address would return the state of another node. */
const ofOneNode =
  /^sys\/(?:health|host-info|init|leader|metrics|monitor|seal|seal-status|unseal|storage\/raft\/(?:configuration|join))\/*$/;

export const isOfOneNode = (path: Path): boolean => ofOneNode.test(textOf(path));
