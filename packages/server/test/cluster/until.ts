import { setTimeout as later } from 'node:timers/promises';

const triesMax = 2_500;

/** Resolves when the condition holds. It is given up in the end, so that a wait in vain does not keep the process. */
export async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; !condition(); tries++) {
    if (tries === triesMax) throw new Error(`waited in vain for ${condition}`);
    await later(2);
  }
}
