import { setTimeout as pause } from 'node:timers/promises';

/** The pause after a rendering is its duration times this factor, up to a maximum in milliseconds. */
const pauseFactor = 3;
const pauseMsMax = 250;

/**
 * Shares an expensive rendering between concurrent requests. Only one rendering runs at a time, it starts after the requests that it
 * serves, and a pause follows it. So rendering takes at most a quarter of the event loop's time, at any request rate.
 */
export class SharedRendering<T> {
  readonly #render: () => Promise<T>;
  /** A rendering that has not started yet. It serves every request that arrives before its start. */
  #next: Promise<T> | undefined;
  /** Resolves when the next rendering may start. */
  #ready: Promise<void> | undefined;

  constructor(render: () => Promise<T>) {
    this.#render = render;
  }

  /** Returns a rendering that starts after this call. @throws errors of the rendering */
  get(): Promise<T> {
    this.#next ??= this.#start();
    return this.#next;
  }

  async #start(): Promise<T> {
    await this.#ready;
    this.#next = undefined;
    const startMs = performance.now();
    const rendering = this.#render();
    const rest = (): Promise<void> => pause(Math.min((performance.now() - startMs) * pauseFactor, pauseMsMax));
    this.#ready = rendering.then(rest, rest);
    return rendering;
  }
}
