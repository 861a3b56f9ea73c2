import { setTimeout as later } from 'node:timers/promises';

/** Generous: who waits this long has failed, not been slow. */
const patienceMs = 120_000;
const pollMs = 2;

/** Resolves when the condition holds. It is given up in the end, so that a wait in vain does not keep the process. */
export async function until(condition: () => boolean): Promise<void> {
  for (const endMs = performance.now() + patienceMs; !condition(); await later(pollMs))
    if (performance.now() > endMs) throw new Error(`waited in vain for ${condition}`);
}
