/** A range of bytes in a segment. */
export interface Place {
  /** Number of the segment. */
  readonly segment: number;
  readonly offset: number;
  readonly bytes: number;
}

/** The content of a segment from `offset` on, `used` bytes long. */
interface Chunk {
  readonly segment: number;
  readonly offset: number;
  readonly content: Buffer;
  used: number;
}

/** Batches share chunks of this size; a larger batch gets a chunk of its own. */
const chunkBytes = 256 * 1024;

/**
 * Caches the newest batches as the bytes that were written, up to a limit in bytes, so that entries sent to peers are not read back from
 * the disk. Small entries kept as objects would take twice the memory.
 */
export class RecentRecords {
  readonly #bytesMax: number;
  #bytes = 0;
  /** Ascending by place. */
  #chunks: Chunk[] = [];

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Allocates memory for the batch that will be written at this place, after all earlier ones; the caller fills it. Evicts the oldest. */
  allocate({ segment, offset, bytes }: Place): Buffer {
    let chunk = this.#chunks.at(-1);
    const follows = chunk?.segment === segment && chunk.offset + chunk.used === offset;
    if (chunk === undefined || !follows || chunk.used + bytes > chunk.content.length) {
      const size = Math.max(bytes, Math.min(chunkBytes, this.#bytesMax));
      chunk = { segment, offset, content: Buffer.allocUnsafeSlow(size), used: 0 };
      this.#chunks.push(chunk);
      this.#bytes += size;
    }
    chunk.used += bytes;
    while (this.#bytes > this.#bytesMax) this.#bytes -= this.#chunks.shift()?.content.length ?? 0;
    return chunk.content.subarray(chunk.used - bytes, chunk.used);
  }

  /** Returns the bytes at this place, or undefined unless all of them are cached. */
  at({ segment, offset, bytes }: Place): Buffer | undefined {
    const chunk = this.#chunks.findLast((each) => each.segment === segment && each.offset <= offset);
    if (chunk === undefined || offset + bytes > chunk.offset + chunk.used) return undefined;
    return chunk.content.subarray(offset - chunk.offset, offset - chunk.offset + bytes);
  }
}
