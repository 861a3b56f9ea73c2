/** The first delay after a failure, and the longest one: ms. */
const [firstMs, lastMs] = [1_000, 60_000];
/** The longest delay that a provider may ask for. */
const askedMsMax = 600_000;

/**
 * Returns the delay before the next call after `failures` failures in a row: 1 s, doubled with each failure up to one minute. It is
 * shortened at random by up to a quarter, so that the nodes of a cluster do not call at the same moment. If the provider asked for a longer
 * delay, that one applies, up to ten minutes.
 * @param random - from 0 to 1
 */
export function retryDelayMs(failures: number, random: number, askedMs = 0): number {
  const delayMs = Math.min(lastMs, firstMs * 2 ** Math.min(failures - 1, 20)) * (1 - random / 4);
  return Math.max(delayMs, Math.min(askedMs, askedMsMax));
}
