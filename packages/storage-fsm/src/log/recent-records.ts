/** Where bytes lie in a segment. */
export interface Place {
  /** Number of the segment. */
  readonly segment: number;
  readonly offset: number;
  readonly bytes: number;
}

/** What lies in a segment from `offset` on, as far as it is `used`. */
interface Chunk {
  readonly segment: number;
  readonly offset: number;
  readonly content: Buffer;
  used: number;
}

/** Batches share memory up to this size; a larger one has memory of its own. */
const chunkBytes = 256 * 1024;

/**
 * The newest batches in the form in which they are written, up to a limit in bytes, so that what a peer asks for next is not read
 * back. Entries of their own would weigh twice as much when they are small.
 */
export class RecentRecords {
  readonly #bytesMax: number;
  #bytes = 0;
  /** Ascending by place. */
  #chunks: Chunk[] = [];

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Memory for the batch that goes to this place, behind all before it; the caller fills it. What is oldest gives way. */
  room({ segment, offset, bytes }: Place): Buffer {
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

  /** The content at this place, if all of it is held. */
  at({ segment, offset, bytes }: Place): Buffer | undefined {
    const chunk = this.#chunks.findLast((each) => each.segment === segment && each.offset <= offset);
    if (chunk === undefined || offset + bytes > chunk.offset + chunk.used) return undefined;
    return chunk.content.subarray(offset - chunk.offset, offset - chunk.offset + bytes);
  }
}
