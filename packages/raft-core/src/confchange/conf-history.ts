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
    this.#confs = [];
    for (const conf of [base, ...later]) this.append(conf);
  }

  /** The one in force. */
  get newest(): ConfAt {
    return this.asOf(Number.POSITIVE_INFINITY);
  }

  append({ index, conf }: ConfAt): void {
    const flaw = flawOf(conf);
    invariant(flaw === undefined, 'a configuration is well-formed', { index, flaw });
    invariant(index > (this.#confs.at(-1)?.index ?? -1), 'configuration entries ascend', { index });
    this.#confs.push({ index, conf });
  }

  /** The entries from `index` on are superseded. Answers how many configurations that rolls back. */
  truncate(index: LogIndex): number {
    const kept = this.#confs.filter((conf) => conf.index < index);
    invariant(kept.length > 0, 'the base is never rolled back', { index });
    const count = this.#confs.length - kept.length;
    if (count > 0) this.#confs = kept;
    return count;
  }

  /** A snapshot takes the place of the whole log. */
  install(base: ConfAt): void {
    this.#confs = [];
    this.append(base);
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

  /** How many configurations were brought by entries above `index` and from `from` on. */
  countAbove(index: LogIndex, from: LogIndex): number {
    return this.#confs.filter((conf) => conf.index > index && conf.index >= from).length;
  }

  /** Keeps the newest configuration at or below `index` and all later ones. */
  compact(index: LogIndex): void {
    const first = this.asOf(index);
    this.#confs = this.#confs.slice(this.#confs.indexOf(first));
  }

  checkInvariants(lastIndex: LogIndex): void {
    invariant(this.newest.index <= lastIndex, 'no configuration outlives its entry', { newest: this.newest.index, lastIndex });
    for (const { index, conf } of this.#confs) invariant(flawOf(conf) === undefined, 'a configuration is well-formed', { index });
  }
}
