/** Whether a node can take requests, by its health; `unknown` before its first answer. */
export type NodeHealth = 'active' | 'serving' | 'forwarding' | 'unknown' | 'unavailable';

export interface HealthOptions {
  /** Milliseconds after which the nodes are asked again, if there are requests; 5000 when absent. */
  readonly intervalMs?: number;
  /** Milliseconds after which a node without an answer counts as unavailable; 1000 when absent. */
  readonly timeoutMs?: number;
}

/** Effects of the choice. */
export interface HealthEffects {
  /** Returns the status of `GET sys/health`. May reject. */
  readonly ask: (place: number, timeoutMs: number) => Promise<number>;
  /** Milliseconds, of a clock that never goes back. */
  readonly nowMs: () => number;
}

interface Seen {
  readonly health: NodeHealth;
  /** Duration of the answer. */
  readonly ms: number;
}

/**
 * Orders the nodes of a cluster by their health and the time of their answers. Nodes are only asked while there are requests. A request
 * waits for answers only if there are none yet, or if they are older than two intervals.
 */
export class NodeChoice {
  readonly #effects: HealthEffects;
  readonly #intervalMs: number;
  readonly #timeoutMs: number;
  readonly #seen: Seen[];
  #askedMs = Number.NEGATIVE_INFINITY;
  #isAsking = false;
  #firstAnswer: Promise<void> = Promise.resolve();

  constructor(count: number, { intervalMs = 5000, timeoutMs = 1000 }: HealthOptions, effects: HealthEffects) {
    this.#effects = effects;
    this.#intervalMs = intervalMs;
    this.#timeoutMs = timeoutMs;
    this.#seen = Array.from({ length: count }, () => ({ health: 'unknown', ms: 0 }));
  }

  /**
   * Returns the positions of all nodes in the order in which to try them.
   * @param isChange - only the active node carries it out; the others would forward it
   */
  async order({ isChange }: { readonly isChange: boolean }): Promise<readonly number[]> {
    const ageMs = this.#effects.nowMs() - this.#askedMs;
    if (ageMs >= this.#intervalMs && !this.#isAsking) this.#askAll();
    if (ageMs >= 2 * this.#intervalMs) await this.#firstAnswer;
    const ranks = isChange ? ranksOfChange : ranksOfRead;
    return this.#seen
      .map(({ health, ms }, place) => ({ place, rank: ranks[health], ms }))
      .sort((one, other) => one.rank - other.rank || one.ms - other.ms)
      .map(({ place }) => place);
  }

  /** Records that a node gave no answer, or could not carry out a request, until it is asked again. */
  failed(place: number): void {
    this.#seen[place] = { health: 'unavailable', ms: 0 };
  }

  /** Asks all nodes. `#firstAnswer` resolves when one of them can take requests, or when all of them have answered or failed. */
  #askAll(): void {
    this.#askedMs = this.#effects.nowMs();
    this.#isAsking = true;
    let haveOne: () => void = () => undefined;
    this.#firstAnswer = new Promise((resolve) => {
      haveOne = resolve;
    });
    const all = this.#seen.map(async (_, place) => {
      const seen = await this.#askOne(place);
      this.#seen[place] = seen;
      if (seen.health === 'active' || seen.health === 'serving') haveOne();
    });
    void Promise.all(all).then(() => {
      this.#isAsking = false;
      haveOne();
    });
  }

  async #askOne(place: number): Promise<Seen> {
    const sinceMs = this.#effects.nowMs();
    const status = await this.#effects.ask(place, this.#timeoutMs).catch(() => undefined);
    return { health: healthOf(status), ms: this.#effects.nowMs() - sinceMs };
  }
}

/** Returns the health for a status of `GET sys/health` without parameters. */
function healthOf(status: number | undefined): NodeHealth {
  if (status === 200) return 'active';
  if (status === 473) return 'serving';
  return status === 429 ? 'forwarding' : 'unavailable';
}

const ranksOfRead: Readonly<Record<NodeHealth, number>> = { active: 0, serving: 0, forwarding: 1, unknown: 2, unavailable: 3 };
const ranksOfChange: Readonly<Record<NodeHealth, number>> = { active: 0, serving: 1, forwarding: 1, unknown: 2, unavailable: 3 };
