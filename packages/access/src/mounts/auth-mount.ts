import type { InertSettings } from '../values/inert-settings.ts';
import { decodeJson, encodeJson } from '../values/json-record.ts';

/** An enabled auth method. */
export interface AuthMount {
  /** Segments after `auth/`; see `authPathFault`. */
  readonly path: string;
  /** Random. A method that is enabled again at the same path gets another id and none of the previous method's tokens and records. */
  readonly id: string;
  /** The method `token` always exists and cannot be enabled, so no enabled method has that type. */
  readonly type: string;
  readonly accessor: string;
  readonly description: string;
  /** Seconds; 0 for the limit of the node. This applies to `maxTtlS` too. */
  readonly defaultTtlS: number;
  readonly maxTtlS: number;
  /** The next members, and `inert`, are stored and returned, but have no effect. */
  readonly local: boolean;
  readonly sealWrap: boolean;
  readonly externalEntropyAccess: boolean;
  readonly options: Readonly<Record<string, string>>;
  readonly inert: InertSettings;
}

/** Settings of a new method that sets none. */
export const newAuthMount = {
  description: '',
  defaultTtlS: 0,
  maxTtlS: 0,
  local: false,
  sealWrap: false,
  externalEntropyAccess: false,
  options: {},
  inert: {},
} as const satisfies Partial<AuthMount>;

const example: AuthMount = { path: '', id: '', type: '', accessor: '', ...newAuthMount };

export const authMountPrefix = 'access/auth/';
export const authMountPath = (path: string): string => authMountPrefix + path;

/** Maximum number of segments of a path. */
export const segmentsMax = 8;
const segmentCharsMax = 64;

/** Returns the first words of the paths of requests below auth methods. The path of a method has none of them after its first segment. */
export const wordsBelow = (types: readonly { readonly paths: object }[]): ReadonlySet<string> =>
  new Set(types.flatMap(({ paths }) => Object.keys(paths)).map((path) => path.split('/')[0] ?? ''));

/**
 * Returns the rule that a path of an auth method breaks; undefined if a method can be enabled there.
 * @param words - of all types; see `wordsBelow`
 */
export function authPathFault(path: string, words: ReadonlySet<string>): string | undefined {
  const segments = path.split('/');
  if (
    segments.length > segmentsMax ||
    segments.some((segment) => !/^\w[\w.-]*$/.test(segment) || segment.length > segmentCharsMax)
  )
    return `must have at most ${segmentsMax} segments of 1 to ${segmentCharsMax} letters, digits, "_", "." or "-"`;
  if (segments[0] === 'token') return 'must not begin with "token", the path of the built-in method';
  const word = segments.slice(1).find((segment) => words.has(segment) || segment === 'tune');
  return word && `must not have "${word}" after its first segment: the paths of a method's own requests have it there`;
}

/**
 * Returns whether these segments can be the path of an auth method, so far as this decides where the path ends within the path of a
 * request. At most one way to split a request's path satisfies this, whichever methods are enabled.
 * @param words - as for `authPathFault`
 */
export const splitsAsAuthPath = ([first, ...more]: readonly string[], words: ReadonlySet<string>): boolean =>
  first !== 'token' && more.length < segmentsMax && !more.some((segment) => words.has(segment));

/** Returns the method's part of the display name of its tokens. */
export const displayNameOf = ({ path }: Pick<AuthMount, 'path'>): string => path.replaceAll('/', '-');

export const encodeAuthMount = (mount: AuthMount): Buffer => encodeJson(mount);

/** @throws AccessError `record_unreadable` */
export const decodeAuthMount = (stored: Uint8Array): AuthMount => decodeJson(stored, example);

/** Returns the string by which a token's record refers to an auth method. */
export const mountReference = ({ path, id }: Pick<AuthMount, 'path' | 'id'>): string => `${path}:${id}`;

/** Parses a reference that `mountReference` made. */
export function parseMountReference(reference: string): { readonly path: string; readonly id: string } {
  const [path = '', id = ''] = reference.split(':');
  return { path, id };
}
