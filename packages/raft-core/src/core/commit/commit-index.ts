import type { LogIndex } from '../../types.ts';

/**
 * The commit index (Raft figure 2) and the stored hint of it. The hint is never above the last entry on the disk, because a start
 * that finds a log shorter than the hint reports damage.
 */
export class CommitIndex {
  #value: LogIndex;
  #hint: LogIndex;
  /** True while a snapshot is being installed: the disk still has the old log. */
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

  /** Returns the commit index that may be stored while the log is stable up to `stableIndex`. */
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
