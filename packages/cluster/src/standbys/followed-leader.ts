import type { Engine } from '../ports/storage-port.ts';
import type { Leader } from '../transport/forwarder.ts';
import type { Heartbeats } from './heartbeats.ts';

/** The leader that this node follows. */
export class FollowedLeader {
  readonly #engine: Engine;
  readonly #heartbeats: Heartbeats;

  constructor(engine: Engine, heartbeats: Heartbeats) {
    this.#engine = engine;
    this.#heartbeats = heartbeats;
  }

  /** Undefined while no leader is known, and on the leader itself. */
  get present(): Leader | undefined {
    const { nodeId, leader: id, term } = this.#engine.status();
    return id === 0 || id === nodeId ? undefined : { id, term, isSilent: this.#heartbeats.isSilent(performance.now()) };
  }
}
