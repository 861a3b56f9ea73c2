/** Texts that take long to make, kept by what they are made of; those asked for last stay. */
export class TextCache {
  readonly #charactersMax: number;
  /** The one asked for last comes last. */
  readonly #texts = new Map<string, string>();
  readonly #underWay = new Map<string, Promise<string>>();
  #characters = 0;

  /** @param charactersMax - of all texts together; a longer one is not kept */
  constructor({ charactersMax }: { readonly charactersMax: number }) {
    this.#charactersMax = charactersMax;
  }

  /** The text of `key`, made now if it is not kept: once for all who ask meanwhile. @throws what `make` throws */
  async get(key: string, make: () => Promise<string>): Promise<string> {
    const kept = this.#texts.get(key);
    if (kept !== undefined) {
      this.#texts.delete(key);
      this.#texts.set(key, kept);
      return kept;
    }
    const underWay = this.#underWay.get(key) ?? this.#make(key, make);
    this.#underWay.set(key, underWay);
    return underWay;
  }

  async #make(key: string, make: () => Promise<string>): Promise<string> {
    try {
      const text = await make();
      if (text.length <= this.#charactersMax) this.#store(key, text);
      return text;
    } finally {
      this.#underWay.delete(key);
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
