import type { SeenHeartbeat } from '../copy/copy.ts';

/** Notes when this node saw the newest heartbeat of another active node. */
export class OtherHeartbeats {
  readonly #owner: string;
  #revision = 0;
  #seenMs = Number.NEGATIVE_INFINITY;

  /** @param owner - of this run of this node; its own heartbeats do not count */
  constructor(owner: string) {
    this.#owner = owner;
  }

  /** Time of the newest heartbeat; negative infinity if there was none, or if its node has given the role up since. */
  get seenMs(): number {
    return this.#seenMs;
  }

  /** @param heartbeat - the newest one that the copy shows */
  note(heartbeat: SeenHeartbeat | undefined, nowMs: number): void {
    if (heartbeat === undefined || heartbeat.revision === this.#revision) return;
    this.#revision = heartbeat.revision;
    if (heartbeat.owner === this.#owner) return;
    this.#seenMs = heartbeat.owner === '' ? Number.NEGATIVE_INFINITY : nowMs;
  }
}
