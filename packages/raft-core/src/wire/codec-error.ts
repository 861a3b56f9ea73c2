/** Bytes that do not follow their format. The message says what is wrong and never repeats the bytes. */
export class CodecError extends Error {
  override readonly name = 'CodecError';
}
