import { TimeSlice } from '@transitd/event-loop';
import { release } from '@transitd/process';

const nothing = Buffer.alloc(0);

/**
 * Collects the pieces of a body. The caller chooses their size, and each Buffer costs hundreds of bytes. So after the first few, small
 * pieces are copied into blocks. Large pieces are kept and copied only once, at the end.
 */
export class Pieces {
  static readonly #asTheyCame = 16;
  static readonly #smallBytesMax = 4096;
  static readonly #blockBytes = 65_536;
  static readonly #joinedAtOnceBytesMax = 1024 * 1024;
  static readonly #wholeBytesMax = 4 * 1024 * 1024;
  #pieces: Buffer[] = [];
  /** The memory for the whole body, once it is allocated; its first `#bytes` bytes are filled. */
  #whole: Buffer | undefined;
  /** Block for small pieces. Its first `#used` bytes are filled and not yet in `#pieces`. */
  #block = nothing;
  #used = 0;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** Adds a piece, which nobody else uses. */
  add(piece: Buffer): void {
    if (this.#whole !== undefined) {
      this.#bytes += piece.copy(this.#whole, this.#bytes);
      release(piece);
      return;
    }
    this.#bytes += piece.length;
    if (piece.length > Pieces.#smallBytesMax || this.#pieces.length < Pieces.#asTheyCame) {
      this.#flush();
      this.#pieces.push(piece);
      return;
    }
    if (piece.length > this.#block.length - this.#used) {
      this.#flush();
      this.#block = Buffer.allocUnsafe(Pieces.#blockBytes);
    }
    piece.copy(this.#block, this.#used);
    this.#used += piece.length;
  }

  /**
   * Allocates memory for a body of this length, which the caller has announced and for which memory is reserved. From now on each piece is
   * copied at once, and its memory is free for the next one. The memory for a very long body is not taken before its bytes arrive.
   */
  allocate(length: number): void {
    if (this.#whole !== undefined || length > Pieces.#wholeBytesMax) return;
    this.#flush();
    const whole = Buffer.allocUnsafe(length);
    let at = 0;
    for (const piece of this.#pieces) at += piece.copy(whole, at);
    this.#pieces = [];
    this.#whole = whole;
  }

  /** Returns the whole body. A long one is copied in slices between which the event loop runs. */
  join(): Buffer | Promise<Buffer> {
    if (this.#whole !== undefined) return this.#whole.subarray(0, this.#bytes);
    this.#flush();
    const [first = nothing] = this.#pieces;
    if (this.#pieces.length <= 1) return first;
    return this.#bytes <= Pieces.#joinedAtOnceBytesMax ? Buffer.concat(this.#pieces, this.#bytes) : this.#joinInSlices();
  }

  async #joinInSlices(): Promise<Buffer> {
    const whole = Buffer.allocUnsafe(this.#bytes);
    const slice = new TimeSlice();
    let at = 0;
    for (const piece of this.#pieces) {
      if (slice.isOver) await slice.next();
      at += piece.copy(whole, at);
    }
    await slice.next(); // the caller continues in a turn of its own
    return whole;
  }

  /** Moves the filled part of the block to the pieces; later pieces use the remaining part. */
  #flush(): void {
    if (this.#used === 0) return;
    this.#pieces.push(this.#block.subarray(0, this.#used));
    this.#block = this.#block.subarray(this.#used);
    this.#used = 0;
  }
}
