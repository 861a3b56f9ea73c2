import { invariant } from '../invariant.ts';
import type { ConfState, LogIndex, NodeId } from '../types.ts';
import { flawOf, membersOf } from './conf-state.ts';

/** A configuration and the index of its log entry. */
export interface ConfAt {
  readonly index: LogIndex;
  readonly conf: ConfState;
}

/**
 * All configurations since the log's base, by index. The newest is in force, committed or not (thesis §4.1). The older ones are kept
 * because a snapshot contains the configuration as of its index.
 */
export class ConfHistory {
  /** Ascending and never empty; the first one is the configuration of the base. */
  #confs: ConfAt[];
  /** What `everyone` returned since the last change: it is asked on every tick. */
  #everyone: readonly NodeId[] | undefined;

  constructor(base: ConfAt, later: readonly ConfAt[]) {
    this.#confs = [];
    for (const conf of [base, ...later]) this.append(conf);
  }

  /** The configuration in force. */
  get newest(): ConfAt {
    const newest = this.#confs.at(-1);
    invariant(newest !== undefined, 'a configuration is known from the base on', {});
    return newest;
  }

  append({ index, conf }: ConfAt): void {
    const flaw = flawOf(conf);
    invariant(flaw === undefined, 'a configuration is well-formed', { index, flaw });
    invariant(index > (this.#confs.at(-1)?.index ?? -1), 'configuration entries ascend', { index });
    this.#confs.push({ index, conf });
    this.#everyone = undefined;
  }

  /** Drops the configurations of the superseded entries, from `index` on. Returns how many configurations were dropped. */
  truncate(index: LogIndex): number {
    const kept = this.#confs.filter((conf) => conf.index < index);
    invariant(kept.length > 0, 'the base is never rolled back', { index });
    const count = this.#confs.length - kept.length;
    if (count > 0) this.#confs = kept;
    this.#everyone = undefined;
    return count;
  }

  /** Replaces all configurations, because a snapshot replaces the whole log. */
  install(base: ConfAt): void {
    this.#confs = [];
    this.append(base);
  }

  asOf(index: LogIndex): ConfAt {
    const found = this.#confs.findLast((conf) => conf.index <= index);
    invariant(found !== undefined, 'a configuration is known from the base on', { index });
    return found;
  }

  /** Returns every node that any configuration since the base names, ascending. */
  everyone(): readonly NodeId[] {
    this.#everyone ??= [...new Set(this.#confs.flatMap(({ conf }) => [...membersOf(conf)]))].sort((a, b) => a - b);
    return this.#everyone;
  }

  /** Returns how many configurations belong to entries above `index` that are not below `from`. */
  countAbove(index: LogIndex, from: LogIndex): number {
    return this.#confs.filter((conf) => conf.index > index && conf.index >= from).length;
  }

  /** Keeps the newest configuration at or below `index`, and all later ones. */
  compact(index: LogIndex): void {
    const first = this.asOf(index);
    this.#confs = this.#confs.slice(this.#confs.indexOf(first));
    this.#everyone = undefined;
  }

  checkInvariants(lastIndex: LogIndex): void {
    invariant(this.newest.index <= lastIndex, 'no configuration outlives its entry', { newest: this.newest.index, lastIndex });
    for (const { index, conf } of this.#confs) invariant(flawOf(conf) === undefined, 'a configuration is well-formed', { index });
  }
}
