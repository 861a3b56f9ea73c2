import { invariant } from '../../invariant.ts';
import type { LogIndex } from '../../types.ts';
import type { RaftLimits } from '../contract/limits.ts';

/** Appends sent to one peer and not acknowledged, limited by count and by bytes. */
export class Inflight {
  readonly #limits: Pick<RaftLimits, 'inflightMessagesMax' | 'inflightBytesMax'>;
  /** Ascending by `end`, the index of the last entry of an Append. */
  #sent: { readonly end: LogIndex; readonly bytes: number }[] = [];
  #bytes = 0;

  constructor(limits: Pick<RaftLimits, 'inflightMessagesMax' | 'inflightBytesMax'>) {
    this.#limits = limits;
  }

  get count(): number {
    return this.#sent.length;
  }
  get bytes(): number {
    return this.#bytes;
  }
  /** The bytes sent may exceed the limit by one message. */
  get isFull(): boolean {
    return this.#sent.length >= this.#limits.inflightMessagesMax || this.#bytes >= this.#limits.inflightBytesMax;
  }

  add(end: LogIndex, bytes: number): void {
    invariant(!this.isFull && end > (this.#sent.at(-1)?.end ?? 0), 'the window has room, and its ends are in ascending order', {
      end,
      count: this.count,
      bytes: this.#bytes,
    });
    this.#sent.push({ end, bytes });
    this.#bytes += bytes;
  }

  /** Frees everything up to `match`, which is acknowledged. */
  free(match: LogIndex): void {
    const freed = this.#sent.findIndex(({ end }) => end > match);
    const gone = this.#sent.splice(0, freed < 0 ? this.#sent.length : freed);
    for (const { bytes } of gone) this.#bytes -= bytes;
  }

  clear(): void {
    this.#sent = [];
    this.#bytes = 0;
  }
}
