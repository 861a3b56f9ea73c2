import type { Done, Entry, LogIndex, LogStart, LogStore, LogWrite, SnapshotMeta } from '@transitd/raft-core';
import type { StorageRun } from '@transitd/raft-sim';
import type { SegmentLog } from '../../src/log/segment-log.ts';
import type { AcknowledgedLog } from './acknowledged-log.ts';

/** The segment log of one run: notes what it acknowledges, and answers in the node's process. */
export class SimLog implements LogStore {
  readonly start: LogStart;
  readonly #run: StorageRun;
  readonly #acknowledged: AcknowledgedLog;
  readonly #log: SegmentLog;

  constructor(log: SegmentLog, run: StorageRun, acknowledged: AcknowledgedLog) {
    this.start = log.start;
    this.#log = log;
    this.#run = run;
    this.#acknowledged = acknowledged;
  }

  write(write: LogWrite, done: Done): void {
    this.#run.onWrite(write);
    this.#acknowledged.asked(write);
    this.#log.write(write, (error) =>
      this.#run.enter(() => {
        if (error === undefined) this.#acknowledged.acknowledged(write);
        done(error);
      }),
    );
  }

  noteCommit(index: LogIndex): void {
    this.#log.noteCommit(index);
  }

  read(
    range: { lo: LogIndex; hi: LogIndex; maxBytes: number },
    done: (error: Error | undefined, entries: readonly Entry[]) => void,
  ): void {
    this.#log.read(range, (error, entries) => this.#run.enter(() => done(error, entries)));
  }

  compact(base: SnapshotMeta, done: Done): void {
    this.#acknowledged.compacting(base);
    this.#log.compact(base, (error) =>
      this.#run.enter(() => {
        if (error === undefined) this.#acknowledged.compacted(base);
        done(error);
      }),
    );
  }

  close(done: Done): void {
    this.#log.close((error) => this.#run.enter(() => done(error)));
  }
}
