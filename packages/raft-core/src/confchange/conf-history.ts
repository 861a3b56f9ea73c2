import { invariant } from '../invariant.ts';
import type { ConfState, LogIndex, NodeId } from '../types.ts';
import { flawOf, membersOf } from './conf-state.ts';

/** A configuration and the entry that brought it. */
export interface ConfAt {
  readonly index: LogIndex;
  readonly conf: ConfState;
}

/**
 * All configurations from the log's base on, by index. The newest is in force, committed or not (thesis §4.1); the others
 * are needed because a snapshot at an index holds the configuration as of that index.
 */
export class ConfHistory {
  /** Ascending, never empty: the first is the base's. */
  #confs: ConfAt[];

  constructor(base: ConfAt, later: readonly ConfAt[]) {
    this.#confs = [base, ...later];
    for (const [position, { index, conf }] of this.#confs.entries()) {
      const flaw = flawOf(conf);
      invariant(flaw === undefined, 'a configuration is well-formed', { index, flaw });
      invariant(index > (this.#confs[position - 1]?.index ?? -1), 'configuration entries ascend', { index });
    }
  }

  asOf(index: LogIndex): ConfAt {
    const found = this.#confs.findLast((conf) => conf.index <= index);
    invariant(found !== undefined, 'a configuration is known from the base on', { index });
    return found;
  }

  /** Everyone named by any configuration from the base on, ascending. */
  everyone(): readonly NodeId[] {
    const ids = new Set(this.#confs.flatMap(({ conf }) => [...membersOf(conf)]));
    return [...ids].sort((a, b) => a - b);
  }

  /** Keeps the newest configuration at or below `index` and all later ones. */
  compact(index: LogIndex): void {
    const first = this.asOf(index);
    this.#confs = this.#confs.slice(this.#confs.indexOf(first));
  }
}
