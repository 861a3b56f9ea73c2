import { CodecError, type Entry, invariant, type LogIndex } from '@transitd/raft-core';
import { allowsFormat, type FeatureLevel, type LevelRange, requireSupported } from '../level/feature-levels.ts';
import { encodeLevel, levelName } from '../level/level-record.ts';
import { raiseFormat } from '../level/raise-codec.ts';
import { applyReplicationStep } from '../store/apply-replication-step.ts';
import { decodeCommand } from '../store/codec.ts';
import { addToDigest, recordDigest, removeFromDigest } from '../store/digest.ts';
import {
  encodeReplicationState,
  isLocal,
  mayWrite,
  positionOf,
  type ReplicationState,
  replicationName,
  takesPart,
} from '../store/replication-state.ts';
import type { ReplicatedWrite, ReplicationStep, StepEffect } from '../store/replication-step.ts';
import { applyRestoreStep, type RestoreStep } from '../store/restore-step.ts';
import { encodeSpaces, nameOf, spacesName } from '../store/spaces.ts';
import type { Change, CommitResult } from '../store/store.ts';
import { applyTransaction, type Command, type Transaction } from '../store/transaction.ts';
import type { Watchers } from '../store/watchers.ts';
import type { Write } from '../store/write.ts';
import type { AppliedEntry } from './applied-entry.ts';
import type { Records } from './records.ts';
import type { ScopeDigest } from './scope-digest.ts';
import type { StateMeta } from './state-record.ts';

export interface EntryApplierParts {
  readonly records: Records;
  readonly watchers: Watchers;
  readonly scope: ScopeDigest;
  readonly levels: LevelRange;
}

/** Applies committed entries to the records. Everything it decides depends on the entries alone, so that every node decides the same. */
export class EntryApplier {
  /** Metadata of the applied state. A snapshot replaces it. */
  applied: StateMeta;
  /** Called after each entry. It must not throw. */
  onEntry: (applied: AppliedEntry) => void = () => undefined;
  readonly #records: Records;
  readonly #watchers: Watchers;
  readonly #scope: ScopeDigest;
  readonly #levels: LevelRange;

  constructor(applied: StateMeta, { records, watchers, scope, levels }: EntryApplierParts) {
    this.applied = applied;
    this.#records = records;
    this.#watchers = watchers;
    this.#scope = scope;
    this.#levels = levels;
  }

  /** Applies the next entry. @throws as `KeyValueMachine.apply` does */
  apply(entry: Entry): CommitResult {
    const { index } = entry;
    const before = this.#records.replication;
    const command = entry.type === 'normal' ? this.#commandOf(entry) : undefined;
    const result = command === undefined ? this.#applyNothing(entry) : this.#applyCommand(command, index);
    this.#noteScope(index);
    const committed = result.outcome === 'committed';
    this.onEntry({ index, command, committed, before, after: this.#records.replication });
    return result;
  }

  /** Applies an entry that has no effect. If it is a command, its result is a conflict. */
  #applyNothing({ index, type }: Pick<Entry, 'index' | 'type'>): CommitResult {
    this.applied = { ...this.applied, appliedIndex: index };
    const result = this.#committed(index);
    return type === 'normal' ? { ...result, outcome: 'conflict' } : result;
  }

  /** Returns undefined for a format of a later level: such an entry has no effect on any node, whether the node knows the format or not. */
  #commandOf(entry: Entry): Command | undefined {
    const format = entry.data[0];
    if (format !== undefined && !allowsFormat(this.#records.level, format)) return undefined;
    if (format !== raiseFormat) requireSupported(this.#records.level, this.#levels, `the log entry ${entry.index}`);
    return decodeEntry(entry);
  }

  #applyCommand(command: Command, index: LogIndex): CommitResult {
    if ('writes' in command) return this.#applyTransaction(command, index);
    if ('raise' in command) return this.#applyRaise(command.raise, index);
    if ('restore' in command) return this.#applyRestore(command.restore, index);
    return this.#applyReplication(command.replication, index);
  }

  #applyTransaction(transaction: Transaction, index: LogIndex): CommitResult {
    const { replication } = this.#records;
    const isAllowed = transaction.writes.every(({ path }) => mayWrite(replication, path));
    const effect = !isAllowed ? 'conflict' : applyTransaction(transaction, (path) => this.#records.at(path)?.revision ?? 0);
    const revision = this.#revisionOf(index);
    const writes = effect === 'conflict' ? [] : effect.writes.map((write) => ({ ...write, revision }));
    const { changes, digest: written } = this.#writePaths(writes, this.applied.digest);
    const digest = this.#noteLocalWrite(changes, index, written);
    // The values of a conflicting transaction count too: the leader encrypted them, and the barrier uses this count to limit the use of its
    // key.
    const valuesWritten = countOf(this.applied.valuesWritten + transaction.writes.filter(isPut).length);
    this.applied = { appliedIndex: index, valuesWritten, digest };
    this.#watchers.note(changes);
    return { outcome: effect === 'conflict' ? 'conflict' : 'committed', index, revision };
  }

  /**
   * Staged values do not count as written, because they were encrypted before the backup was taken. The swap raises the count to that of
   * the restored state.
   */
  #applyRestore(step: RestoreStep, index: LogIndex): CommitResult {
    const { replication, spaces } = this.#records;
    return this.#applyEffect(mayRestore(step, replication) ? applyRestoreStep(step, spaces) : 'conflict', index);
  }

  /** The level never falls, and raising it to its present value changes nothing. @throws UnsupportedLevel */
  #applyRaise(level: FeatureLevel, index: LogIndex): CommitResult {
    const before = this.#records.level;
    if (level > before) requireSupported(level, this.#levels, `the cluster, since log entry ${index},`);
    if (level < before) return this.#applyNothing({ index, type: 'normal' });
    this.applied = { ...this.applied, appliedIndex: index };
    const result = this.#committed(index);
    if (level === before) return result;
    const write = { name: levelName, value: encodeLevel(level), revision: this.#revisionOf(index) };
    const digest = this.#write(write, this.applied.digest);
    this.applied = { ...this.applied, digest: digest ?? this.applied.digest };
    this.#records.level = level;
    return result;
  }

  #applyReplication(step: ReplicationStep, index: LogIndex): CommitResult {
    const { replication, spaces } = this.#records;
    const revisionOf = (path: string): LogIndex => this.#records.at(path)?.revision ?? 0;
    const effect = applyReplicationStep(step, { state: replication, spaces, index, revisionOf });
    const result = this.#applyEffect(effect, index, step.kind === 'swap' ? step.digest : undefined);
    if (result.outcome === 'committed' && (step.kind === 'establish' || step.kind === 'attach')) this.#scope.restart();
    return result;
  }

  /** @param scope - digest of the replicated records of a new state, if it is known */
  #applyEffect(effect: StepEffect | 'conflict', index: LogIndex, scope?: bigint): CommitResult {
    if (effect === 'conflict') return this.#applyNothing({ index, type: 'normal' });
    const { replication, spaces } = this.#records;
    this.#records.spaces = effect.spaces ?? spaces; // the writes belong to the new state
    let { changes, digest } = this.#writePaths(effect.byPath, this.applied.digest);
    const revision = index + (effect.state?.offset ?? replication?.offset ?? 0);
    const own = [
      ...effect.writes,
      ...(effect.spaces === undefined ? [] : [{ name: spacesName, value: encodeSpaces(effect.spaces) }]),
      ...(effect.state === undefined ? [] : [{ name: replicationName, value: encodeReplicationState(effect.state) }]),
    ];
    for (const write of own) digest = this.#write({ revision, ...write }, digest) ?? digest;
    const { added, atLeast } = effect.valuesWritten;
    const valuesWritten = countOf(Math.max(this.applied.valuesWritten + added, atLeast));
    this.applied = { appliedIndex: index, valuesWritten, digest };
    this.#records.replication = effect.state ?? replication;
    const isNewState = this.#records.spaces.live !== spaces.live;
    if (isNewState) this.#scope.restart(scope);
    this.#watchers.note(isNewState ? 'everything' : changes);
    return this.#committed(index);
  }

  /** Notes that a local record was written while a state is being staged in a replication set. Returns the new digest. */
  #noteLocalWrite(changes: readonly Change[], index: LogIndex, digest: bigint): bigint {
    const { replication, spaces } = this.#records;
    if (spaces.attempt === undefined || replication === undefined || !takesPart(replication)) return digest;
    if (!changes.some(({ path }) => isLocal(replication, path))) return digest;
    this.#records.spaces = { ...spaces, attempt: { ...spaces.attempt, localWriteAt: index } };
    const record = { name: spacesName, value: encodeSpaces(this.#records.spaces), revision: this.#revisionOf(index) };
    return this.#write(record, digest) ?? digest;
  }

  #committed(index: LogIndex): CommitResult {
    return { outcome: 'committed', index, revision: this.#revisionOf(index) };
  }

  /** Returns the revision that the records of a local entry get. */
  #revisionOf(index: LogIndex): LogIndex {
    return index + (this.#records.replication?.offset ?? 0);
  }

  #noteScope(index: LogIndex): void {
    const { replication } = this.#records;
    if (replication !== undefined) this.#scope.note(positionOf(replication, index));
  }

  /** Writes records that readers see. Returns their changes, without those of deleted records that did not exist, and the new digest. */
  #writePaths(
    writes: readonly ReplicatedWrite[],
    before: bigint,
  ): { readonly changes: readonly Change[]; readonly digest: bigint } {
    const changes: Change[] = [];
    let digest = before;
    for (const write of writes) {
      const changed = this.#writePath(write, digest);
      if (changed === undefined) continue;
      digest = changed;
      changes.push({ path: write.path, revision: write.revision, deleted: write.value === null });
    }
    return { changes, digest };
  }

  /** Writes one record that readers see. Returns the same as {@link #write}. */
  #writePath({ path, value, revision }: ReplicatedWrite, digest: bigint): bigint | undefined {
    const { spaces, replication } = this.#records;
    const name = nameOf(spaces, path);
    if (replication !== undefined && !isLocal(replication, path)) {
      const before = this.#records.find(name);
      if (before !== undefined) this.#scope.remove(recordDigest({ path, ...before }));
      if (value !== null) this.#scope.add(recordDigest({ path, value, revision }));
    }
    return this.#write({ name, value, revision }, digest);
  }

  /** Writes one record and returns the new digest; returns undefined when there was nothing to delete. */
  #write(
    { name, value, revision }: { name: string; value: Uint8Array | null; revision: LogIndex },
    digest: bigint,
  ): bigint | undefined {
    const before = this.#records.find(name);
    if (before === undefined && value === null) return undefined;
    this.#records.pending.set(name, { value, revision });
    const without = before === undefined ? digest : removeFromDigest(digest, recordDigest({ path: name, ...before }));
    return value === null ? without : addToDigest(without, recordDigest({ path: name, value, revision }));
  }
}

/**
 * Returns whether a step of a restore may take effect. In a replication set, the backup is staged on the primary only, and a step of
 * replication ends the restore: a `swap` would put the keyring of the backup under the local records, and its newest key in use again.
 * Replication may have been enabled while the backup was uploaded.
 */
const mayRestore = ({ kind }: RestoreStep, state: ReplicationState | undefined): boolean =>
  kind === 'abandon' || kind === 'sweep' || !takesPart(state) || (kind === 'stage' && state?.role === 'primary');

const isPut = ({ value }: Write): boolean => value !== null;

function decodeEntry({ data, index, term }: Entry): Command {
  try {
    return decodeCommand(data);
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    invariant(false, 'a committed entry is a command of a known format', { index, term, reason: error.message });
  }
}

/** The number of values is stored in 48 bits. Another cluster or a backup may report any number: it ends there, which forces a new key. */
const countOf = (values: number): number => Math.min(values, 2 ** 48 - 1);
