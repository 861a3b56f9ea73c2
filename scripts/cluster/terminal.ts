// The terminal of `npm run cluster`: lines of the nodes above one line of figures, and keys.
import { clearLine, cursorTo } from 'node:readline';

/** Prints lines. On a terminal, the newest figures stay below them; elsewhere, figures are ordinary lines. */
export class Screen {
  readonly #out: NodeJS.WriteStream;
  #figures = '';

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  print(line: string): void {
    this.#clear();
    this.#out.write(`${line}\n${this.#figures}`);
  }

  show(figures: string): void {
    if (!this.#out.isTTY) {
      this.#out.write(`${figures}\n`);
      return;
    }
    this.#clear();
    this.#figures = figures.slice(0, this.#out.columns - 1);
    this.#out.write(this.#figures);
  }

  #clear(): void {
    if (this.#figures === '') return;
    clearLine(this.#out, 0);
    cursorTo(this.#out, 0);
  }
}

/** Calls `onKey` with each character that is typed, at once on a terminal. Ctrl-C arrives as a key there. */
export function readKeys(input: NodeJS.ReadStream, onKey: (key: string) => void): void {
  if (input.isTTY) input.setRawMode(true);
  input.setEncoding('utf8').on('data', (text: string) => {
    for (const key of text) onKey(key);
  });
  input.on('error', () => undefined);
}
