/** Bytes that arrived in chunks of any size and are taken in pieces of a given size. */
export class ByteQueue {
  readonly #chunks: Uint8Array[] = [];
  length = 0;

  add(chunk: Uint8Array): void {
    if (chunk.length === 0) return;
    this.#chunks.push(chunk);
    this.length += chunk.length;
  }

  /** Returns a copy of the first bytes, at most `count`, and removes them. */
  take(count: number): Uint8Array<ArrayBuffer> {
    const taken = this.first(count);
    let rest = taken.length;
    while (rest > 0) {
      const chunk = this.#chunks.shift() as Uint8Array;
      if (chunk.length > rest) this.#chunks.unshift(chunk.subarray(rest));
      rest -= Math.min(rest, chunk.length);
    }
    this.length -= taken.length;
    return taken;
  }

  /** Returns a copy of the first bytes, at most `count`. */
  first(count: number): Uint8Array<ArrayBuffer> {
    const copy = new Uint8Array(Math.min(count, this.length));
    let at = 0;
    for (const chunk of this.#chunks) {
      if (at === copy.length) break;
      const part = chunk.subarray(0, copy.length - at);
      copy.set(part, at);
      at += part.length;
    }
    return copy;
  }
}
