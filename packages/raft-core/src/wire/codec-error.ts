/** Bytes that do not follow their format. The message names the broken rule and never repeats the bytes. */
export class CodecError extends Error {
  override readonly name = 'CodecError';
}
