import { crc32 } from 'node:zlib';
import { LogDamage, type LogIndex, type NodeId, type SnapshotMeta } from '@transitd/raft-core';
import { DiskError, holds, type NodeStorage, type OpenStorage, type SimRandom, type StorageRun } from '@transitd/raft-sim';
import { createNode, hasNode, nodePaths } from '../../src/directory/node-directory.ts';
import { StorageDamaged, StorageFailed } from '../../src/errors.ts';
import type { LogRecord } from '../../src/log/record.ts';
import { decodeSegmentHeader, scanSegment } from '../../src/log/segment.ts';
import { segmentPath } from '../../src/log/segment-file.ts';
import { SegmentLog } from '../../src/log/segment-log.ts';
import { KeyValueMachine } from '../../src/state/key-value-machine.ts';
import { MemoryDisk } from '../directory/memory-disk.ts';
import { read } from '../log/log-calls.ts';
import { AcknowledgedLog } from './acknowledged-log.ts';
import { openRecords } from './disk-records.ts';
import { HeapDevices } from './heap-devices.ts';
import { RecordMachine } from './record-machine.ts';
import { SimLog } from './sim-log.ts';
import { StreamedState } from './streamed-state.ts';
import { Tombstones } from './tombstones.ts';

const directory = '/node';
const slotBytes = 64 * 1024;
const slotHeaderBytes = 32;
/** The simulated releases support every level. */
const allLevels = { oldest: 1, newest: 2 ** 32 - 1 };
/** Small sizes, so that segments are created, extended, read back and dropped all the time. */
const sizes = { segmentBytes: 3_000, growBytes: 700, cacheBytes: 1_200 };

type Node = { readonly nodeId: NodeId; readonly clusterId: string; readonly base: SnapshotMeta };

/**
 * The real log, state machine and snapshots on a fake disk, as a node's storage in a simulated cluster. Every disk operation completes
 * with a simulation event; a crash loses any part of the unsynced writes.
 */
export class SegmentStorage implements NodeStorage {
  readonly durable: AcknowledgedLog;
  readonly isTorn = false;
  readonly #node: Node;
  readonly #tombstones: Tombstones;
  #disk = new MemoryDisk();
  #devices: HeapDevices | undefined;

  constructor(node: Node) {
    this.#node = node;
    this.durable = new AcknowledgedLog(node);
    this.#tombstones = new Tombstones(node.base);
  }

  get unsynced(): number {
    return this.durable.pieces;
  }
  get mark(): LogIndex {
    const state = storedState(this.#disk);
    if (state === undefined) return 0;
    const records = this.#records(state);
    return Math.max(state.mark.index, records.findLast((record) => isFollowed(record, records))?.index ?? 0);
  }

  open(run: StorageRun, done: (opened: OpenStorage | Error) => void): void {
    const devices = new HeapDevices(run);
    this.#devices = devices;
    this.#disk.before = (operation, path) => devices.before(operation, path);
    this.#disk.synced = (path) => {
      if (path === nodePaths(directory).nodeState) this.#checkMark(run);
    };
    void this.#open(run).then(
      (opened) => run.enter(() => done(opened)),
      (error: Error) => run.enter(() => done(error)),
    );
  }

  crash(random: SimRandom, faults: { readonly torn: boolean }): ReturnType<NodeStorage['crash']> {
    const { unsynced } = this;
    let pagesLeft = random.below(12);
    const keeps = faults.torn && random.chance(0.5) ? () => random.chance(0.5) : () => pagesLeft-- > 0;
    this.#disk = this.#disk.crash(keeps);
    this.#devices = undefined;
    return { isLost: unsynced > 0, facts: [unsynced] };
  }

  kill(): ReturnType<NodeStorage['kill']> {
    const { unsynced } = this;
    this.#disk = this.#disk.killed();
    this.#devices = undefined;
    return { facts: [unsynced] };
  }

  failNext(error: Error): void {
    this.#devices?.fail(error);
  }

  failSync(error: Error): void {
    this.#disk.cleansPages = true;
    this.#devices?.failSync(error);
  }

  mend(): void {
    this.#devices?.mend();
  }

  rotSlot(slot: 0 | 1): void {
    // A crash may have torn the other slot: two slots do not protect against two faults at once.
    if (storedSlot(this.#disk, slot === 0 ? 1 : 0) === undefined) return;
    this.#change(nodePaths(directory).nodeState, (content) => content.fill(0xa5, slot * slotBytes, slot * slotBytes + 16));
  }

  rotEntry(index: LogIndex): boolean {
    const state = storedState(this.#disk);
    if (state === undefined || index <= state.base.index) return false;
    const isMarked = index <= state.mark.index;
    const records = this.#records(state);
    const place = records.findLast((record) => record.index === index);
    if (place === undefined || !(isMarked || isFollowed(place, records))) return false;
    this.#change(place.path, (content) => {
      if (isMarked && index % 2 === 0) return content.subarray(0, place.offset);
      const at = place.offset + ((index * 7919) % place.bytes);
      content.writeUInt8(content.readUInt8(at) ^ (1 << (index % 8)), at);
      return content;
    });
    return true;
  }

  verdict(error: Error): 'damaged' | 'failed' | 'bug' {
    if (error instanceof StorageDamaged || error instanceof LogDamage) return 'damaged';
    return error instanceof StorageFailed || error instanceof DiskError ? 'failed' : 'bug';
  }

  async #open(run: StorageRun): Promise<OpenStorage> {
    const disk = this.#disk;
    if (!(await hasNode(directory, disk))) await createNode(directory, this.#node, disk);
    const log = await this.#openLog(run);
    const { base, lastIndex } = log.start;
    const entries = lastIndex === base.index ? [] : await read(log, base.index + 1, lastIndex);
    this.durable.reopened(log.start, entries);
    const state = await this.#openState(log);
    const machine = new RecordMachine(state, run, this.#tombstones);
    const simLog = new SimLog(log, run, this.durable);
    const every = run.process.every.bind(run.process);
    const parts = { log, machine: state, disk, every, durable: this.durable, tombstones: this.#tombstones };
    return { log: simLog, machine, streams: (wire) => new StreamedState({ ...parts, wire }) };
  }

  /** Checks that the mark belongs to the current log, not to one that a snapshot has replaced. */
  #checkMark(run: StorageRun): void {
    const state = storedState(this.#disk);
    if (state === undefined || state.base.index <= state.mark.index) return;
    const facts = () => ({ base: state.base.index, mark: state.mark.index });
    run.enter(() => holds('the mark is within its log', false, facts));
  }

  #openLog({ process }: StorageRun): Promise<SegmentLog> {
    const every = process.every.bind(process);
    return SegmentLog.open(directory, { ...sizes, disk: this.#disk, every });
  }

  async #openState(log: SegmentLog): Promise<KeyValueMachine> {
    const { base } = log.start;
    const disk = this.#disk;
    const openDatabase = (path: string) => openRecords(disk, path);
    const machine = await KeyValueMachine.open({
      directory: log.stateDirectory,
      base: base.index,
      openDatabase,
      levels: allLevels,
    });
    log.verifyAgainstState(machine.flushedAtOpen);
    return machine;
  }

  /** Returns the records in the order of the segments. */
  #records({ generation, firstSegment }: StoredState): StoredRecord[] {
    const files = this.#disk.files();
    const found: StoredRecord[] = [];
    for (let number = firstSegment; ; number++) {
      const path = segmentPath(nodePaths(directory).log(generation), number);
      const content = files.get(path);
      const header = content && decodeSegmentHeader(content);
      if (content === undefined || header === undefined || header === 'newer') return found;
      for (const record of scanSegment(content, header).records) found.push({ ...record, path });
    }
  }

  #change(path: string, change: (content: Buffer) => Buffer): void {
    const files = this.#disk.files();
    const content = files.get(path);
    if (content !== undefined) this.#disk = MemoryDisk.of(files.set(path, change(content)));
  }
}

interface StoredRecord extends LogRecord {
  readonly path: string;
}

interface StoredState {
  readonly generation: number;
  readonly firstSegment: number;
  readonly base: { readonly index: LogIndex };
  readonly mark: { readonly index: LogIndex };
}

/** Returns whether another batch was stored after this record: its damage is then detected even above the mark. */
function isFollowed({ path, offset }: StoredRecord, records: readonly StoredRecord[]): boolean {
  const last = records.at(-1);
  return last !== undefined && (path !== last.path || offset < last.batchStart);
}

/** Returns the state in `node.state` on disk: the intact slot with the higher sequence number. */
function storedState(disk: MemoryDisk): StoredState | undefined {
  const slots = [storedSlot(disk, 0), storedSlot(disk, 1)].filter((slot) => slot !== undefined);
  return slots.sort((a, b) => b.sequence - a.sequence)[0]?.state;
}

function storedSlot(disk: MemoryDisk, number: 0 | 1): { readonly sequence: number; readonly state: StoredState } | undefined {
  const file = disk.durableFiles().get(nodePaths(directory).nodeState);
  const slot = file?.subarray(number * slotBytes, (number + 1) * slotBytes);
  if (slot === undefined || slot.length < slotHeaderBytes) return undefined;
  const used = slotHeaderBytes + slot.readUInt32BE(22);
  if (used > slot.length || crc32(slot.subarray(16, used), crc32(slot.subarray(0, 12))) !== slot.readUInt32BE(12))
    return undefined;
  const state: StoredState = JSON.parse(slot.toString('utf8', slotHeaderBytes, used));
  return { sequence: slot.readUIntBE(16, 6), state };
}
