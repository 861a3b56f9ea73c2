import { decodeJson, encodeJson } from '../json-record.ts';

/** Kinds of logins; `token` is there without being enabled. */
export type AuthType = 'approle' | 'jwt' | 'userpass';

export const authTypes: readonly string[] = ['approle', 'jwt', 'userpass'] satisfies AuthType[];

export const isAuthType = (text: string): text is AuthType => authTypes.includes(text);

/** A login method where it is enabled. */
export interface AuthMount {
  /** One segment, behind `auth/`. */
  readonly path: string;
  /** Random: a method that is enabled again at the same path has none of the tokens and records of the one before. */
  readonly id: string;
  readonly type: AuthType;
  readonly accessor: string;
  readonly description: string;
  /** Of its tokens, in seconds; 0 leaves it to the node, as does the next. */
  readonly defaultTtlS: number;
  readonly maxTtlS: number;
}

const example: AuthMount = { path: '', id: '', type: 'userpass', accessor: '', description: '', defaultTtlS: 0, maxTtlS: 0 };

export const authMountPrefix = 'access/auth/';
export const authMountPath = (path: string): string => authMountPrefix + path;

/** Letters, digits and `_ . -`, so one segment of a path; `token` is taken. */
export const isAuthPath = (path: string): boolean => /^\w[\w.-]{0,63}$/.test(path) && path !== 'token';

export const encodeAuthMount = (mount: AuthMount): Buffer => encodeJson(mount);

/** @throws AccessError `record_unreadable` */
export const decodeAuthMount = (stored: Uint8Array): AuthMount => decodeJson(stored, example);

/** What a token's record says of the method that made it. */
export const mountReference = ({ path, id }: Pick<AuthMount, 'path' | 'id'>): string => `${path}:${id}`;

/** Reads `mountReference` back. */
export function parseMountReference(reference: string): { readonly path: string; readonly id: string } {
  const [path = '', id = ''] = reference.split(':');
  return { path, id };
}
