import { type LevelRange, requireSupported, type UnsupportedLevel } from '@transitd/storage-fsm';
import type { StateFeed } from './state-feed.ts';

export interface LevelGuardParts {
  readonly feed: StateFeed;
  readonly prefix: string;
  /** The feature levels that this program supports. */
  readonly levels: LevelRange;
  /** This node must no longer serve anything. Called once. */
  readonly onUnsupported: (error: UnsupportedLevel) => void;
}

/** Compares the feature level of the cluster with the levels of this program. */
export class LevelGuard {
  readonly #parts: LevelGuardParts;
  #isUnsupported = false;

  /** @throws UnsupportedLevel */
  constructor(parts: LevelGuardParts) {
    this.#parts = parts;
    this.#require();
    parts.feed.observe(() => this.#check());
  }

  get isUnsupported(): boolean {
    return this.#isUnsupported;
  }

  #check(): void {
    if (this.#isUnsupported) return;
    try {
      this.#require();
    } catch (error) {
      this.#isUnsupported = true;
      this.#parts.onUnsupported(error as UnsupportedLevel);
    }
  }

  #require(): void {
    const { feed, levels, prefix } = this.#parts;
    const { level } = feed.copy.level;
    if (level > 0) requireSupported(level, levels, `the cluster below ${prefix} in etcd`); // 0: an etcd was restored without a level
  }
}
