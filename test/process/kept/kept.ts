/** What is known of a data directory that an earlier version has made. Texts are base64 or the API's own forms. */
export interface Kept {
  readonly plaintext: string;
  readonly context: string;
  readonly rootToken: string;
  /** A token that may only encrypt with `aes256-gcm96`. */
  readonly policyToken?: string;
  readonly ciphertexts: { readonly name: string; readonly derived: boolean; readonly text: string }[];
  readonly signatures: { readonly name: string; readonly text: string }[];
  readonly hmacs: { readonly name: string; readonly text: string }[];
  readonly logins: { readonly path: string; readonly body: object }[];
}
