// Draws from a seed which faults strike which nodes. The same seed gives the same schedule on every machine.
import { SimRandom } from '@transitd/raft-core/sim';
import type { Fault } from '../cluster/harness/faults.ts';

export interface Strike {
  readonly fault: Fault;
  /** Whether the fault strikes the active node or a standby. */
  readonly at: 'the active node' | 'a standby';
}

/** `minority`: the other nodes must keep serving. `all`: the fault strikes every node, and the cluster must recover. */
export interface Round {
  readonly kind: 'minority' | 'all';
  readonly strikes: readonly Strike[];
  /** How long the fault lasts. */
  readonly lastMs: number;
}

export interface ScheduleOptions {
  readonly seed: number;
  readonly size: number;
  readonly faults: readonly Fault[];
  /** Faults that may strike all nodes at once. */
  readonly total: readonly Fault[];
}

const lastMsMax = 5_000;
const totalChance = 0.08;
const activeChance = 0.6;

/** Yields rounds without end. Each fault comes once, in random order, before any is repeated. */
export function* schedule({ seed, size, faults, total }: ScheduleOptions): Generator<Round, never> {
  const random = new SimRandom(seed);
  const minority = Math.floor((size - 1) / 2);
  let deck: Fault[] = [];
  const draw = (): Fault => {
    if (deck.length === 0) deck = [...faults];
    return deck.splice(random.below(deck.length), 1)[0] ?? random.pick(faults);
  };
  for (;;) {
    const lastMs = random.below(lastMsMax);
    if (total.length > 0 && random.chance(totalChance)) {
      const fault = random.pick(total);
      const at = Array.from({ length: size }, (_, index) =>
        index === 0 ? ('the active node' as const) : ('a standby' as const),
      );
      yield { kind: 'all', lastMs, strikes: at.map((where) => ({ fault, at: where })) };
      continue;
    }
    const victims = random.between(1, minority);
    const withActive = random.chance(activeChance);
    const strikes = Array.from({ length: victims }, (_, index) => ({
      fault: draw(),
      at: withActive && index === 0 ? ('the active node' as const) : ('a standby' as const),
    }));
    yield { kind: 'minority', lastMs, strikes };
  }
}
