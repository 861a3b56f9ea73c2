import type { Engine, NodeRole, StateComparison } from '@transitd/cluster';
import type { ServiceLoader } from './service-loader.ts';

/** Whether this node has its keys, may use its records, and is the active node. */
export class ServingRole implements NodeRole {
  readonly #engine: Engine;
  readonly #services: ServiceLoader;
  readonly #comparison: Pick<StateComparison, 'verdict'>;

  constructor(engine: Engine, services: ServiceLoader, comparison: Pick<StateComparison, 'verdict'>) {
    this.#engine = engine;
    this.#services = services;
    this.#comparison = comparison;
  }

  /** The comparison of this node's records with the active node's. */
  get verdict(): StateComparison['verdict'] {
    return this.#comparison.verdict;
  }

  get isUnsealed(): boolean {
    return this.#services.services !== undefined;
  }

  /** Whether the services are loaded, and no state digest showed that this node's records differ from the active node's. */
  get mayServe(): boolean {
    return this.isUnsealed && this.verdict !== 'different';
  }

  get isActive(): boolean {
    return this.mayServe && this.#engine.status().ready;
  }
}
