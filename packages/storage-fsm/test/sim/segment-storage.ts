import { crc32 } from 'node:zlib';
import { type Done, LogDamage, type LogIndex, type NodeId, type SnapshotMeta } from '@transitd/raft-core';
import {
  DiskError,
  type NodeStorage,
  type OpenStorage,
  type SimRandom,
  type StateImage,
  type StorageRun,
} from '@transitd/raft-core/sim';
import { StorageDamaged } from '../../src/damage.ts';
import { createNode, hasNode, nodePaths } from '../../src/node-directory.ts';
import { NodeStateFile } from '../../src/node-state.ts';
import { decodeSegmentHeader, scanSegment } from '../../src/segment.ts';
import { createSegment, segmentPath } from '../../src/segment-file.ts';
import { SegmentLog } from '../../src/segment-log.ts';
import { KeyValueMachine } from '../../src/state-machine.ts';
import { StorageFailed } from '../../src/storage-errors.ts';
import { close, read } from '../log-calls.ts';
import { MemoryDisk } from '../memory-disk.ts';
import { AcknowledgedLog } from './acknowledged-log.ts';
import { DurableRecords } from './durable-records.ts';
import { HeapDevices } from './heap-devices.ts';
import { type Membership, RecordMachine } from './record-machine.ts';
import { SimLog } from './sim-log.ts';

const directory = '/node';
const slotBytes = 64 * 1024;
const slotHeaderBytes = 32;
const piecesMax = 6;
/** So small that segments are begun, grown, read back and dropped all the time. */
const sizes = { segmentBytes: 3_000, growBytes: 700, cacheBytes: 1_200 };

type Node = { readonly nodeId: NodeId; readonly clusterId: string; readonly base: SnapshotMeta };

/** What a running node has of its storage. */
interface Running {
  readonly run: StorageRun;
  readonly devices: HeapDevices;
  log: SegmentLog;
  readonly simLog: SimLog;
  readonly machine: RecordMachine;
}

interface Content {
  readonly records: DurableRecords['content'];
  readonly membership: Membership;
}

/**
 * The real log on a fake disk, and the real state machine on a database in memory, as a node's storage in a simulated cluster.
 * Every operation of the two completes by an event of the simulation; what was not synced is lost in a crash, any part of it.
 * Snapshots are moved by the simulator, and put in force in one step here.
 */
export class SegmentStorage implements NodeStorage {
  readonly durable: AcknowledgedLog;
  readonly isTorn = false;
  readonly #node: Node;
  readonly #records = new DurableRecords();
  #membership: Membership;
  #disk = new MemoryDisk();
  #devices: HeapDevices | undefined;
  #running: Running | undefined;

  constructor(node: Node) {
    const { voters, votersOutgoing, learners, learnersNext } = node.base.conf;
    this.#node = node;
    this.durable = new AcknowledgedLog(node);
    this.#membership = { members: new Set([...voters, ...votersOutgoing, ...learners, ...learnersNext]), removed: new Map() };
  }

  get unsynced(): number {
    return this.durable.pieces;
  }
  get mark(): LogIndex {
    return storedState(this.#disk)?.mark.index ?? 0;
  }

  open(run: StorageRun, done: (opened: OpenStorage | Error) => void): void {
    const devices = new HeapDevices(run);
    this.#devices = devices;
    this.#disk.before = (operation) => devices.before(operation);
    void this.#open(run, devices).then(
      (opened) => run.enter(() => done(opened)),
      (error: Error) => run.enter(() => done(error)),
    );
  }

  crash(random: SimRandom, faults: { readonly torn: boolean }): ReturnType<NodeStorage['crash']> {
    const { unsynced } = this;
    let pagesLeft = random.below(12);
    const keeps = faults.torn && random.chance(0.5) ? () => random.chance(0.5) : () => pagesLeft-- > 0;
    const lands = random.chance(0.5);
    this.#disk = this.#disk.crash(keeps);
    this.#records.crash({ lands });
    this.#devices = undefined;
    this.#running = undefined;
    return { isLost: unsynced > 0, facts: [unsynced, lands] };
  }

  failNext(error: Error): void {
    this.#devices?.fail(error);
  }

  rotSlot(slot: 0 | 1): void {
    // A crash may have torn the other one: two faults at once are more than two slots are for.
    if (storedSlot(this.#disk, slot === 0 ? 1 : 0) === undefined) return;
    this.#change(nodePaths(directory).nodeState, (content) => content.fill(0xa5, slot * slotBytes, slot * slotBytes + 16));
  }

  rotEntry(index: LogIndex): boolean {
    const state = storedState(this.#disk);
    if (state === undefined || index <= state.base.index || index > state.mark.index) return false;
    const place = this.#placeOf(index, state);
    if (place === undefined) return false;
    this.#change(place.path, (content) => {
      if (index % 2 === 0) return content.subarray(0, place.offset);
      const at = place.offset + ((index * 7919) % place.bytes);
      content.writeUInt8(content.readUInt8(at) ^ (1 << (index % 8)), at);
      return content;
    });
    return true;
  }

  image(): StateImage {
    const { content, appliedIndex } = this.#records;
    const { members, removed } = this.#membership;
    const membership: Membership = { members, removed: new Map(removed) };
    return {
      applied: appliedIndex,
      pieces: 1 + Math.min(piecesMax, content.size >> 2),
      content: { records: content, membership } satisfies Content,
    };
  }

  install({ meta, image }: { readonly meta: SnapshotMeta; readonly image: StateImage }, done: Done): void {
    const running = this.#running;
    if (running === undefined) return;
    void this.#install(running, meta, image.content as Content).then(
      () => running.run.enter(done),
      (error: Error) => running.run.enter(() => done(error)),
    );
  }

  verdict(error: Error): 'damaged' | 'failed' | 'bug' {
    if (error instanceof StorageDamaged || error instanceof LogDamage) return 'damaged';
    return error instanceof StorageFailed || error instanceof DiskError ? 'failed' : 'bug';
  }

  async #open(run: StorageRun, devices: HeapDevices): Promise<OpenStorage> {
    const disk = this.#disk;
    if (!(await hasNode(directory, disk))) await createNode(directory, this.#node, disk);
    const log = await this.#openLog(run);
    const { base, lastIndex } = log.start;
    const entries = lastIndex === base.index ? [] : await read(log, base.index + 1, lastIndex);
    this.durable.reopened(log.start, entries);
    const state = await this.#openState(log, devices);
    const machine = new RecordMachine(state, run, this.#membership);
    const simLog = new SimLog(log, run, this.durable);
    this.#running = { run, devices, log, simLog, machine };
    return { log: simLog, machine };
  }

  #openLog({ process }: StorageRun): Promise<SegmentLog> {
    const every = process.every.bind(process);
    return SegmentLog.open(directory, { ...sizes, disk: this.#disk, every });
  }

  async #openState(log: SegmentLog, devices: HeapDevices): Promise<KeyValueMachine> {
    const { base } = log.start;
    const openDatabase = () => this.#records.open(devices);
    const machine = await KeyValueMachine.open({ directory: log.stateDirectory, base: base.index, openDatabase });
    log.verifyAgainstState(machine.flushedAtOpen);
    return machine;
  }

  /** A new generation: an empty log behind `meta`, and its state. `node.state` names it in one step. */
  async #install(running: Running, meta: SnapshotMeta, { records, membership }: Content): Promise<void> {
    const { devices, machine, simLog, run } = running;
    await close(running.log);
    await machine.close();
    await devices.atOnce(async () => {
      const disk = this.#disk;
      const paths = nodePaths(directory);
      const nodeState = await NodeStateFile.open(disk, paths.nodeState);
      const generation = nodeState.value.generation + 1;
      await disk.makeDirectory(paths.log(generation));
      const header = { number: 1, nodeId: this.#node.nodeId, chainStart: generation };
      await (await createSegment(disk, paths.log(generation), header)).file.close();
      const mark = { index: meta.index, term: meta.term, commit: meta.index };
      await nodeState.replace((now) => ({ ...now, generation, base: meta, firstSegment: 1, mark }));
      await nodeState.close();
      this.#records.replace(records);
      this.#membership.members = membership.members;
      for (const [id, at] of membership.removed) this.#membership.removed.set(id, at);
      this.durable.installed(meta);
      running.log = await this.#openLog(run);
      simLog.replace(running.log);
      machine.replace(await this.#openState(running.log, devices));
    });
  }

  /** The record in force of an entry that the mark covers. */
  #placeOf(
    index: LogIndex,
    { generation, firstSegment }: StoredState,
  ): { path: string; offset: number; bytes: number } | undefined {
    const files = this.#disk.files();
    let place: { path: string; offset: number; bytes: number } | undefined;
    for (let number = firstSegment; ; number++) {
      const path = segmentPath(nodePaths(directory).log(generation), number);
      const content = files.get(path);
      const header = content && decodeSegmentHeader(content);
      if (content === undefined || header === undefined || header === 'newer') return place;
      for (const { index: found, offset, bytes } of scanSegment(content, header).records) {
        if (found === index) place = { path, offset, bytes };
      }
    }
  }

  #change(path: string, change: (content: Buffer) => Buffer): void {
    const files = this.#disk.files();
    const content = files.get(path);
    if (content !== undefined) this.#disk = MemoryDisk.of(files.set(path, change(content)));
  }
}

interface StoredState {
  readonly generation: number;
  readonly firstSegment: number;
  readonly base: { readonly index: LogIndex };
  readonly mark: { readonly index: LogIndex };
}

/** What `node.state` says on the disk: the good slot with the higher sequence number. */
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
