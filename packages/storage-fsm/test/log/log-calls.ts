import type { Done, Entry, EntryType, LogIndex, LogStore, LogWrite, SnapshotMeta, Term } from '@transitd/raft-core';

/** Turns a call of a port into a promise. */
const settled = (call: (done: Done) => void): Promise<void> =>
  new Promise((resolve, reject) => call((error) => (error === undefined ? resolve() : reject(error))));

export const write = (log: LogStore, write: Partial<LogWrite>): Promise<void> =>
  settled((done) => log.write({ entries: [], ...write }, done));
export const compact = (log: LogStore, base: SnapshotMeta): Promise<void> => settled((done) => log.compact(base, done));
export const close = (log: LogStore): Promise<void> => settled((done) => log.close(done));
export const read = (log: LogStore, lo: LogIndex, hi: LogIndex, maxBytes = Number.POSITIVE_INFINITY): Promise<readonly Entry[]> =>
  new Promise((resolve, reject) =>
    log.read({ lo, hi, maxBytes }, (error, entries) => (error === undefined ? resolve(entries) : reject(error))),
  );

/** Returns an entry; `text` distinguishes entries at the same index. */
export const entry = (
  index: LogIndex,
  term: Term,
  text = `entry ${index} of term ${term}`,
  type: EntryType = 'normal',
): Entry => ({
  term,
  index,
  type,
  data: Buffer.from(text),
});
/** Returns entries first..last of one term. */
export const entries = ({ first, last }: { first: LogIndex; last: LogIndex }, term: Term): Entry[] =>
  Array.from({ length: last - first + 1 }, (_, i) => entry(first + i, term));

/** Returns entries as plain text, for comparison. */
export const shown = (list: readonly Entry[]): string[] =>
  list.map(({ index, term, type, data }) => `${index}/${term}/${type}/${Buffer.from(data).toString()}`);

/** Returns the log after its base as plain text. */
export const contents = async (log: LogStore): Promise<string[]> => {
  const { base, lastIndex } = log.start;
  return lastIndex === base.index ? [] : shown(await read(log, base.index + 1, lastIndex));
};

export const base = (index: LogIndex, term: Term): SnapshotMeta => ({
  index,
  term,
  conf: { voters: [7], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false, context: Buffer.from([0, 255, 1]) },
  confIndex: 0,
});
/** The beginning of a new cluster's log. */
export const genesis = base(0, 0);
