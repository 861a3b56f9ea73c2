import type { SendRequest } from './connection.ts';
import type { Envelope } from './envelope.ts';

/** A range of feature levels, both ends included. */
export interface FeatureLevelRange {
  readonly oldest: number;
  readonly newest: number;
}

/** The feature level of the cluster, as the active node knows it. */
export interface FeatureLevelStatus {
  readonly level: number;
  /** The highest level that all members support. */
  readonly highest: number;
  /** The levels that the active node supports. */
  readonly supported: FeatureLevelRange;
  /** The levels that each member announced last, also members that are sealed or cannot be reached. */
  readonly members: readonly ({ readonly node_id: string } & FeatureLevelRange)[];
  /** Names of the members that do not support the next level. */
  readonly waits_for: readonly string[];
}

/** Calls for the feature level of the cluster. */
export class FeatureLevelCalls {
  readonly #send: SendRequest;

  constructor(send: SendRequest) {
    this.#send = send;
  }

  status(): Promise<Envelope<FeatureLevelStatus>> {
    return this.#send('GET', 'sys/feature-level');
  }

  /** Raises the level, by default to the highest one that all members support. This cannot be undone. */
  raise(level?: number): Promise<Envelope<{ readonly level: number }>> {
    return this.#send('POST', 'sys/feature-level/raise', level === undefined ? {} : { level });
  }
}
