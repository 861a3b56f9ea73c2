import type { Entry, LogIndex, NodeId } from '@transitd/raft-core';
import type { Command, MachineResult, SimMachine, StorageRun } from '@transitd/raft-sim';
import { StorageFailed } from '../../src/errors.ts';
import { raiseFormat } from '../../src/level/raise-codec.ts';
import type { KeyValueMachine } from '../../src/state/key-value-machine.ts';
import { decodeTransaction, encodeCommand, encodeTransaction } from '../../src/store/codec.ts';
import type { Tombstones } from './tombstones.ts';

const headBytes = 8;
/** First byte of entries in a format that no release has. */
const laterFormat = 0xee;
/** The level that an operation raises the cluster to: higher for later operations, whatever their order in the log. */
const levelOf = (operation: number): number => 1000 + operation;
/** A value that no register ever has. */
const neverStored = 2 ** 32 - 1;
/** Small, so that a list spans several pages. */
const pageRecords = 7;

const registerPath = (key: number): string => `sim/register/${key}`;
const listPath = (key: number): string => `sim/list/${key}/`;

/**
 * Registers and lists as records: a register is one record, a list has one record per value, in the order of their revisions. A swap is a
 * condition on the register's revision at the time of the proposal. Some swaps that cannot succeed are sent as a raise of the feature
 * level, and some as an entry in a format of a later release.
 */
export class RecordMachine implements SimMachine {
  readonly flushedAtOpen: LogIndex;
  readonly #run: StorageRun;
  readonly #tombstones: Tombstones;
  readonly #machine: KeyValueMachine;
  isFlushing = false;
  published: LogIndex;

  constructor(machine: KeyValueMachine, run: StorageRun, tombstones: Tombstones) {
    this.flushedAtOpen = machine.flushedAtOpen;
    this.#machine = machine;
    this.#run = run;
    this.#tombstones = tombstones;
    this.published = this.applied;
    machine.watch('', (changes) => {
      if (changes === 'everything') this.published = this.applied; // also when a snapshot replaces the state
    });
  }

  get applied(): LogIndex {
    return this.#machine.applied.appliedIndex;
  }
  get digest(): number {
    const { digest, valuesWritten } = this.#machine.applied;
    // The level in memory is a part of it: every node must apply the same entry under the same level.
    return Number(BigInt.asUintN(32, digest)) + 2 ** 32 * ((valuesWritten + 31 * this.#machine.featureLevel) % 2 ** 16);
  }
  get members(): ReadonlySet<NodeId> {
    return this.#tombstones.members;
  }
  get removed(): ReadonlyMap<NodeId, LogIndex> {
    return this.#tombstones.removed;
  }

  prepare({ operation, key, request }: Command, size: number): ReturnType<SimMachine['prepare']> {
    const guarded = request.kind === 'cas' ? guardedEntry(operation) : undefined;
    if (guarded !== undefined) return { request: { ...request, from: neverStored } as typeof request, data: guarded };
    const value = Buffer.alloc(headBytes + size);
    value.writeUInt32BE(operation);
    if (request.kind === 'append') {
      value.writeUInt32BE(request.value, 4);
      const writes = [{ path: `${listPath(key)}${operation}`, value }];
      return { request, data: encodeTransaction({ conditions: [], writes }) };
    }
    const path = registerPath(key);
    const writes = [{ path, value }];
    value.writeUInt32BE(request.kind === 'cas' ? request.to : request.value, 4);
    if (request.kind === 'write') return { request, data: encodeTransaction({ conditions: [], writes }) };
    const revision = this.#machine.getSync(path)?.revision ?? 0;
    return {
      request: { ...request, from: this.#register(key) },
      data: encodeTransaction({ conditions: [{ path, revision }], writes }),
    };
  }

  apply(entry: Entry): MachineResult {
    const { outcome } = this.#machine.apply(entry);
    if (entry.type === 'conf') this.#tombstones.applied(entry);
    const { index } = entry;
    this.#run.onApply({ index, digest: this.digest, ...(entry.type === 'normal' ? { operation: operationOf(entry) } : {}) });
    return { swapped: outcome === 'committed' && !isGuarded(entry) };
  }

  publish(): void {
    this.#machine.publish();
    this.published = this.applied;
  }

  flush(done: (error: Error | undefined, flushed: LogIndex) => void): void {
    this.isFlushing = true;
    this.#machine.flush((error, flushed) => {
      this.isFlushing = false;
      this.#run.enter(() => done(error, flushed));
    });
  }

  read(kind: 'register' | 'list', key: number, done: (values: readonly number[]) => void): void {
    const values = kind === 'register' ? Promise.resolve([this.#register(key)]) : this.#list(key);
    void values.then(
      (read) => this.#run.enter(() => done(read)),
      (error: Error) => {
        if (!(error instanceof StorageFailed)) throw error; // no answer after a disk failure: the node is about to stop
      },
    );
  }

  #register(key: number): number {
    const record = this.#machine.getSync(registerPath(key));
    return record === undefined ? 0 : storedValue(record.value);
  }

  async #list(key: number): Promise<number[]> {
    const records: { readonly value: Uint8Array; readonly revision: LogIndex }[] = [];
    const prefix = listPath(key);
    let after: string | undefined;
    do {
      const page = await this.#machine.range({ prefix, limit: pageRecords, ...(after === undefined ? {} : { after }) });
      records.push(...page.records);
      after = page.next;
    } while (after !== undefined);
    return records.sort((a, b) => a.revision - b.revision).map(({ value }) => storedValue(value));
  }
}

const storedValue = (value: Uint8Array): number => Buffer.from(value).readUInt32BE(4);

/** Returns the entry of every fourth swap that is no transaction of records. */
function guardedEntry(operation: number): Uint8Array | undefined {
  if (operation % 4 === 0) return encodeCommand({ raise: levelOf(operation) });
  if (operation % 4 !== 2) return undefined;
  const entry = Buffer.alloc(5);
  entry.writeUInt8(laterFormat);
  entry.writeUInt32BE(levelOf(operation), 1);
  return entry;
}

const isGuarded = ({ type, data }: Entry): boolean => type === 'normal' && (data[0] === laterFormat || data[0] === raiseFormat);

function operationOf(entry: Entry): number {
  const { data } = entry;
  if (isGuarded(entry)) return Buffer.from(data).readUInt32BE(1) - levelOf(0);
  const [write] = decodeTransaction(data).writes;
  return Buffer.from(write?.value ?? Buffer.alloc(headBytes)).readUInt32BE();
}
