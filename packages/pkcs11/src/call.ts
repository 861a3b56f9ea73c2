import type { Pkcs11FailureCode } from './failure.ts';
import type { PublicAttributes } from './public-key.ts';
import type { GcmInput, NewTokenKey, SigningInput, TokenKey } from './token-key.ts';

/** A request to the thread of a library. */
export type TokenCall =
  /** Finds the key and returns its public half; nothing for an AES key. */
  | { readonly operation: 'describe'; readonly key: TokenKey }
  /** Finds the key and refuses it unless it is an AES key of 256 bits. */
  | { readonly operation: 'require_aes_256'; readonly key: TokenKey }
  | { readonly operation: 'generate'; readonly key: TokenKey; readonly as: NewTokenKey }
  | { readonly operation: 'sign'; readonly key: TokenKey; readonly input: SigningInput }
  /** Draws random bytes of the key's token. */
  | { readonly operation: 'random'; readonly key: TokenKey; readonly bytes: number }
  | { readonly operation: 'encrypt' | 'decrypt'; readonly key: TokenKey; readonly input: GcmInput };

/** The result of a call: bytes, a public half, or nothing. */
export type TokenResult = Uint8Array | PublicAttributes | undefined;

export interface CallMessage {
  readonly id: number;
  readonly call: TokenCall;
}

export type ResultMessage =
  | { readonly id: number; readonly result: TokenResult }
  | { readonly id: number; readonly failure: { readonly code: Pkcs11FailureCode; readonly message: string } };
