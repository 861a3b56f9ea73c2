/** Gives numbers to values, the same number to equal ones. */
export class Numbering<Thing> {
  readonly #text: (thing: Thing) => string;
  readonly #numbers = new Map<string, number>();
  readonly #things: Thing[] = [];

  /** @param text - equal for equal values */
  constructor(text: (thing: Thing) => string) {
    this.#text = text;
  }

  number(thing: Thing): number {
    const text = this.#text(thing);
    const known = this.#numbers.get(text) ?? this.#things.length;
    if (known === this.#things.length) {
      this.#numbers.set(text, known);
      this.#things.push(thing);
    }
    return known;
  }

  at(number: number): Thing {
    const thing = this.#things[number];
    if (thing === undefined) throw new RangeError(`no value has the number ${number}`);
    return thing;
  }
}
