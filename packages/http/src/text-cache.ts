/** A least-recently-used cache of strings that take long to compute. */
export class TextCache {
  readonly #charactersMax: number;
  /** In order of use; the most recently used is last. */
  readonly #texts = new Map<string, string>();
  readonly #pending = new Map<string, Promise<string>>();
  #characters = 0;

  /** @param charactersMax - maximum length of all cached strings together; a longer string is not cached */
  constructor({ charactersMax }: { readonly charactersMax: number }) {
    this.#charactersMax = charactersMax;
  }

  /** Returns the string for `key`. If it is missing, calls `make` once for all concurrent callers. @throws the errors of `make` */
  async get(key: string, make: () => Promise<string>): Promise<string> {
    const kept = this.#texts.get(key);
    if (kept !== undefined) {
      this.#texts.delete(key);
      this.#texts.set(key, kept);
      return kept;
    }
    const pending = this.#pending.get(key) ?? this.#make(key, make);
    this.#pending.set(key, pending);
    return pending;
  }

  async #make(key: string, make: () => Promise<string>): Promise<string> {
    try {
      const text = await make();
      if (text.length <= this.#charactersMax) this.#store(key, text);
      return text;
    } finally {
      this.#pending.delete(key);
    }
  }

  #store(key: string, text: string): void {
    this.#texts.set(key, text);
    this.#characters += text.length;
    for (const [oldest, { length }] of this.#texts) {
      if (this.#characters <= this.#charactersMax) break;
      this.#texts.delete(oldest);
      this.#characters -= length;
    }
  }
}
