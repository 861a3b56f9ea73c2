import { LogDamage, type LogIndex, type NodeId, type SnapshotMeta } from '@transitd/raft-core';
import type { MemoryLog } from '../../fakes/memory-disk.ts';
import { MemoryDisk } from '../../fakes/memory-disk.ts';
import type { SimRandom } from '../../fakes/sim-random.ts';
import { operationOf } from './command.ts';
import { emptyImage, KeyMachine, type MachineImage } from './machine.ts';
import { DiskError, type NodeStorage, type OpenStorage, type StateImage, type StateImages, type StorageRun } from './storage.ts';

const PIECES_MAX = 6;

/** A log and a state that store entries and images, not bytes: fast, with every disk fault that the core can observe. */
export class MemoryStorage implements NodeStorage, StateImages {
  readonly durable: MemoryDisk;
  readonly images = this;
  /** The durable state. */
  #image: MachineImage;
  #log: MemoryLog | undefined;
  #machine: KeyMachine | undefined;

  constructor(node: { readonly nodeId: NodeId; readonly clusterId: string; readonly base: SnapshotMeta }) {
    this.durable = new MemoryDisk(node);
    this.#image = emptyImage({ conf: node.base.conf, applied: node.base.index });
  }

  get mark(): LogIndex {
    return this.durable.mark;
  }
  get isTorn(): boolean {
    return this.durable.isTorn;
  }
  get unsynced(): number {
    return this.#log?.unsynced ?? 0;
  }

  /** @throws LogDamage */
  open({ process, delayMs, onWrite, onApply }: StorageRun, done: (opened: OpenStorage) => void): void {
    const log = this.durable.open(process, { delayMs: () => delayMs('log'), onWrite });
    const machine = new KeyMachine(this.#image, process, {
      delayMs: () => delayMs('state'),
      onApply: ({ index, type, data }, digest) =>
        onApply({ index, digest, ...(type === 'normal' ? { operation: operationOf(data) } : {}) }),
      store: (image) => {
        this.#image = image;
      },
    });
    this.#log = log;
    this.#machine = machine;
    done({ log, machine });
  }

  crash(random: SimRandom, faults: { readonly torn: boolean }): ReturnType<NodeStorage['crash']> {
    const { unsynced } = this;
    const landed = random.below(unsynced + 1);
    const torn = faults.torn && random.chance(0.5);
    const flushLands = random.chance(0.5);
    this.#log?.crash({ landed, torn });
    const flushing = this.#machine?.flushing;
    if (flushLands && flushing !== undefined) this.#image = flushing;
    return { isLost: unsynced > landed, facts: [unsynced, landed, torn, flushLands] };
  }

  /** Everything being synced counts as stored here: it was already written, and the machine outlives the process. */
  kill(random: SimRandom): ReturnType<NodeStorage['kill']> {
    const { unsynced } = this;
    const flushLands = random.chance(0.5);
    this.#log?.crash({ landed: unsynced });
    const flushing = this.#machine?.flushing;
    if (flushLands && flushing !== undefined) this.#image = flushing;
    return { facts: [unsynced, flushLands] };
  }

  failNext(error: Error, landed: number): void {
    this.#log?.failNext('write', error, { landed });
  }

  /** Nothing of what was being synced counts as stored here, readable or not: it is entries, not pages. */
  failSync(error: Error): void {
    this.failNext(error, 0);
  }

  mend(): void {
    this.#log?.mend();
  }

  rotSlot(slot: 0 | 1): void {
    this.durable.rotSlot(slot);
  }

  rotEntry(index: LogIndex): boolean {
    // The previous crash may have replaced entries with others; the mark is lowered before such a replacement.
    if (index > this.durable.mark) return false;
    this.durable.rotEntry(index);
    return true;
  }

  image(): StateImage {
    const { applied, lists, registers } = this.#image;
    return { applied, pieces: 1 + Math.min(PIECES_MAX, lists.length + registers.length), content: this.#image };
  }

  install({ meta, image }: { readonly meta: SnapshotMeta; readonly image: StateImage }, done: () => void): void {
    this.durable.install(meta);
    this.#image = image.content as MachineImage;
    this.#machine?.restore(this.#image);
    done();
  }

  verdict(error: Error): 'damaged' | 'failed' | 'bug' {
    if (error instanceof LogDamage) return 'damaged';
    return error instanceof DiskError ? 'failed' : 'bug';
  }
}
