// Draws from a seed which faults strike which nodes. The same seed gives the same schedule on every machine.
import { SimRandom } from '@transitd/raft-sim';
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
  const deck: Fault[] = [];
  const draw = (fits: (fault: Fault) => boolean): Fault => {
    if (!deck.some(fits)) deck.push(...faults);
    const fault = random.pick(deck.filter(fits));
    deck.splice(deck.indexOf(fault), 1);
    return fault;
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
    const strikes: Strike[] = [];
    for (let index = 0; index < victims; index++) {
      const hasShared = strikes.some(({ fault }) => fault.isShared);
      const fault = draw(({ isShared }) => !(hasShared && isShared));
      strikes.push({ fault, at: withActive && index === 0 ? 'the active node' : 'a standby' });
    }
    yield { kind: 'minority', lastMs, strikes };
  }
}
