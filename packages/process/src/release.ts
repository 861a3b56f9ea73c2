/** Smaller Buffers cost little, and may share their memory with others. */
const releasedBytesMin = 32 * 1024;

/**
 * Frees the memory of a large Buffer at once, which leaves the Buffer empty; a small one, or one that shares its memory, stays as it is.
 * Call it only for a Buffer that nobody else has, such as an intermediate result, and that nobody reads afterwards. V8 frees it only with
 * its next collection, and collects the whole heap after every 64 MiB of such memory: with bodies of a megabyte that took more time than
 * all the rest of a request.
 */
export function release({ buffer, byteLength }: Uint8Array): void {
  if (byteLength >= releasedBytesMin && byteLength === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0);
}
