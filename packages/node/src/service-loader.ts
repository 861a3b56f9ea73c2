import type { Barrier } from '@transitd/barrier';
import type { Config } from '@transitd/configuration';
import type { Logger, NodeObserver } from '@transitd/process';
import type { NodeClock } from './clock/node-clock.ts';
import { closeServices, loadService, type Services } from './services.ts';
import { timedStore } from './storage/timed-store.ts';

interface ServiceLoaderParts {
  readonly config: Config;
  readonly log: Logger;
  readonly clock: NodeClock;
  readonly observer: NodeObserver;
  /** The form of a path in which quotas count requests. */
  readonly canonicalPath: (path: string) => string;
}

/** What serves, from the moment that its node is unsealed until it seals. */
export class ServiceLoader {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #clock: NodeClock;
  readonly #observer: NodeObserver;
  readonly #canonicalPath: (path: string) => string;
  readonly #onChange: () => void;
  #services: Services | undefined;
  /** The load that an unseal began; settles without error. */
  #loading: Promise<void> = Promise.resolve();
  /** Counts the changes between sealed and unsealed, so that a load that one of them overtook ends without effect. */
  #sealChanges = 0;

  /** @param onChange - called when something serves from now on, and when nothing does any more */
  constructor({ config, log, clock, observer, canonicalPath }: ServiceLoaderParts, onChange: () => void) {
    this.#config = config;
    this.#log = log;
    this.#clock = clock;
    this.#observer = observer;
    this.#canonicalPath = canonicalPath;
    this.#onChange = onChange;
  }

  /** Nothing while the node is not initialised or sealed, or while it is still being loaded. */
  get services(): Services | undefined {
    return this.#services;
  }

  /** Resolves when what an unseal began to load serves, or has been given up. */
  get loaded(): Promise<void> {
    return this.#loading;
  }

  /** Serves while this barrier is open. */
  follow(barrier: Barrier): void {
    barrier.onStateChange(({ sealed, reason }) => {
      this.#sealChanges += 1;
      if (sealed) {
        if (this.#services !== undefined) this.#log.warn({ reason }, 'sealed');
        this.end();
      } else {
        this.#loading = this.#load(barrier);
      }
    });
    // Another state has taken the place of the one that this was read from.
    barrier.store.watch('core/', (changes) => {
      if (changes !== 'everything' || this.#services === undefined) return;
      this.#sealChanges += 1;
      this.#loading = this.#load(barrier);
    });
  }

  /** Forgets every key and token at once. */
  end(): void {
    const services = this.#services;
    this.#services = undefined;
    if (services === undefined) return;
    closeServices(services);
    this.#onChange();
  }

  async #load(barrier: Barrier): Promise<void> {
    const change = this.#sealChanges;
    const fail = (error: unknown): void => {
      if (change !== this.#sealChanges) return;
      this.#log.error(
        { reason: error instanceof Error ? error.message : String(error) },
        'what serves could not be loaded; the node seals itself',
      );
      barrier.seal();
    };
    try {
      const store = timedStore(barrier.store, (operation, ms) => this.#observer.barrier(operation, ms));
      const services = await loadService(store, {
        config: this.#config,
        clock: this.#clock,
        canonicalPath: this.#canonicalPath,
        onFailure: fail,
      });
      if (change !== this.#sealChanges) return closeServices(services);
      const before = this.#services;
      this.#services = services;
      if (before !== undefined) closeServices(before);
      this.#onChange();
      this.#log.info(before === undefined ? 'unsealed' : 'loaded anew');
    } catch (error) {
      fail(error);
    }
  }
}
