import { setTimeout as delay } from 'node:timers/promises';

/** Generous: who waits this long has failed, not been slow. */
export const patienceMs = 120_000;
const pollMs = 15;

/**
 * Asks until there is an answer, and gives it.
 * @param explain - what to say of the state when it never comes
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
