import { invariant } from '../invariant.ts';
import type { Message } from '../types.ts';
import { WriteTimes } from './write-times.ts';

/**
 * Writes on their way to the disk, in the order of their batches, and the messages that wait for them: those of a batch leave
 * when it and all before it are durable, whether or not the batch itself had anything to write.
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

  /** What no write holds back any more. */
  release(): readonly Message[] {
    if (this.#held.length === 0) return [];
    const first = this.#underWay[0]?.seq ?? Number.POSITIVE_INFINITY;
    const released = this.#held.filter(({ seq }) => seq < first);
    this.#held = this.#held.filter(({ seq }) => seq >= first);
    return released.flatMap(({ messages }) => messages);
  }

  /** Returns the median time that a write took in the last seconds, in ms; undefined where nothing was written. */
  typicalMs(nowMs: number): number | undefined {
    return this.#times.typicalMs(nowMs);
  }

  /** For how long the oldest write has been under way; 0 without one. */
  stalledMs(nowMs: number): number {
    return nowMs - (this.#underWay[0]?.startedMs ?? nowMs);
  }
}
