/**
 * Reasons why a key in a token cannot be used.
 * - `binding_missing`: the package pkcs11js is missing or was not built
 * - `library_unusable`: the PKCS#11 library cannot be loaded, or is not configured
 * - `token_not_found`, `key_not_found`: nothing matches; `ambiguous`: more than one token or key matches
 * - `pin_refused`: the token refused the PIN; it is not tried again
 * - `key_unsuitable`: the key has another type, or its public half is missing
 * - `not_possible`: the token refuses this input or operation; a retry would fail too
 * - `not_authentic`: the ciphertext was not made with this key and these inputs, or was modified
 * - `busy`: too many calls are waiting
 * - `timeout`: no answer in time; the call may still take effect
 * - `token_failed`: the token, the library or the thread that talks to it failed
 * - `closed`: the node is being sealed or stopped
 */
export type Pkcs11FailureCode =
  | 'ambiguous'
  | 'binding_missing'
  | 'busy'
  | 'closed'
  | 'key_not_found'
  | 'key_unsuitable'
  | 'library_unusable'
  | 'not_authentic'
  | 'not_possible'
  | 'pin_refused'
  | 'timeout'
  | 'token_failed'
  | 'token_not_found';

/** An error of this package. Its message contains no PIN, no input, no key material and no path, because callers of the API see it. */
export class Pkcs11Failure extends Error {
  override readonly name = 'Pkcs11Failure';
  readonly code: Pkcs11FailureCode;
  constructor(code: Pkcs11FailureCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
