/** Work that waits for its turn, oldest first. */
const waiting: (() => void)[] = [];

/**
 * Resolves in a later turn of the event loop, after timers and sockets have been served. Only one waiting caller continues in each
 * turn, so however many requests do long work, a heartbeat never waits for more than one piece of it.
 */
export const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(continueOne);
  });

function continueOne(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(continueOne);
}
