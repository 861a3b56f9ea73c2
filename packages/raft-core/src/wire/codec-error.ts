/** Bytes that are not what they claim to be. The message says which rule they break and never repeats them. */
export class CodecError extends Error {
  override readonly name = 'CodecError';
}
