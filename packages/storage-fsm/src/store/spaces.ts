import { CodecError, type LogIndex } from '@transitd/raft-core';
import { levelName } from '../level/level-record.ts';
import { addToDigest, emptyDigest } from './digest.ts';
import { decodeFields, hasFields, isCount } from './json-object.ts';
import { pathFault } from './path.ts';
import { replicationName } from './replication-state.ts';

/*
 * Key spaces, which let a restore replace the state in one log entry. Users of the store know a record by its *path*. The state keeps,
 * flushes, digests and sends it under its *name*. In space 0 both are the same. A restore fills another space, whose names are
 * `U+0002, the space's number in eight digits, "/", path`; one entry then routes paths to it. No path has a control character.
 * The routes are stored in one record under the name `U+0001 "spaces"`, so that they are flushed, digested and sent like any other record.
 */

/** Routes the paths below a prefix to a space. The longest matching prefix decides; a path without one is in space 0. */
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
  /** Sum of the staged records' digests. Each is computed with revision 0, or with the record's own revision if a primary sent it. */
  readonly digest: bigint;
  /** Log index of the newest local record of a cluster of a set that was written while the state was being staged; absent before that. */
  readonly localWriteAt?: LogIndex;
}

export interface Spaces {
  /** Longer prefixes first. */
  readonly routes: readonly Route[];
  /** Number of the next new space; numbers are never reused. */
  readonly nextSpace: number;
  readonly attempt: Attempt | undefined;
  /** The attempt that most recently went live. */
  readonly live: string | undefined;
}

export const noSpaces: Spaces = { routes: [], nextSpace: 1, attempt: undefined, live: undefined };
export const spacesName = '\u0001spaces';
const marker = '\u0002';
const digits = 8;
const headLength = marker.length + digits + 1;
/** The last space: its number has as many digits as a name holds. No restore and no secondary uses up so many. */
export const spaceMax = 10 ** digits - 1;
const isSpace = (value: unknown): value is number => isCount(value) && value <= spaceMax;

/** Returns the prefix of all names in a space. */
export const spaceHead = (space: number): string => (space === 0 ? '' : `${marker}${String(space).padStart(digits, '0')}/`);

/** Returns the space and path of a name; undefined for anything else, such as the spaces record. */
export function placeOf(name: string): { readonly space: number; readonly path: string } | undefined {
  if (name.startsWith(marker)) {
    const path = name.slice(headLength);
    const space = Number(/^\d{8}\/$/.test(name.slice(marker.length, headLength)) ? name.slice(marker.length, headLength - 1) : 0);
    return space > 0 && pathFault(path) === undefined ? { space, path } : undefined;
  }
  return pathFault(name) === undefined ? { space: 0, path: name } : undefined;
}

/** Returns whether a record can have this name. */
export const isName = (name: string): boolean =>
  name === spacesName || name === levelName || name === replicationName || placeOf(name) !== undefined;

export const spaceOf = ({ routes }: Spaces, path: string): number =>
  routes.find(({ prefix }) => path.startsWith(prefix))?.space ?? 0;

export const nameOf = (spaces: Spaces, path: string): string => spaceHead(spaceOf(spaces, path)) + path;

/** Returns the path under which readers see a record; undefined for a staged or unreachable record. */
export function visiblePath(spaces: Spaces, name: string): string | undefined {
  const place = placeOf(name);
  return place !== undefined && spaceOf(spaces, place.path) === place.space ? place.path : undefined;
}

/** Returns whether no route leads to the record, now or later. Such a record may be deleted. */
export function isUnreachable(spaces: Spaces, name: string): boolean {
  const place = placeOf(name);
  return place !== undefined && place.space !== spaces.attempt?.space && spaceOf(spaces, place.path) !== place.space;
}

/** Returns the spaces that hold paths with this prefix. */
export function spacesBelow(spaces: Spaces, prefix: string): number[] {
  const within = spaces.routes.filter((route) => route.prefix.startsWith(prefix)).map(({ space }) => space);
  return [...new Set([spaceOf(spaces, prefix), ...within])];
}

/** Returns routes that lead every path to `space`, except that paths below a prefix in `keep` keep their routes. */
export function rerouted(spaces: Spaces, space: number, keep: readonly string[]): Route[] {
  const kept = new Map<string, number>([['', space]]);
  for (const { prefix, space: before } of spaces.routes) if (keep.some((k) => prefix.startsWith(k))) kept.set(prefix, before);
  for (const prefix of keep) kept.set(prefix, spaceOf(spaces, prefix));
  const routes = [...kept].map(([prefix, to]) => ({ prefix, space: to }));
  return routes.sort((a, b) => b.prefix.length - a.prefix.length || (a.prefix < b.prefix ? -1 : 1));
}

/** Returns the attempt of this id: the one that is being staged, or a new one; undefined if there is no space left for a new one. */
export function attemptOf({ attempt, nextSpace }: Spaces, id: string): Attempt | undefined {
  if (attempt?.id === id) return attempt;
  return isSpace(nextSpace) ? { id, space: nextSpace, chunks: 0, records: 0, digest: emptyDigest } : undefined;
}

/** The totals of the records that a step expects to be staged. */
type StagedTotals = Pick<Attempt, 'records' | 'digest'> & { readonly attempt: Attempt['id'] };

/** Returns the attempt if exactly these records are staged; undefined otherwise. */
export function stagedAttempt({ attempt }: Spaces, { attempt: id, records, digest }: StagedTotals): Attempt | undefined {
  return attempt?.id === id && attempt.records === records && attempt.digest === digest ? attempt : undefined;
}

/**
 * Stages records of the next chunk: returns their writes, by name, and the new spaces.
 * @param digestOf - returns a record's share of the sum that a swap checks
 */
export function staged<R extends { readonly path: string }>(
  spaces: Spaces,
  attempt: Attempt,
  records: readonly R[],
  digestOf: (record: R) => bigint,
): { readonly writes: readonly (Omit<R, 'path'> & { readonly name: string })[]; readonly spaces: Spaces } {
  const head = spaceHead(attempt.space);
  const next = {
    ...attempt,
    chunks: attempt.chunks + 1,
    records: attempt.records + records.length,
    digest: records.map(digestOf).reduce(addToDigest, attempt.digest),
  };
  return {
    writes: records.map(({ path, ...record }) => ({ name: head + path, ...record })),
    spaces: { ...spaces, nextSpace: Math.max(spaces.nextSpace, attempt.space + 1), attempt: next },
  };
}

/** Returns the spaces after which readers see the records of an attempt. Paths below a prefix in `keep` keep their records. */
export const withLive = (spaces: Spaces, { id, space }: Attempt, keep: readonly string[]): Spaces => ({
  ...spaces,
  ...{ routes: rerouted(spaces, space, keep), attempt: undefined, live: id },
});

const format = 1;

/** Encodes the spaces as versioned JSON, the same bytes on every node. They are read rarely and must stay readable for a long time. */
export function encodeSpaces({ routes, nextSpace, attempt, live }: Spaces): Buffer {
  const staged = attempt && { ...attempt, digest: attempt.digest.toString(16) };
  return Buffer.from(JSON.stringify({ format, routes, nextSpace, attempt: staged ?? null, live: live ?? null }));
}

/** Decodes the spaces. @throws CodecError for any bytes that {@link encodeSpaces} does not write */
export function decodeSpaces(bytes: Uint8Array): Spaces {
  const stored = decodeFields(bytes, 'the spaces record');
  if (stored['format'] !== format) throw new CodecError('the spaces record has an unknown format');
  const { routes, nextSpace, attempt, live } = stored;
  const areRoutes =
    Array.isArray(routes) &&
    routes.every((route) => hasFields(route) && typeof route['prefix'] === 'string' && isSpace(route['space']));
  if (!areRoutes || !isCount(nextSpace) || nextSpace > spaceMax + 1 || !(live === null || typeof live === 'string'))
    throw new CodecError('the spaces record is malformed');
  return {
    routes: routes as Route[],
    nextSpace,
    attempt: attempt === null ? undefined : decodeAttempt(attempt),
    live: live ?? undefined,
  };
}

function decodeAttempt(stored: unknown): Attempt {
  if (!hasFields(stored)) throw new CodecError('the spaces record is malformed');
  const { id, space, chunks, records, digest, localWriteAt } = stored;
  const isWhole = typeof id === 'string' && typeof digest === 'string' && /^[0-9a-f]{1,64}$/.test(digest);
  const hasCounts =
    isSpace(space) && isCount(chunks) && isCount(records) && (localWriteAt === undefined || isCount(localWriteAt));
  if (!isWhole || !hasCounts) throw new CodecError('the spaces record is malformed');
  return { id, space, chunks, records, digest: BigInt(`0x${digest}`), ...(localWriteAt !== undefined && { localWriteAt }) };
}
