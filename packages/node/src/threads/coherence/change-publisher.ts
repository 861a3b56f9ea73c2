import type { Changes } from '@transitd/storage-fsm';
import { type ChangeMessage, type ChangeNumber, distance, next } from './messages.ts';

/** The main thread's end of a gateway. */
interface GatewayLink {
  post(message: ChangeMessage): void;
  /** Returns the number of the newest change that the gateway has drained. It only limits the messages that wait. */
  drained(): ChangeNumber;
}

export interface ChangePublisherOptions {
  /** Writes the shared counter, which every gateway reads. */
  readonly raise: (number: ChangeNumber) => void;
  /** Number of the newest change so far; 0 by default. */
  readonly start?: ChangeNumber;
  /** Number of changes that may wait for one gateway. Later ones are not posted to it until it has caught up. */
  readonly lagMax: number;
}

/**
 * Publishes applied changes to the gateways: posts a change to each gateway and raises the shared counter after that. So a gateway that
 * sees a number in the counter finds the change in its port. In the other order it could find the port still empty, and serve a revoked
 * token.
 *
 * Publishing is part of applying. Nothing outside the process may learn the index of an applied entry before: no result of the commit, no
 * confirmation to the active node, no heartbeat, no read index.
 */
export class ChangePublisher {
  readonly #raise: (number: ChangeNumber) => void;
  readonly #lagMax: number;
  readonly #links = new Set<GatewayLink>();
  #number: ChangeNumber;

  constructor({ raise, start = 0, lagMax }: ChangePublisherOptions) {
    this.#raise = raise;
    this.#lagMax = lagMax;
    this.#number = start;
  }

  /** Number of the newest change. Every message to a gateway carries it, so that the gateway notices changes that were not posted. */
  get number(): ChangeNumber {
    return this.#number;
  }

  /** Adds a gateway that begins at {@link number}; returns a function that removes it. */
  add(link: GatewayLink): () => void {
    this.#links.add(link);
    return () => void this.#links.delete(link);
  }

  /** Publishes the changes of entries that were applied together, at once. */
  publish(changes: Changes): void {
    for (const steps = this.publishing(changes); steps.next().done !== true; );
  }

  /** The steps of {@link publish}, each with one access to a port or to the shared memory. The caller runs all of them. */
  *publishing(changes: Changes): Generator<undefined, void> {
    const number = next(this.#number);
    for (const link of this.#links) {
      yield;
      if (distance(number, link.drained()) <= this.#lagMax) link.post({ kind: 'changes', number, changes });
    }
    this.#number = number;
    yield;
    this.#raise(number);
  }
}
