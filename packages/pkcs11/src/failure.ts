/**
 * Why a key in a token cannot be used.
 * - `binding_missing`: the package pkcs11js is not there or was not built
 * - `library_unusable`: the PKCS#11 library cannot be loaded or does not start
 * - `token_not_found`, `key_not_found`: nothing there matches; `ambiguous`: more than one thing does
 * - `pin_refused`: the token refused the PIN; it is not tried again
 * - `key_unsuitable`: a key was found, but it is of another kind, or its public half is missing
 * - `not_possible`: the token refuses this input or operation, as it would refuse it again
 * - `not_authentic`: a ciphertext was not made with this key and these values, or was changed
 * - `busy`: too many calls wait already
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

/** The message holds no PIN, no input and no key material. */
export class Pkcs11Failure extends Error {
  override readonly name = 'Pkcs11Failure';
  readonly code: Pkcs11FailureCode;
  constructor(code: Pkcs11FailureCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
