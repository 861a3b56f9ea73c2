import type { Cluster } from '../world/cluster.ts';
import { later } from '../world/links.ts';

const LOOK_MS = 20;

/** One step of a scenario. */
export interface Step {
  readonly once: () => boolean;
  readonly act: () => void;
}

/** Takes each step as soon as its condition holds; gives up if a condition does not hold within `patienceMs`. */
export function inTurn(cluster: Cluster, steps: readonly Step[], patienceMs: number): void {
  next(cluster, steps, { patienceMs, looks: patienceMs / LOOK_MS });
}

function next(
  cluster: Cluster,
  [step, ...rest]: readonly Step[],
  { patienceMs, looks }: { readonly patienceMs: number; readonly looks: number },
): void {
  if (step === undefined) return;
  if (step.once()) {
    step.act();
    next(cluster, rest, { patienceMs, looks: patienceMs / LOOK_MS });
  } else if (looks > 0) later(cluster, LOOK_MS, () => next(cluster, [step, ...rest], { patienceMs, looks: looks - 1 }));
}
