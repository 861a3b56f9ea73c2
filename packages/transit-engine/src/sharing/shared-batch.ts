import { TimeSlice } from '@transitd/event-loop';
import { columnsOf, objectsOf } from './columns.ts';
import type { BatchPart, OtherThreads } from './other-threads.ts';

/** Number of items below which a part costs more than it saves, and number that one thread processes at a time. */
const [partMin, partMax] = [200, 500];
/** Characters in one part for another thread. Copying long texts costs about as much as encrypting them. */
const charactersMax = 256 * 1024;
/** How much longer than its own part a thread waits for the other parts, in milliseconds, before it processes them itself. */
const graceMs = 10;

/** A batch, and what its parts have in common. */
export interface SharedBatch<I extends object, R extends object> {
  readonly items: readonly I[];
  readonly head: Omit<BatchPart, 'first' | 'items'>;
  readonly others: OtherThreads;
  /** Processes items in this thread. @param first - position of the first one in the batch */
  readonly run: (items: readonly I[], first: number, slice: TimeSlice) => Promise<readonly R[]>;
}

/** Returns whether a batch has enough items for two threads. */
export const isWorthSharing = (items: readonly unknown[]): boolean => items.length >= 2 * partMin;

/**
 * Processes a batch in rounds. In each round every idle thread gets a part, and this thread processes one too. If another thread refuses
 * its part or is late, this thread processes that part as well, so an item may be processed twice, but it has one result.
 */
export async function runShared<I extends object, R extends object>(batch: SharedBatch<I, R>): Promise<R[]> {
  const { items, others, head, run } = batch;
  const results: R[] = [];
  const slice = new TimeSlice();
  while (results.length < items.length) {
    const first = results.length;
    const left = items.length - first;
    const threads = others().slice(0, Math.max(0, Math.floor(left / partMin) - 1));
    const size = Math.min(partMax, Math.ceil(left / (threads.length + 1)));
    const parts = threads.map((thread, n) => {
      const at = first + (n + 1) * size;
      const part = items.slice(at, at + size);
      return { part, given: isShort(part) ? thread.run({ ...head, first: at, items: columnsOf(part) }) : undefined };
    });
    const beganMs = performance.now();
    results.push(...(await run(items.slice(first, first + size), first, slice)));
    if (parts.length === 0) continue;
    const waitMs = graceMs + 2 * (performance.now() - beganMs);
    const pending = parts.map(({ given }) => given);
    const answers = await answersWithin(waitMs, pending);
    for (const [n, { part }] of parts.entries()) {
      const answer = answers[n];
      const isComplete = answer?.count === part.length;
      results.push(...(isComplete ? (objectsOf(answer) as R[]) : await run(part, results.length, slice)));
    }
  }
  return results;
}

function isShort(items: readonly object[]): boolean {
  let characters = 0;
  for (const item of items) for (const value of Object.values(item)) if (typeof value === 'string') characters += value.length;
  return characters <= charactersMax;
}

/** Returns the values of the promises that resolve in time, and undefined in the places of the others. */
async function answersWithin<T>(
  ms: number,
  given: readonly (Promise<T | undefined> | undefined)[],
): Promise<readonly (T | undefined)[]> {
  const answers: (T | undefined)[] = given.map(() => undefined);
  const { promise: late, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const all = given.map(async (answer, n) => {
    answers[n] = await answer;
  });
  await Promise.race([late, Promise.all(all)]);
  clearTimeout(timer);
  return [...answers];
}
