import { type TurnQueue, workTurns } from './next-turn.ts';

const sliceMs = 4;

/**
 * Divides long work by time. Between its steps, which must be short, the work checks `isOver` and then awaits `next`, so no request
 * blocks the event loop for much longer than one slice, however much it asks for.
 */
export class TimeSlice {
  readonly #turns: TurnQueue;
  #endsMs = performance.now() + sliceMs;

  /** @param turns - the queue in which the work waits for its next slice */
  constructor(turns: TurnQueue = workTurns) {
    this.#turns = turns;
  }

  get isOver(): boolean {
    return performance.now() >= this.#endsMs;
  }

  /** Resolves when the next slice begins. */
  async next(): Promise<void> {
    await this.#turns.next();
    this.#endsMs = performance.now() + sliceMs;
  }
}
