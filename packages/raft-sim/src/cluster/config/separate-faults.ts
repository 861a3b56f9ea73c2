import { SimRandom } from '../../fakes/sim-random.ts';

/** A fault that occurs again and again. `seed`: of the random stream that it alone uses during the run. */
export interface Recurring {
  readonly seed: number;
  /** Average time between two occurrences. */
  readonly paceMs: number;
}

/**
 * Faults that were added one by one. Each has a random stream of its own, both to be drawn and while it is carried out, so that adding one
 * changes no run without it.
 */
export interface SeparateFaults {
  /** One sync fails, and the kernel reports its pages as clean. The machine keeps running; later its power fails. */
  readonly failedSyncs?: Recurring;
  /** A leader's machine is suspended, once for long or often for a moment, while other nodes elect another leader. */
  readonly suspensions?: Recurring;
  /** A node's program stops inside a turn, or applies entries slowly, while the rest of the cluster keeps running. */
  readonly stalls?: Recurring;
  /** Messages travel on connections, which keep their order; a connection stalls, or ends and loses what was under way. */
  readonly streams?: Recurring;
  /** No fault: the leader asks its peers whether its newest entries are applied. */
  readonly questions?: Recurring;
}

const SHARE = 0.2;

/** Draws the separate faults of a seed. */
export function separateFaults({ seed }: { readonly seed: number }): SeparateFaults {
  return {
    ...recurring('failedSyncs', new SimRandom((seed ^ 0x5_f5c0) >>> 0)),
    ...recurring('suspensions', new SimRandom((seed ^ 0x6_5109) >>> 0)),
    ...recurring('stalls', new SimRandom((seed ^ 0x7_57a1) >>> 0)),
    ...recurring('streams', new SimRandom((seed ^ 0x8_57e4) >>> 0)),
    ...recurring('questions', new SimRandom((seed ^ 0x9_c0f1) >>> 0)),
  };
}

function recurring(name: keyof SeparateFaults, random: SimRandom): SeparateFaults {
  return random.chance(SHARE) ? { [name]: { seed: random.uint32(), paceMs: random.pick([500, 2000, 6000]) } } : {};
}
