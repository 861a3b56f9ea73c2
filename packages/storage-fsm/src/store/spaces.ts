import { CodecError } from '@transitd/raft-core';
import { pathFault } from './path.ts';

/*
 * Where a record lies. Its *path* is what the users of the store know it by; its *name* is the key that it is kept, flushed, digested
 * and sent to peers under. They are the same in space 0. A restore fills another space, whose names are
 * `U+0002, the space's number in eight digits, "/", path`, and one entry then makes paths lead there. No path has a control character.
 * All that belongs to this lies in one record under the name `U+0001 "spaces"`, so that it is flushed, digested and sent as any other.
 */

/** Which space the paths below a prefix lead to: the longest prefix decides, and without any it is space 0. */
export interface Route {
  readonly prefix: string;
  readonly space: number;
}

/** A restore that is being staged. */
export interface Attempt {
  readonly id: string;
  readonly space: number;
  readonly chunks: number;
  readonly records: number;
  /** Sum of the staged records' digests, each as if at revision 0. */
  readonly digest: bigint;
}

export interface Spaces {
  /** Longer prefixes first. */
  readonly routes: readonly Route[];
  /** Never used again once it was. */
  readonly nextSpace: number;
  readonly attempt: Attempt | undefined;
  /** The newest restore that went live. */
  readonly live: string | undefined;
}

export const noSpaces: Spaces = { routes: [], nextSpace: 1, attempt: undefined, live: undefined };
export const spacesName = '\u0001spaces';
const marker = '\u0002';
const digits = 8;
const headLength = marker.length + digits + 1;

/** What the names of a space begin with. */
export const spaceHead = (space: number): string => (space === 0 ? '' : `${marker}${String(space).padStart(digits, '0')}/`);

/** The space and path that a name stands for; undefined for anything else, the record of the spaces included. */
export function placeOf(name: string): { readonly space: number; readonly path: string } | undefined {
  if (name.startsWith(marker)) {
    const path = name.slice(headLength);
    const space = Number(/^\d{8}\/$/.test(name.slice(marker.length, headLength)) ? name.slice(marker.length, headLength - 1) : 0);
    return space > 0 && pathFault(path) === undefined ? { space, path } : undefined;
  }
  return pathFault(name) === undefined ? { space: 0, path: name } : undefined;
}

/** Whether a record may be kept under this name. */
export const isName = (name: string): boolean => name === spacesName || placeOf(name) !== undefined;

export const spaceOf = ({ routes }: Spaces, path: string): number =>
  routes.find(({ prefix }) => path.startsWith(prefix))?.space ?? 0;

export const nameOf = (spaces: Spaces, path: string): string => spaceHead(spaceOf(spaces, path)) + path;

/** The path of a record that readers see; undefined for one that is staged, or that nothing leads to any more. */
export function visiblePath(spaces: Spaces, name: string): string | undefined {
  const place = placeOf(name);
  return place !== undefined && spaceOf(spaces, place.path) === place.space ? place.path : undefined;
}

/** Whether nothing leads to the record and nothing will: it may be deleted. */
export function isDead(spaces: Spaces, name: string): boolean {
  const place = placeOf(name);
  return place !== undefined && place.space !== spaces.attempt?.space && spaceOf(spaces, place.path) !== place.space;
}

/** The spaces that paths with this beginning may lead to. */
export function spacesBelow(spaces: Spaces, prefix: string): number[] {
  const within = spaces.routes.filter((route) => route.prefix.startsWith(prefix)).map(({ space }) => space);
  return [...new Set([spaceOf(spaces, prefix), ...within])];
}

/** Leads every path to `space`, but for those below a prefix of `keep`, which lead where they did. */
export function rerouted(spaces: Spaces, space: number, keep: readonly string[]): Route[] {
  const kept = new Map<string, number>([['', space]]);
  for (const { prefix, space: before } of spaces.routes) if (keep.some((k) => prefix.startsWith(k))) kept.set(prefix, before);
  for (const prefix of keep) kept.set(prefix, spaceOf(spaces, prefix));
  const routes = [...kept].map(([prefix, to]) => ({ prefix, space: to }));
  return routes.sort((a, b) => b.prefix.length - a.prefix.length || (a.prefix < b.prefix ? -1 : 1));
}

const format = 1;

/** JSON with a version: it is read seldom and must be readable for long. The same bytes on every node. */
export function encodeSpaces({ routes, nextSpace, attempt, live }: Spaces): Buffer {
  const staged = attempt && { ...attempt, digest: attempt.digest.toString(16) };
  return Buffer.from(JSON.stringify({ format, routes, nextSpace, attempt: staged ?? null, live: live ?? null }));
}

/** @throws CodecError for anything that {@link encodeSpaces} does not write */
export function decodeSpaces(bytes: Uint8Array): Spaces {
  const stored: unknown = parsed(bytes);
  if (!isObject(stored) || stored['format'] !== format) throw new CodecError('the format of the spaces is not known');
  const { routes, nextSpace, attempt, live } = stored;
  const areRoutes =
    Array.isArray(routes) &&
    routes.every((route) => isObject(route) && typeof route['prefix'] === 'string' && isCount(route['space']));
  if (!areRoutes || !isCount(nextSpace) || !(live === null || typeof live === 'string'))
    throw new CodecError('the spaces are not whole');
  return {
    routes: routes as Route[],
    nextSpace,
    attempt: attempt === null ? undefined : decodeAttempt(attempt),
    live: live ?? undefined,
  };
}

function decodeAttempt(stored: unknown): Attempt {
  if (!isObject(stored)) throw new CodecError('the spaces are not whole');
  const { id, space, chunks, records, digest } = stored;
  const isWhole = typeof id === 'string' && typeof digest === 'string' && /^[0-9a-f]{1,64}$/.test(digest);
  if (!isWhole || !isCount(space) || !isCount(chunks) || !isCount(records)) throw new CodecError('the spaces are not whole');
  return { id, space, chunks, records, digest: BigInt(`0x${digest}`) };
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString());
  } catch {
    throw new CodecError('the spaces cannot be read');
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null;
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
