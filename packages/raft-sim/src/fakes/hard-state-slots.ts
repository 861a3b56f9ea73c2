import type { HardState } from '@transitd/raft-core';

interface Slot {
  readonly sequence: number;
  readonly hardState: HardState;
}

/**
 * The hard state on disk: two slots in separate blocks, each with a sequence number. A change counts once both are written, one after the
 * other, so that if either becomes unreadable later, the other never holds an older vote.
 */
export class HardStateSlots {
  #slots: [Slot | undefined, Slot | undefined];

  constructor(hardState: HardState) {
    const slot = { sequence: 0, hardState };
    this.#slots = [slot, slot];
  }

  /** Returns what the next start would find. */
  get newest(): HardState {
    const [first, second] = this.#slots;
    const newest = first !== undefined && (second === undefined || first.sequence >= second.sequence) ? first : second;
    if (newest === undefined) throw new Error('both slots are unreadable');
    return newest.hardState;
  }

  write(slot: 0 | 1, hardState: HardState): void {
    const sequence = Math.max(this.#slots[0]?.sequence ?? 0, this.#slots[1]?.sequence ?? 0) + (slot === 0 ? 1 : 0);
    this.#slots[slot] = { sequence, hardState };
  }

  writeBoth(hardState: HardState): void {
    this.write(0, hardState);
    this.write(1, hardState);
  }

  /** Makes that block unreadable; the next write repairs it. */
  rot(slot: 0 | 1): void {
    this.#slots[slot] = undefined;
  }
}
