import { setTimeout as delay } from 'node:timers/promises';

/** Generous: a wait this long is a failure, not slowness. */
export const patienceMs = 120_000;
/** A wait often asks every node of a cluster: at 15 ms, the answers took a sixth of the processor time of forming one. */
const pollMs = 50;

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
  const endMs = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > endMs) throw new Error(`not within ${withinMs} ms: ${what}\n${explain()}`);
    await delay(pollMs);
  }
}
