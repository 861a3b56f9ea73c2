import type { Entry, HardState, LogIndex, LogStart, LogWrite, NodeId, SnapshotMeta } from '@transitd/raft-core';
import { type DurableLog, holds } from '@transitd/raft-sim';

/** The acknowledged content of a log, over all its incarnations: a later start must never find less. */
export class AcknowledgedLog implements DurableLog {
  readonly nodeId: NodeId;
  base: SnapshotMeta;
  entries: Entry[] = [];
  hardState: HardState;
  /** Requested but not acknowledged writes: any prefix of them may be on disk. */
  #writes: LogWrite[] = [];
  #bases: SnapshotMeta[] = [];
  #incarnation = 0;
  /** A snapshot whose installation is in flight. */
  #installing: SnapshotMeta | undefined;

  constructor({ nodeId, base }: { readonly nodeId: NodeId; readonly base: SnapshotMeta }) {
    this.nodeId = nodeId;
    this.base = base;
    this.hardState = { term: base.term, vote: 0, commit: base.index };
  }

  get lastIndex(): LogIndex {
    return this.base.index + this.entries.length;
  }
  /** Number of unacknowledged writes and of their entries. */
  get pieces(): number {
    return this.#writes.reduce((sum, { entries }) => sum + 1 + entries.length, 0);
  }

  entry(index: LogIndex): Entry | undefined {
    return this.entries[index - this.base.index - 1];
  }

  asked(write: LogWrite): void {
    this.#writes.push(write);
  }

  acknowledged(write: LogWrite): void {
    holds('writes become durable in order', this.#writes.shift() === write, () => ({ id: this.nodeId }));
    this.hardState = write.hardState ?? this.hardState;
    this.entries = this.#with(write.entries);
  }

  compacting(base: SnapshotMeta): void {
    this.#bases.push(base);
  }

  compacted(base: SnapshotMeta): void {
    this.entries = this.entries.filter(({ index }) => index > base.index);
    this.base = base;
    this.#bases = [];
  }

  installing(base: SnapshotMeta): void {
    this.#installing = base;
  }

  installed(base: SnapshotMeta): void {
    this.base = base;
    this.entries = [];
    this.#writes = [];
    this.#bases = [];
    this.#installing = undefined;
  }

  /** Replaces the expected content by the content that a new start has found. @throws Violation when acknowledged content is missing */
  reopened({ hardState, base, incarnation }: LogStart, found: readonly Entry[]): void {
    const before = this.#incarnation;
    holds('every start has a later incarnation', incarnation > before, () => ({ id: this.nodeId, incarnation, before }));
    this.#incarnation = incarnation;
    const asked = this.#writes.flatMap((write) => write.entries);
    const hardStates = [this.hardState, ...this.#writes.flatMap((write) => write.hardState ?? [])];
    const logs = Array.from({ length: asked.length + 1 }, (_, count) => this.#with(asked.slice(0, count)));
    const facts = () => ({ id: this.nodeId, found: shown(found), acknowledged: shown(this.entries), asked: shown(asked) });
    const isVote = hardStates.some(({ term, vote }) => term === hardState.term && vote === hardState.vote);
    holds('a start finds the term and vote that were acknowledged', isVote, () => ({ hardState, hardStates }));
    const isAt = ({ index, term }: SnapshotMeta): boolean => index === base.index && term === base.term;
    const isInstalled = this.#installing !== undefined && isAt(this.#installing);
    const isBase = isInstalled || [this.base, ...this.#bases].some(isAt);
    holds('a start finds the beginning of the log that was acknowledged', isBase, () => ({ base: base.index, ...facts() }));
    const text = shown(found).join();
    const isLog = (isInstalled ? [[]] : logs).some(
      (log: Entry[]) => shown(log.filter(({ index }) => index > base.index)).join() === text,
    );
    holds('a start finds the entries that were acknowledged', isLog, facts);
    this.hardState = hardState;
    this.base = base;
    this.entries = [...found];
    this.#writes = [];
    this.#bases = [];
    this.#installing = undefined;
  }

  #with(entries: readonly Entry[]): Entry[] {
    const log = [...this.entries];
    for (const entry of entries) {
      log.length = entry.index - this.base.index - 1;
      log.push(entry);
    }
    return log;
  }
}

const shown = (entries: readonly Entry[]): string[] =>
  entries.map(({ index, term, type, data }) => `${index}/${term}/${type}/${Buffer.from(data).toString('base64')}`);
