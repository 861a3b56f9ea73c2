/** One file of the console. */
export interface ConsoleFile {
  /** Path below `/ui/`. */
  readonly name: string;
  /** The media type. */
  readonly type: string;
  /** SHA-256 of the content, in base64url. */
  readonly hash: string;
  readonly content: string;
}
