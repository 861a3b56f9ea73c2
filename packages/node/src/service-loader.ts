import type { Barrier } from '@transitd/barrier';
import type { MemberEvents } from '@transitd/cluster';
import { reasonOf } from '@transitd/process';
import type { SecondaryConfirmation } from '@transitd/transit-engine';
import type { NodeHost } from './node-host.ts';
import { keySources } from './providers/key-sources.ts';
import { kubernetes } from './providers/kubernetes.ts';
import { closeServices, loadServices, type Services } from './services.ts';
import { timedStore } from './storage/timed-store.ts';

type ServiceHost = Pick<NodeHost, 'authMethods' | 'clock' | 'config' | 'log' | 'observer' | 'opened' | 'usage'>;

/** Why the services were not loaded from the records. */
export interface LoadFailure {
  readonly error: unknown;
}

/** Loads the services when the barrier is unsealed, and closes them when it is sealed. */
export class ServiceLoader {
  readonly #host: ServiceHost;
  readonly #events: MemberEvents;
  #services: Services | undefined;
  /** The load that the last unseal started; never rejects, but resolves with why it failed. */
  #loading: Promise<LoadFailure | undefined> = Promise.resolve(undefined);
  /** Counts seals and unseals. A load ends without effect if the count has changed in the meantime. */
  #sealChanges = 0;

  constructor(host: ServiceHost, events: MemberEvents) {
    this.#host = host;
    this.#events = events;
  }

  /** Undefined while the node is uninitialized or sealed, and while they are loading. */
  get services(): Services | undefined {
    return this.#services;
  }

  /** Resolves when the load that the last unseal started has finished; if it failed, and so sealed the node again, with the reason. */
  get loaded(): Promise<LoadFailure | undefined> {
    return this.#loading;
  }

  /** Keeps the services loaded while this barrier is unsealed. @param secondaries - confirm key material before it is used */
  follow(barrier: Barrier, secondaries: SecondaryConfirmation): void {
    barrier.onStateChange(({ sealed, reason }) => {
      this.#sealChanges += 1;
      if (sealed) {
        if (this.#services !== undefined) this.#host.log.warn({ reason }, 'sealed');
        this.close();
      } else {
        this.#loading = this.#load(barrier, secondaries);
      }
    });
    // A restored snapshot has replaced the state from which the services were loaded.
    barrier.store.watch('core/', (changes) => {
      if (changes !== 'everything' || this.#services === undefined) return;
      this.#sealChanges += 1;
      this.#loading = this.#load(barrier, secondaries);
    });
  }

  /** Drops every key and token at once. */
  close(): void {
    const services = this.#services;
    this.#services = undefined;
    if (services === undefined) return;
    closeServices(services);
    this.#events.emit('services', { isLoaded: false });
  }

  async #load(barrier: Barrier, secondaries: SecondaryConfirmation): Promise<LoadFailure | undefined> {
    const { config, log, clock, observer, authMethods, opened, usage: uses } = this.#host;
    const change = this.#sealChanges;
    const fail = (error: unknown): LoadFailure | undefined => {
      if (change !== this.#sealChanges) return undefined;
      log.error(
        { reason: reasonOf(error) },
        'the services could not be loaded from the records, so this node sealed itself; ' +
          'a node that unseals itself tries again with growing delays, any other when it is given shares',
      );
      barrier.seal();
      return { error };
    };
    try {
      const store = timedStore(barrier.store, (operation, ms) => observer.barrier(operation, ms));
      const ofKubernetes = kubernetes({ log });
      const services = await loadServices(store, {
        ...{ config, clock, disputes: clock, authMethods, sealRandom: opened.random, secondaries, uses },
        keySources: keySources({ files: config.jwks_files, log, podFile: ofKubernetes.podFile }),
        kubernetes: ofKubernetes,
        tracer: observer.tracer,
        onFailure: fail,
      });
      if (change !== this.#sealChanges) {
        closeServices(services);
        return undefined;
      }
      const before = this.#services;
      this.#services = services;
      if (before !== undefined) closeServices(before);
      this.#events.emit('services', { isLoaded: true });
      log.info(before === undefined ? 'unsealed' : 'services loaded again from the restored state');
      return undefined;
    } catch (error) {
      return fail(error);
    }
  }
}
