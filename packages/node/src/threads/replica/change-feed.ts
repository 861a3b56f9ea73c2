import type { Replica } from '@transitd/storage-fsm';
import { ChangePublisher } from '../coherence/change-publisher.ts';
import { type NodeMemory, word } from '../shared/node-memory.ts';
import { SharedStatus } from '../shared/shared-status.ts';

interface ChangeFeedOptions {
  readonly replica: Pick<Replica, 'watch' | 'status'>;
  readonly memory: NodeMemory;
  /** @see ChangePublisherOptions */
  readonly lagMax: number;
}

/** Publishes the applied changes of the main thread's replica to all gateways, and its status to the shared memory. */
export class ChangeFeed {
  readonly publisher: ChangePublisher;
  readonly #replica: ChangeFeedOptions['replica'];
  readonly #status: SharedStatus;
  readonly #unwatch: () => void;

  constructor({ replica, memory, lagMax }: ChangeFeedOptions) {
    this.#replica = replica;
    this.#status = new SharedStatus(memory);
    this.publisher = new ChangePublisher({
      lagMax,
      start: Atomics.load(memory.words, word.changes), // of an earlier replica: a lower number would hide changes from its gateways
      raise: (number) => Atomics.store(memory.words, word.changes, number),
    });
    this.publishStatus();
    this.#unwatch = replica.watch('', (changes) => {
      this.publisher.publish(changes);
      // Last, so that a gateway that sees the new applied index finds its changes when it drains.
      this.publishStatus();
    });
  }

  /** Call it when the role, the term or the leader changes, and before a result is reported. */
  publishStatus(): void {
    this.#status.publish(this.#replica.status());
  }

  close(): void {
    this.#unwatch();
  }
}
