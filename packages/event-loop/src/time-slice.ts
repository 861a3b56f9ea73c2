import { nextTurn } from './next-turn.ts';

const sliceMs = 4;

/**
 * Divides long work by time. Between its steps, which must be short, the work checks `isOver` and then awaits `next`, so no request
 * blocks the event loop for much longer than one slice, however much it asks for.
 */
export class TimeSlice {
  #endsMs = performance.now() + sliceMs;

  get isOver(): boolean {
    return performance.now() >= this.#endsMs;
  }

  /** Resolves when the next slice begins. */
  async next(): Promise<void> {
    await nextTurn();
    this.#endsMs = performance.now() + sliceMs;
  }
}
