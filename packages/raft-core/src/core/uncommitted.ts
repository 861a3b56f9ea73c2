/**
 * Payload bytes that a leader has accepted and not yet committed. Beyond the limit proposals are refused, so that a stuck
 * quorum cannot fill the memory; but with nothing else waiting, one proposal of any size may pass.
 */
export class UncommittedBytes {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Counts the payload if there is room. Empty payloads always pass. */
  add(bytes: number): boolean {
    if (bytes > 0 && this.#bytes > 0 && this.#bytes + bytes > this.#bytesMax) return false;
    this.take(bytes);
    return true;
  }

  /** Counts what must not wait: a configuration may be what frees the quorum that all else waits for. */
  take(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Never below 0: entries of earlier leaders were not counted when they were appended. */
  committed(bytes: number): void {
    this.#bytes = Math.max(0, this.#bytes - bytes);
  }
}
