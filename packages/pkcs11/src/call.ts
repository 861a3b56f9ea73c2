import type { Pkcs11FailureCode } from './failure.ts';
import type { PublicAttributes } from './public-key.ts';
import type { GcmInput, NewTokenKey, SigningInput, TokenKey } from './token-key.ts';

/** What the thread of a library is asked to do. */
export type TokenCall =
  /** Finds the key; of an AES key there is nothing to show. */
  | { readonly operation: 'describe'; readonly key: TokenKey }
  | { readonly operation: 'generate'; readonly key: TokenKey; readonly as: NewTokenKey }
  | { readonly operation: 'sign'; readonly key: TokenKey; readonly input: SigningInput }
  | { readonly operation: 'encrypt' | 'decrypt'; readonly key: TokenKey; readonly input: GcmInput };

/** What comes of it: bytes, a public half, or nothing. */
export type TokenResult = Uint8Array | PublicAttributes | undefined;

export interface CallMessage {
  readonly id: number;
  readonly call: TokenCall;
}

export type AnswerMessage =
  | { readonly id: number; readonly result: TokenResult }
  | { readonly id: number; readonly failure: { readonly code: Pkcs11FailureCode; readonly message: string } };
