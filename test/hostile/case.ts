/** A malformed or malicious request and its only correct answer. */
export interface HostileCase {
  readonly method: string;
  /** Request target exactly as it is sent in the request line. */
  readonly target: string;
  /** Bytes are sent as they are, anything else as JSON. `«ciphertext»` and the like stand for values created before (see `Made`). */
  readonly body?: unknown;
  /** Headers in addition to Host, Connection, the token and Content-Length; a case with `head` replaces all of them. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  /** Default: `root`. */
  readonly token?: 'root' | 'limited' | 'none';
  /** The whole request as bytes, if even its request line or framing is malformed; method, target and body then only name the case. */
  readonly raw?: string | Buffer;
  /** `closed`: the connection ends without an answer, which is correct if no answer could be understood. */
  readonly status: number | 'closed';
  /** Statuses of the following responses on the same connection, in order. */
  readonly followedBy?: readonly number[];
  /** When the caller closes its side. Default: it waits until the server closes. */
  readonly ends?: 'at once' | 'when answered';
  /** Text that the body of the response must contain. */
  readonly says?: RegExp;
  readonly because: string;
  /** A key that exists afterwards; no other request may create a key. */
  readonly makes?: string;
}

/** Values created before the cases run; bodies refer to them as `«ciphertext»`. */
export interface Made {
  readonly ciphertext: string;
  readonly derived: string;
  readonly hmac: string;
  readonly cmac: string;
  readonly backup: string;
  readonly root: string;
  readonly limited: string;
}

/** The error of a field that cannot be converted. */
export const notConverted = (field: string): RegExp => new RegExp(`error converting input for field \\\\?"${field}\\\\?"`);

/** Names of inherited properties, which are dangerous if an object is used as a map. */
export const inheritedNames = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf'] as const;

/** A POST to a path below `/v1/`, with its body and its status; `because` names the case, `says` matches the response. */
export type Row = readonly [request: string, body: unknown, status: number, because: string, says?: RegExp];
