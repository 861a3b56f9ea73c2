import { NamedLocks } from '@transitd/event-loop';
import { untilCommitted } from '@transitd/storage-fsm';
import { TransitError } from '../values/errors.ts';

/**
 * Runs the changes of one key one after the other, in order of arrival, so that changes of this node never conflict with each other.
 * Changes of other keys do not wait.
 */
export class ChangeQueue {
  readonly #locks = new NamedLocks();

  /**
   * Runs `change` after the earlier changes of the key. While `change` returns undefined, which reports a conflict, runs it again.
   * @throws TransitError `too_many_conflicts`, and whatever `change` throws
   */
  run<T>(name: string, change: () => Promise<T | undefined>): Promise<T> {
    const conflict = () =>
      new TransitError('too_many_conflicts', `key ${name} changed too often in the meantime; nothing was done`);
    return this.exclusively(name, () => untilCommitted(change, conflict));
  }

  /** Runs `change` once, after the earlier changes of the key. @throws whatever `change` throws */
  exclusively<T>(name: string, change: () => Promise<T>): Promise<T> {
    return this.#locks.run(name, change);
  }
}
