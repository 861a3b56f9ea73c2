import { setTimeout as pause } from 'node:timers/promises';

/** Pauses that end early when their owner closes. */
export class Pauses {
  readonly #closing = new AbortController();

  /** Resolves after about this time, or at once when the owner closes. */
  async pause(ms: number): Promise<void> {
    await pause(Math.max(0, ms), undefined, { signal: this.#closing.signal }).catch(() => undefined);
  }

  get isEnded(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Ends all pauses, present and later ones. */
  end(): void {
    this.#closing.abort();
  }
}
