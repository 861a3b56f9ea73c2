import { setTimeout as pause } from 'node:timers/promises';
import { confirmedSealWord, type NodeMemory, word } from './node-memory.ts';

/**
 * The seal of the node as all threads see it. The word counts seals and unseals: it is even while the node is sealed, so it begins sealed.
 * A gateway reads it before it sends an answer, and confirms a seal once it has dropped its keys.
 */
export class SealFlag {
  readonly #words: Int32Array<SharedArrayBuffer>;

  constructor({ words }: NodeMemory) {
    this.#words = words;
  }

  get isSealed(): boolean {
    return Atomics.load(this.#words, word.seals) % 2 === 0;
  }

  /** Seals every thread; does nothing if they are sealed. The main thread calls it, and then tells the gateways and awaits them. */
  seal(): void {
    if (!this.isSealed) Atomics.add(this.#words, word.seals, 1);
  }

  /** Ends the seal. The main thread calls it; does nothing if the node is not sealed. */
  unseal(): void {
    if (this.isSealed) Atomics.add(this.#words, word.seals, 1);
  }

  /**
   * Records that the gateway of this row has dropped its keys. A gateway that loads keys looks at {@link isSealed} again after that, and
   * drops them if the node was sealed meanwhile.
   */
  confirm(row: number): void {
    const index = confirmedSealWord(row);
    Atomics.store(this.#words, index, Atomics.load(this.#words, word.seals));
    Atomics.notify(this.#words, index);
  }

  /**
   * Resolves with whether the gateway of this row confirms the present seal within `limitMs`. The main thread ends a gateway that does not.
   */
  async isConfirmed(row: number, limitMs: number): Promise<boolean> {
    const index = confirmedSealWord(row);
    const seal = Atomics.load(this.#words, word.seals);
    const cancel = new AbortController();
    const late = pause(limitMs, false, { signal: cancel.signal }).catch(() => false);
    try {
      for (;;) {
        const confirmed = Atomics.load(this.#words, index);
        if (confirmed === seal) return true;
        const { async: isAsync, value } = Atomics.waitAsync(this.#words, index, confirmed);
        if (isAsync && (await Promise.race([value, late])) === false) return Atomics.load(this.#words, index) === seal;
      }
    } finally {
      cancel.abort();
    }
  }
}
