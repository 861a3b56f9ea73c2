import { isDeepStrictEqual } from 'node:util';
import type { Epoch, ReplicationState } from '@transitd/storage-fsm';

/** The replicated records at one position, as `value@revision` by path. */
export type Image = ReadonlyMap<string, string>;

/** A rule of the simulation that was broken. */
export class Violation extends Error {
  override readonly name = 'Violation';
  readonly rule: string;
  constructor(rule: string, facts: unknown) {
    super(`${rule}: ${JSON.stringify(facts, (_, value) => (typeof value === 'bigint' ? String(value) : value))}`);
    this.rule = rule;
  }
}

export function holds(rule: string, isTrue: boolean, facts: () => unknown): void {
  if (!isTrue) throw new Violation(rule, facts());
}

/** Keeps the records of each primary at each position, read from the primaries' machines alone: secondaries must have the same. */
export class Oracle {
  readonly #images = new Map<string, Image>();
  /** Where the newest restore is before each position. */
  readonly #restores = new Map<string, number | undefined>();
  /** Acknowledged writes: where, when, and in which epoch. */
  readonly acknowledged: { readonly path: string; readonly value: string; readonly epoch: string; readonly index: number }[] = [];

  /** The epoch in which each key encrypted. */
  readonly #keys = new Map<string, string>();

  /** Notes that a key encrypted in an epoch; returns whether it did so in no other one. */
  encrypts(key: string, { id }: Pick<Epoch, 'id'>): boolean {
    const epoch = this.#keys.get(key) ?? id;
    this.#keys.set(key, epoch);
    return epoch === id;
  }

  note({ epochs, restoredAt }: Pick<ReplicationState, 'epochs' | 'restoredAt'>, index: number, image: Image): void {
    const epoch = epochs.at(-1);
    if (epoch === undefined) return;
    this.#images.set(`${epoch.id}/${index}`, image);
    this.#restores.set(`${epoch.id}/${index}`, restoredAt);
  }

  /** Returns the position of the newest restore before a position of a history. */
  restoreBefore(epochs: readonly Epoch[], index: number): number | undefined {
    return this.#restores.get(`${this.epochAt(epochs, index)?.id}/${index}`);
  }

  /** Returns the state at a position of a history. */
  at(epochs: readonly Epoch[], index: number): Image | undefined {
    return this.#images.get(`${this.epochAt(epochs, index)?.id}/${index}`);
  }

  /** Returns the epoch of a history in which an index was written: an epoch begins after its start. */
  epochAt(epochs: readonly Epoch[], index: number): Epoch | undefined {
    return epochs.findLast(({ start }, at) => start < index || at === 0);
  }

  same(expected: Image, found: Image): boolean {
    return isDeepStrictEqual([...expected].sort(), [...found].sort());
  }
}
