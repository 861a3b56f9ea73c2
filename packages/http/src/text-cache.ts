/** A least-recently-used cache of texts that take long to make. */
export class TextCache {
  readonly #charactersMax: number;
  /** In order of use, the latest last. */
  readonly #texts = new Map<string, string>();
  readonly #pending = new Map<string, Promise<string>>();
  #characters = 0;

  /** @param charactersMax - of all texts together; a longer text is not cached */
  constructor({ charactersMax }: { readonly charactersMax: number }) {
    this.#charactersMax = charactersMax;
  }

  /** Returns the text of `key`. Makes a missing one, once for all concurrent callers. @throws the errors of `make` */
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
