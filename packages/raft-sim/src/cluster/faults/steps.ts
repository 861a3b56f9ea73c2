import type { Cluster } from '../world/cluster.ts';
import { later } from '../world/links.ts';

const checkMs = 20;

/** One step of a scenario. */
export interface Step {
  readonly once: () => boolean;
  readonly act: () => void;
}

/** Takes each step as soon as its condition holds; gives up if a condition does not hold within `patienceMs`. */
export function inTurn(cluster: Cluster, steps: readonly Step[], patienceMs: number): void {
  next(cluster, steps, { patienceMs, attempts: patienceMs / checkMs });
}

function next(
  cluster: Cluster,
  [step, ...rest]: readonly Step[],
  { patienceMs, attempts }: { readonly patienceMs: number; readonly attempts: number },
): void {
  if (step === undefined) return;
  if (step.once()) {
    step.act();
    next(cluster, rest, { patienceMs, attempts: patienceMs / checkMs });
  } else if (attempts > 0) later(cluster, checkMs, () => next(cluster, [step, ...rest], { patienceMs, attempts: attempts - 1 }));
}
