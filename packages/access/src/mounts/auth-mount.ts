import { decodeJson, encodeJson } from '../values/json-record.ts';

/** Types of auth methods. The method `token` always exists and cannot be enabled. */
export type AuthType = 'approle' | 'jwt' | 'userpass';

export const authTypes: readonly string[] = ['approle', 'jwt', 'userpass'] satisfies AuthType[];

export const isAuthType = (text: string): text is AuthType => authTypes.includes(text);

/** An enabled auth method. */
export interface AuthMount {
  /** One path segment after `auth/`. */
  readonly path: string;
  /** Random. A method that is enabled again at the same path gets another id and none of the previous method's tokens and records. */
  readonly id: string;
  readonly type: AuthType;
  readonly accessor: string;
  readonly description: string;
  /** Seconds; 0 for the limit of the node. This applies to `maxTtlS` too. */
  readonly defaultTtlS: number;
  readonly maxTtlS: number;
}

const example: AuthMount = { path: '', id: '', type: 'userpass', accessor: '', description: '', defaultTtlS: 0, maxTtlS: 0 };

export const authMountPrefix = 'access/auth/';
export const authMountPath = (path: string): string => authMountPrefix + path;

/** Returns whether a method can be enabled at the path: one segment of letters, digits and `_ . -`, except `token`. */
export const isAuthPath = (path: string): boolean => /^\w[\w.-]{0,63}$/.test(path) && path !== 'token';

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
