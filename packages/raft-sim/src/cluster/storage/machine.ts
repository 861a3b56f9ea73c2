import {
  type ConfState,
  decodeConfState,
  type Entry,
  invariant,
  type LogIndex,
  membersOf,
  type NodeId,
} from '@transitd/raft-core';
import type { Scheduler } from '../../fakes/sim-clock.ts';
import { type Command, decodeCommand, encodeCommand, type MachineResult } from './command.ts';
import type { SimMachine } from './storage.ts';

/** A list, stored as its last element and the rest of the list, so that a copy of the state costs nothing. */
interface Appended {
  readonly before: Appended | undefined;
  readonly value: number;
}

/** The whole state at one index. Values never change in place, so an image is a shallow copy. */
export interface MachineImage {
  readonly applied: LogIndex;
  readonly digest: number;
  readonly registers: readonly number[];
  readonly lists: readonly (Appended | undefined)[];
  readonly members: ReadonlySet<NodeId>;
  /** Tombstones: the entry that removed this id from the cluster. */
  readonly removed: ReadonlyMap<NodeId, LogIndex>;
}

export const emptyImage = ({ conf, applied }: { readonly conf: ConfState; readonly applied: LogIndex }): MachineImage => ({
  applied,
  digest: 0,
  registers: [],
  lists: [],
  members: membersOf(conf),
  removed: new Map(),
});

export interface MachineOptions {
  delayMs(): number;
  /** Called for every entry just applied, with the digest of the whole history up to it. */
  onApply(entry: Entry, digest: number): void;
  /** Makes the image durable. */
  store(image: MachineImage): void;
}

/**
 * The state of a simulated node: registers and lists by key, tombstones of removed nodes, and a digest that chains every entry ever
 * applied, so that a lost, duplicated or reordered entry shows at once.
 */
export class KeyMachine implements SimMachine {
  readonly flushedAtOpen: LogIndex;
  readonly #scheduler: Scheduler;
  readonly #options: MachineOptions;
  #image: MachineImage;
  #flushing: MachineImage | undefined;
  #flushed: LogIndex;
  #published: LogIndex;

  constructor(image: MachineImage, scheduler: Scheduler, options: MachineOptions) {
    this.#image = image;
    this.#scheduler = scheduler;
    this.#options = options;
    this.flushedAtOpen = image.applied;
    this.#flushed = image.applied;
    this.#published = image.applied;
  }

  get applied(): LogIndex {
    return this.#image.applied;
  }
  get digest(): number {
    return this.#image.digest;
  }
  get published(): LogIndex {
    return this.#published;
  }
  get flushed(): LogIndex {
    return this.#flushed;
  }
  get isFlushing(): boolean {
    return this.#flushing !== undefined;
  }
  /** The members by the newest applied configuration. */
  get members(): ReadonlySet<NodeId> {
    return this.#image.members;
  }
  get removed(): ReadonlyMap<NodeId, LogIndex> {
    return this.#image.removed;
  }
  /** The image that the flush under way will make durable. */
  get flushing(): MachineImage | undefined {
    return this.#flushing;
  }

  prepare(command: Command, size: number): { readonly request: Command['request']; readonly data: Uint8Array } {
    return { request: command.request, data: encodeCommand(command, size) };
  }

  read(kind: 'register' | 'list', key: number, done: (values: readonly number[]) => void): void {
    done(kind === 'register' ? [this.#image.registers[key] ?? 0] : this.#list(key));
  }

  apply(entry: Entry): MachineResult {
    const { applied } = this.#image;
    invariant(entry.index === applied + 1, 'entries are applied in order, each once', { applied, index: entry.index });
    const { image, swapped } = applyEntry(this.#image, entry);
    this.#image = image;
    this.#options.onApply(entry, image.digest);
    return { swapped };
  }

  publish(): void {
    this.#published = this.#image.applied;
  }

  flush(done: (error: Error | undefined, flushed: LogIndex) => void): void {
    invariant(this.#flushing === undefined, 'one flush is in flight', { applied: this.#image.applied });
    const image = this.#image;
    this.#flushing = image;
    this.#scheduler.after(this.#options.delayMs(), () => {
      this.#flushing = undefined;
      this.#options.store(image);
      this.#flushed = image.applied;
      done(undefined, image.applied);
    });
  }

  /** Replaces this state when a snapshot is installed. */
  restore(image: MachineImage): void {
    this.#image = image;
    this.#flushed = image.applied;
    this.#published = image.applied;
  }

  #list(key: number): readonly number[] {
    const values: number[] = [];
    for (let last = this.#image.lists[key]; last !== undefined; last = last.before) values.push(last.value);
    return values.reverse();
  }
}

function applyEntry(before: MachineImage, entry: Entry): { readonly image: MachineImage; readonly swapped: boolean } {
  const image = { ...before, applied: entry.index, digest: chain(before.digest, entry) };
  if (entry.type === 'conf') return { image: { ...image, ...membership(before, entry) }, swapped: true };
  if (entry.type === 'noop') return { image, swapped: true };
  const { key, request } = decodeCommand(entry.data);
  if (request.kind === 'append') {
    return {
      image: { ...image, lists: replaced(before.lists, key, { before: before.lists[key], value: request.value }) },
      swapped: true,
    };
  }
  const swapped = request.kind === 'write' || (before.registers[key] ?? 0) === request.from;
  if (!swapped) return { image, swapped };
  const value = request.kind === 'write' ? request.value : request.to;
  return { image: { ...image, registers: replaced(before.registers, key, value) }, swapped };
}

function replaced<Item>(items: readonly Item[], position: number, item: Item): readonly Item[] {
  const copy = [...items];
  copy[position] = item;
  return copy;
}

function membership({ members, removed }: MachineImage, { index, data }: Entry): Pick<MachineImage, 'members' | 'removed'> {
  const now = membersOf(decodeConfState(data));
  const gone = [...members].filter((id) => !now.has(id));
  if (gone.length === 0) return { members: now, removed };
  return { members: now, removed: new Map([...removed, ...gone.map((id) => [id, index] as const)]) };
}

/** FNV-1a over the entry's type, term, index and bytes, continued from the digest before it. */
function chain(before: number, { type, term, index, data }: Entry): number {
  let digest = before ^ 0x811c9dc5;
  for (const word of [type.charCodeAt(0), term, index]) digest = Math.imul(digest ^ word, 0x01000193);
  for (const byte of data) digest = Math.imul(digest ^ byte, 0x01000193);
  return digest >>> 0;
}
