import { crc32 } from 'node:zlib';
import type { ConfState, LogIndex, NodeId, SnapshotMeta, Term } from '@transitd/raft-core';
import { damaged, newerFormat } from '../errors.ts';
import type { Disk, DiskFile } from './disk.ts';

/** The newest entry known to be durable. If the log ends before this entry, entries were lost. */
export interface HighWaterMark {
  readonly index: LogIndex;
  readonly term: Term;
  /** Highest index known to be committed, never above `index`. */
  readonly commit: LogIndex;
}

/** The facts about itself that a node needs before it can read its log. */
export interface NodeState {
  readonly clusterId: string;
  readonly nodeId: NodeId;
  /** Number of starts so far; 0 for a node that was created but never started. */
  readonly incarnation: number;
  readonly term: Term;
  readonly vote: NodeId;
  /** Number of the current generation: the directory that holds log and state. */
  readonly generation: number;
  readonly base: SnapshotMeta;
  /** Number of the first segment in use; older ones are leftovers. */
  readonly firstSegment: number;
  readonly mark: HighWaterMark;
}

/** Slots are this far apart, so that one bad block cannot damage both; large enough for the addresses of every member. */
const slotBytes = 64 * 1024;
const blockBytes = 4096;
const slotHeaderBytes = 32;
const magic = Buffer.from('TDNSTATE', 'latin1');
const format = 1;

interface Slot {
  readonly sequence: number;
  readonly state: NodeState;
}

/**
 * `node.state`: two slots; of the intact ones, the slot with the higher sequence number counts. A raised high-water mark goes to one slot,
 * the older. Everything else goes to both slots, one after the other, each synced, before it takes effect. With only one copy, damage to
 * its slot would bring back an older vote (Raft §5.2: at most one vote in a term). After an error every later call fails.
 */
export class NodeStateFile {
  readonly #file: DiskFile;
  #value: NodeState;
  #sequence: number;
  #newest: 0 | 1;
  #last: Promise<void> = Promise.resolve();

  private constructor(file: DiskFile, { sequence, state }: Slot, newest: 0 | 1) {
    this.#file = file;
    this.#value = state;
    this.#sequence = sequence;
    this.#newest = newest;
  }

  /** Creates the file under another name and renames it, so that it exists complete or not at all. */
  static async create(disk: Disk, { directory, path }: { directory: string; path: string }, state: NodeState): Promise<void> {
    const file = await disk.create(`${path}.new`);
    await file.write(0, encodeSlot({ sequence: 1, state }));
    await file.write(slotBytes, encodeSlot({ sequence: 2, state }));
    await file.truncate(2 * slotBytes);
    await file.sync();
    await file.close();
    await disk.rename({ from: `${path}.new`, to: path });
    await disk.syncDirectory(directory);
  }

  /** @throws StorageDamaged if `node.state` is missing or both slots are bad */
  static async open(disk: Disk, path: string): Promise<NodeStateFile> {
    const file = await disk.open(path);
    if (file === undefined) throw damaged(path, 'is missing');
    try {
      const slots = [0, slotBytes].map(async (position) => decodeSlot(path, await file.read({ position, bytes: slotBytes })));
      const [first, second] = await Promise.all(slots);
      if (first !== undefined && first.sequence > (second?.sequence ?? 0)) return new NodeStateFile(file, first, 0);
      if (second !== undefined) return new NodeStateFile(file, second, 1);
      throw damaged(path, "has no readable copy of this node's vote and term");
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** The state that is durable in both slots, apart from the high-water mark, which may be in one slot only. */
  get value(): NodeState {
    return this.#value;
  }

  /** Writes both slots. `next` is called when all earlier writes are durable. */
  replace(next: (now: NodeState) => NodeState): Promise<void> {
    return this.#inTurn(async () => {
      const state = next(this.#value);
      await this.#writeOlder(state);
      await this.#writeOlder(state);
      this.#value = state;
    });
  }

  /** Writes one slot. */
  raiseMark(mark: () => HighWaterMark): Promise<void> {
    return this.#inTurn(async () => {
      const state = { ...this.#value, mark: mark() };
      await this.#writeOlder(state);
      this.#value = state;
    });
  }

  async close(): Promise<void> {
    await this.#last.catch(() => undefined);
    await this.#file.close();
  }

  #inTurn(write: () => Promise<void>): Promise<void> {
    this.#last = this.#last.then(write);
    return this.#last;
  }

  async #writeOlder(state: NodeState): Promise<void> {
    const older = this.#newest === 0 ? 1 : 0;
    await this.#file.write(older * slotBytes, encodeSlot({ sequence: this.#sequence + 1, state }));
    await this.#file.sync();
    this.#sequence += 1;
    this.#newest = older;
  }
}

/** `magic | format u32 | crc u32 | sequence u48 | length u32`, zeros up to byte 32, then JSON; the rest of its last block is zeros. */
function encodeSlot({ sequence, state }: Slot): Buffer {
  const text = Buffer.from(encodeState(state));
  const used = slotHeaderBytes + text.length;
  if (used > slotBytes) throw new RangeError(`the state of this node takes ${used} bytes, and ${slotBytes} is the limit`);
  const bytes = Buffer.alloc(Math.ceil(used / blockBytes) * blockBytes);
  magic.copy(bytes);
  bytes.writeUInt32BE(format, 8);
  bytes.writeUIntBE(sequence, 16, 6);
  bytes.writeUInt32BE(text.length, 22);
  text.copy(bytes, slotHeaderBytes);
  bytes.writeUInt32BE(slotChecksum(bytes, used), 12);
  return bytes;
}

function decodeSlot(path: string, bytes: Buffer): Slot | undefined {
  if (bytes.length < slotHeaderBytes || !bytes.subarray(0, 8).equals(magic)) return undefined;
  const used = slotHeaderBytes + bytes.readUInt32BE(22);
  if (used > bytes.length || bytes.readUInt32BE(12) !== slotChecksum(bytes, used)) return undefined;
  if (bytes.readUInt32BE(8) !== format) throw newerFormat(path);
  const text = bytes.toString('utf8', slotHeaderBytes, used);
  return { sequence: bytes.readUIntBE(16, 6), state: decodeState(text) };
}

const slotChecksum = (bytes: Buffer, used: number): number => crc32(bytes.subarray(16, used), crc32(bytes.subarray(0, 12)));

function encodeState(state: NodeState): string {
  const { conf } = state.base;
  const context = Buffer.from(conf.context).toString('base64');
  return JSON.stringify({ ...state, base: { ...state.base, conf: { ...conf, context } } });
}

/** The checksum has shown that the JSON is what `encodeState` wrote. */
function decodeState(text: string): NodeState {
  type StoredConf = Omit<ConfState, 'context'> & { readonly context: string };
  const state = JSON.parse(text) as Omit<NodeState, 'base'> & {
    readonly base: Omit<SnapshotMeta, 'conf'> & { readonly conf: StoredConf };
  };
  const { conf } = state.base;
  return { ...state, base: { ...state.base, conf: { ...conf, context: Buffer.from(conf.context, 'base64') } } };
}
