import { TransitError } from './errors.ts';

/** A step that meets a change by someone else starts over from fresh records, this often at most. */
const attemptsMax = 5;

/**
 * A key's lock: changes of one name run one after the other, in the order in which they came, so that those of this node never
 * conflict with each other. Changes of other names do not wait.
 */
export class ChangeQueue {
  readonly #tails = new Map<string, Promise<void>>();

  /**
   * Runs `step` in its turn, and again while it meets a conflict, which it says by undefined.
   * @throws TransitError `too_many_conflicts`, and whatever `step` throws
   */
  run<T>(name: string, step: () => Promise<T | undefined>): Promise<T> {
    const result = (this.#tails.get(name) ?? Promise.resolve()).then(() => settle(name, step));
    const leave = (): void => {
      if (this.#tails.get(name) === tail) this.#tails.delete(name);
    };
    const tail = result.then(leave, leave);
    this.#tails.set(name, tail);
    return result;
  }
}

async function settle<T>(name: string, step: () => Promise<T | undefined>): Promise<T> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const result = await step();
    if (result !== undefined) return result;
  }
  throw new TransitError('too_many_conflicts', `key ${name} changed too often in the meantime; nothing was done`);
}
