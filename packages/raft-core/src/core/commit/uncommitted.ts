/**
 * Payload bytes that a leader has accepted and not yet committed. Above the limit, proposals are refused, so that the memory does not fill
 * while no quorum answers. If nothing else is uncommitted, a proposal of any size is accepted.
 */
export class UncommittedBytes {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Counts the payload if there is room; returns false otherwise. Empty payloads always pass. */
  add(bytes: number): boolean {
    if (bytes > 0 && this.#bytes > 0 && this.#bytes + bytes > this.#bytesMax) return false;
    this.take(bytes);
    return true;
  }

  /**
   * Counts an entry that must not be refused, such as a configuration change: it may restore the quorum that all other entries wait for.
   */
  take(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Subtracts committed bytes, never below 0: entries of earlier leaders were not counted. */
  committed(bytes: number): void {
    this.#bytes = Math.max(0, this.#bytes - bytes);
  }
}
