import type { ServerResponse } from 'node:http';

/** What of each body is not counted: most requests have less, and then cost no look at anything. */
export const uncountedBytes = 64 * 1024;
/** How long the answer to a counted body may take to be read. */
const answerMsMax = 120_000;

/** Bytes of large bodies that are here at a time. Each counts as it comes, until its answer has been read: whoever announces much holds nothing by that. */
export class BodyMemory {
  readonly #bytesMax: number;
  readonly #of = new Map<ServerResponse, number>();
  #held = 0;
  #refused = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get held(): number {
    return this.#held;
  }

  /** Since the start. */
  get refused(): number {
    return this.#refused;
  }

  /** Whether a body that is still unread would fit; one that does not is counted as refused. */
  fits(bytes: number): boolean {
    const does = this.#held + bytes - uncountedBytes <= this.#bytesMax;
    if (!does) this.#refused += 1;
    return does;
  }

  /** Counts what a request holds from now on, until `res` is closed; false when there is no room for it. @param bytes - of its body by now */
  grows(res: ServerResponse, bytes: number): boolean {
    const before = this.#of.get(res);
    const now = bytes - uncountedBytes;
    if (now <= 0) return true;
    if (this.#held + now - (before ?? 0) > this.#bytesMax) {
      this.#refused += 1;
      return false;
    }
    if (before === undefined) res.once('close', () => this.#release(res));
    this.#held += now - (before ?? 0);
    this.#of.set(res, now);
    return true;
  }

  /** The answer is on its way: cuts the connection of a caller that does not read it. */
  answered(res: ServerResponse): void {
    if (!this.#of.has(res)) return;
    const deadline = setTimeout(() => res.destroy(), answerMsMax);
    res.once('close', () => clearTimeout(deadline));
  }

  #release(res: ServerResponse): void {
    this.#held -= this.#of.get(res) ?? 0;
    this.#of.delete(res);
  }
}
