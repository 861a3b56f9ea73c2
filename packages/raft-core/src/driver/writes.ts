import { invariant } from '../invariant.ts';
import type { Message } from '../types.ts';
import { WriteTimes } from './write-times.ts';

/**
 * Writes under way, in the order of their batches, and the messages that wait for them. The messages of a batch leave when it and all
 * earlier batches are durable, even if the batch itself wrote nothing.
 */
export class Writes {
  readonly #underWay: { readonly seq: number; readonly startedMs: number }[] = [];
  readonly #times = new WriteTimes();
  #held: { readonly seq: number; readonly messages: readonly Message[] }[] = [];

  get count(): number {
    return this.#underWay.length;
  }

  begin(seq: number, startedMs: number): void {
    this.#underWay.push({ seq, startedMs });
  }

  end(seq: number, nowMs: number): void {
    const ended = this.#underWay.shift();
    invariant(ended?.seq === seq, 'writes become durable in order', { seq, expected: ended?.seq });
    this.#times.note(ended.startedMs, nowMs);
  }

  hold(seq: number, messages: readonly Message[]): void {
    if (messages.length > 0) this.#held.push({ seq, messages });
  }

  /** Returns the messages that no write holds back any longer. */
  release(): readonly Message[] {
    if (this.#held.length === 0) return [];
    const first = this.#underWay[0]?.seq ?? Number.POSITIVE_INFINITY;
    const released = this.#held.filter(({ seq }) => seq < first);
    this.#held = this.#held.filter(({ seq }) => seq >= first);
    return released.flatMap(({ messages }) => messages);
  }

  /** Returns the median time of a write in the last seconds, in ms; undefined if nothing was written. */
  typicalMs(nowMs: number): number | undefined {
    return this.#times.typicalMs(nowMs);
  }

  /** Returns for how long the oldest write has been under way, in ms; 0 without one. */
  stalledMs(nowMs: number): number {
    return nowMs - (this.#underWay[0]?.startedMs ?? nowMs);
  }
}
