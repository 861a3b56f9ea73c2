/** The first delay after a failure, and the longest one: ms. */
const [firstMs, lastMs] = [1_000, 60_000];
/** The longest delay that a provider may ask for. */
const askedMsMax = 600_000;

/**
 * Returns the time until the next call after `failures` failures in a row: 1 s, doubled each time up to one minute, less up to a quarter so
 * that the nodes of a cluster do not call at the same moment. A longer delay that the provider asked for is kept, up to ten minutes.
 * @param random - from 0 to 1
 */
export function retryDelayMs(failures: number, random: number, askedMs = 0): number {
  const delayMs = Math.min(lastMs, firstMs * 2 ** Math.min(failures - 1, 20)) * (1 - random / 4);
  return Math.max(delayMs, Math.min(askedMs, askedMsMax));
}
