/** A request that no well-meaning client sends, and the one right answer to it. */
export interface HostileCase {
  readonly method: string;
  /** Request target exactly as it stands in the request line, no byte of it repaired. */
  readonly target: string;
  /** Bytes as they are; anything else goes as JSON. `«ciphertext»` and the like in its text stand for what the node made before (see `Made`). */
  readonly body?: unknown;
  /** Beside Host, Connection, the token and Content-Length, which a case does without by `head`. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  /** `root` unless given. */
  readonly token?: 'root' | 'limited' | 'none';
  /** The whole request as bytes, where even the request line or the framing is odd; method, target and body only name the case then. */
  readonly raw?: string | Buffer;
  /** `closed`: the connection ends without an answer, which is right where no answer can be understood. */
  readonly status: number | 'closed';
  /** Statuses of what follows on the same connection, in order. */
  readonly followedBy?: readonly number[];
  /** When the caller ends its side, as one that goes away does; otherwise it waits for the server to close. */
  readonly ends?: 'at once' | 'when answered';
  /** What the body of the answer must hold. */
  readonly says?: RegExp;
  readonly because: string;
  /** A key that exists afterwards; every other request must leave no key behind. */
  readonly makes?: string;
}

/** What the node has made before the cases run; their bodies name it as `«ciphertext»`. */
export interface Made {
  readonly ciphertext: string;
  readonly derived: string;
  readonly hmac: string;
  readonly cmac: string;
  readonly backup: string;
  readonly root: string;
  readonly limited: string;
}

/** The conversion of a field refused. */
export const notConverted = (field: string): RegExp => new RegExp(`error converting input for field \\\\?"${field}\\\\?"`);

/** Names that lead to something inherited where an object is taken for a map. */
export const inheritedNames = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf'] as const;
