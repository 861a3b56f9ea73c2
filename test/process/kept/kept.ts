/** The expected content of a data directory created by an earlier version. Texts are base64 or as in the API. */
export interface Kept {
  readonly plaintext: string;
  readonly context: string;
  readonly rootToken: string;
  /** A token that may only encrypt with `aes256-gcm96`. */
  readonly policyToken?: string;
  readonly ciphertexts: { readonly name: string; readonly derived: boolean; readonly text: string }[];
  readonly signatures: { readonly name: string; readonly text: string }[];
  readonly hmacs: { readonly name: string; readonly text: string }[];
  /** What was read at these paths. A later version may add members. */
  readonly reads?: { readonly path: string; readonly data: Readonly<Record<string, unknown>> }[];
  readonly logins: { readonly path: string; readonly body: object }[];
}
