import { setTimeout as later } from 'node:timers/promises';

/** Long enough that only a failure, not a slow machine, exceeds it. */
const patienceMs = 120_000;
const pollMs = 2;

/** Resolves when the condition holds; rejects after {@link patienceMs}, so that a failed test does not keep the process alive. */
export async function until(condition: () => boolean): Promise<void> {
  for (const endMs = performance.now() + patienceMs; !condition(); await later(pollMs))
    if (performance.now() > endMs) throw new Error(`timed out waiting for ${condition}`);
}
