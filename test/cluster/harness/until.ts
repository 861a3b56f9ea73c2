import { setTimeout as delay } from 'node:timers/promises';

/** Generous: a wait this long is a failure, not slowness. */
export const patienceMs = 120_000;
/**
 * Pauses between two calls. A wait often asks every node of a cluster: at 15 ms, the answers took a sixth of the processor time of forming
 * one. So a wait pauses for a tenth of its time so far, within these limits.
 */
const [pollMsMin, pollMsMax] = [40, 200];

/**
 * Calls `ask` until it returns a result, and returns the result.
 * @param explain - describes the state if there is no result in time
 * @throws after `withinMs`
 */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  { withinMs = patienceMs, explain = () => '' }: { readonly withinMs?: number; readonly explain?: () => string } = {},
): Promise<T> {
  const begunMs = performance.now();
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    const waitedMs = performance.now() - begunMs;
    if (waitedMs > withinMs) throw new Error(`not within ${withinMs} ms: ${what}\n${explain()}`);
    await delay(Math.min(pollMsMax, Math.max(pollMsMin, waitedMs / 10)));
  }
}
