import type { Barrier } from '@transitd/barrier';
import type { Config } from '@transitd/configuration';
import { type Logger, type NodeObserver, reasonOf } from '@transitd/process';
import type { RandomSource, SecondaryConfirmation } from '@transitd/transit-engine';
import type { NodeClock } from './clock/node-clock.ts';
import { closeServices, loadServices, type Services } from './services.ts';
import { timedStore } from './storage/timed-store.ts';

interface ServiceLoaderParts {
  readonly config: Config;
  readonly log: Logger;
  readonly clock: NodeClock;
  readonly observer: NodeObserver;
  /** Absent if the seal gives no random bytes. */
  readonly sealRandom: RandomSource | undefined;
  readonly secondaries: SecondaryConfirmation;
}

/** Why the services were not loaded from the records. */
export interface LoadFailure {
  readonly error: unknown;
}

/** Loads the services when the barrier is unsealed, and closes them when it is sealed. */
export class ServiceLoader {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #clock: NodeClock;
  readonly #observer: NodeObserver;
  readonly #sealRandom: RandomSource | undefined;
  readonly #secondaries: SecondaryConfirmation;
  readonly #onChange: () => void;
  #services: Services | undefined;
  /** The load that the last unseal started; never rejects, but resolves with why it failed. */
  #loading: Promise<LoadFailure | undefined> = Promise.resolve(undefined);
  /** Counts seals and unseals. A load ends without effect if the count has changed in the meantime. */
  #sealChanges = 0;

  /** @param onChange - called when the services were loaded or closed */
  constructor({ config, log, clock, observer, sealRandom, secondaries }: ServiceLoaderParts, onChange: () => void) {
    this.#config = config;
    this.#log = log;
    this.#clock = clock;
    this.#observer = observer;
    this.#sealRandom = sealRandom;
    this.#secondaries = secondaries;
    this.#onChange = onChange;
  }

  /** Undefined while the node is uninitialized or sealed, and while the services are loading. */
  get services(): Services | undefined {
    return this.#services;
  }

  /** Resolves when the load that the last unseal started has finished; if it failed, and so sealed the node again, with the reason. */
  get loaded(): Promise<LoadFailure | undefined> {
    return this.#loading;
  }

  /** Keeps the services loaded while this barrier is unsealed. */
  follow(barrier: Barrier): void {
    barrier.onStateChange(({ sealed, reason }) => {
      this.#sealChanges += 1;
      if (sealed) {
        if (this.#services !== undefined) this.#log.warn({ reason }, 'sealed');
        this.close();
      } else {
        this.#loading = this.#load(barrier);
      }
    });
    // A restored snapshot has replaced the state from which the services were loaded.
    barrier.store.watch('core/', (changes) => {
      if (changes !== 'everything' || this.#services === undefined) return;
      this.#sealChanges += 1;
      this.#loading = this.#load(barrier);
    });
  }

  /** Drops every key and token at once. */
  close(): void {
    const services = this.#services;
    this.#services = undefined;
    if (services === undefined) return;
    closeServices(services);
    this.#onChange();
  }

  async #load(barrier: Barrier): Promise<LoadFailure | undefined> {
    const change = this.#sealChanges;
    const fail = (error: unknown): LoadFailure | undefined => {
      if (change !== this.#sealChanges) return undefined;
      this.#log.error(
        { reason: reasonOf(error) },
        'the services could not be loaded from the records, so this node sealed itself; ' +
          'a node that unseals itself tries again with growing delays, any other when it is given shares',
      );
      barrier.seal();
      return { error };
    };
    try {
      const store = timedStore(barrier.store, (operation, ms) => this.#observer.barrier(operation, ms));
      const services = await loadServices(store, {
        config: this.#config,
        clock: this.#clock,
        tracer: this.#observer.tracer,
        sealRandom: this.#sealRandom,
        secondaries: this.#secondaries,
        onFailure: fail,
      });
      if (change !== this.#sealChanges) {
        closeServices(services);
        return undefined;
      }
      const before = this.#services;
      this.#services = services;
      if (before !== undefined) closeServices(before);
      this.#onChange();
      this.#log.info(before === undefined ? 'unsealed' : 'services loaded again from the restored state');
      return undefined;
    } catch (error) {
      return fail(error);
    }
  }
}
