import { setTimeout as pause } from 'node:timers/promises';

/** How much longer than a rendering the pause after it is, and at most how long, in milliseconds. */
const pauseFactor = 3;
const pauseMsMax = 250;

/**
 * A rendering that costs milliseconds, shared by all who ask for it: one at a time, each begun after the question that it answers, and
 * with a pause between two. So however often it is asked for, it takes at most a quarter of the event loop.
 */
export class SharedRendering<T> {
  readonly #render: () => Promise<T>;
  /** Not begun yet: whoever asks now is answered by it. */
  #next: Promise<T> | undefined;
  /** Resolves when another one may begin. */
  #free: Promise<void> | undefined;

  constructor(render: () => Promise<T>) {
    this.#render = render;
  }

  /** @throws what the rendering throws */
  get(): Promise<T> {
    this.#next ??= this.#begin();
    return this.#next;
  }

  async #begin(): Promise<T> {
    await this.#free;
    this.#next = undefined;
    const begunMs = performance.now();
    const rendering = this.#render();
    const rest = (): Promise<void> => pause(Math.min((performance.now() - begunMs) * pauseFactor, pauseMsMax));
    this.#free = rendering.then(rest, rest);
    return rendering;
  }
}
