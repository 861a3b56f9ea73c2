import type { LogIndex } from '../types.ts';

/**
 * The commit index (Raft figure 2), and the hint of it that is stored: never more than the disk holds, for a start that finds
 * less in its log than that takes the log for damaged.
 */
export class CommitIndex {
  #value: LogIndex;
  #hint: LogIndex;
  /** A snapshot is on its way to take the log's place on the disk, where the old log still lies. */
  #isInstalling = false;

  constructor({ commit, hint }: { readonly commit: LogIndex; readonly hint: LogIndex }) {
    this.#value = commit;
    this.#hint = hint;
  }

  get value(): LogIndex {
    return this.#value;
  }
  get isInstalling(): boolean {
    return this.#isInstalling;
  }

  advance(to: LogIndex): void {
    this.#value = to;
  }

  install(index: LogIndex): void {
    this.#value = index;
    this.#isInstalling = true;
  }

  installed(): void {
    this.#isInstalling = false;
  }

  /** What may be stored as committed while the log is stable up to `stableIndex`. */
  onDisk(stableIndex: LogIndex): LogIndex {
    return this.#isInstalling ? this.#hint : Math.min(this.#value, stableIndex);
  }

  hasNewHint(stableIndex: LogIndex): boolean {
    return this.onDisk(stableIndex) > this.#hint;
  }

  takeHint(stableIndex: LogIndex): { readonly commitHint?: LogIndex } {
    if (!this.hasNewHint(stableIndex)) return {};
    this.#hint = this.onDisk(stableIndex);
    return { commitHint: this.#hint };
  }
}
