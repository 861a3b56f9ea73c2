import { type ConfState, decodeConfState, type Entry, type LogIndex, type SnapshotMeta, type Term } from '@transitd/raft-core';

/** The checkers' copy of a node's log: the term and a fingerprint of each entry, and all configurations. */
export class LogCopy {
  baseIndex: LogIndex;
  lastIndex: LogIndex;
  readonly #terms: Term[] = [];
  readonly #prints: number[] = [];
  /** Ascending; the first one is the configuration of the base. */
  confs: { readonly index: LogIndex; readonly term: Term; readonly conf: ConfState }[];

  constructor({ index, term, conf, confIndex }: SnapshotMeta) {
    this.baseIndex = index;
    this.lastIndex = index;
    this.#terms[index] = term;
    this.confs = [{ index: confIndex, term, conf }];
  }

  /** Returns the term, or 0 below the base. */
  termAt(index: LogIndex): Term {
    return index < this.baseIndex || index > this.lastIndex ? 0 : (this.#terms[index] ?? 0);
  }

  /** Returns the fingerprint, or undefined at or below the base. */
  printAt(index: LogIndex): number | undefined {
    return index <= this.baseIndex || index > this.lastIndex ? undefined : this.#prints[index];
  }

  get conf(): ConfState | undefined {
    return this.confs.at(-1)?.conf;
  }

  /** Drops the entries from `index` on. Returns the configurations among them. */
  truncate(index: LogIndex): number {
    const kept = this.confs.filter((conf, position) => position === 0 || conf.index < index);
    const gone = this.confs.length - kept.length;
    this.confs = kept;
    this.lastIndex = index - 1;
    return gone;
  }

  push({ term, index, type, data }: Entry, print: number): void {
    this.#terms[index] = term;
    this.#prints[index] = print;
    this.lastIndex = index;
    if (type === 'conf') this.confs.push({ index, term, conf: decodeConfState(data) });
  }
}

/** Returns a fingerprint: equal fingerprints mean equal entries. */
export function printOf({ type, term, index, data }: Entry): number {
  let print = 0x811c9dc5;
  for (const word of [type.charCodeAt(0), term, index]) print = Math.imul(print ^ word, 0x01000193);
  for (const byte of data) print = Math.imul(print ^ byte, 0x01000193);
  return print >>> 0;
}
