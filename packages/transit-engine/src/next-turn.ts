/** Who works in turns and has had one, in order. */
const line: (() => void)[] = [];

/**
 * Resolves when other requests have had their turn. Of all work that is done in turns, one piece is done in each turn of the event loop: so
 * however many requests do such work, none of them holds up the others, heartbeats among them, for longer than its own piece takes.
 */
export const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    if (line.push(resolve) === 1) setImmediate(goOn);
  });

function goOn(): void {
  line.shift()?.();
  if (line.length > 0) setImmediate(goOn);
}
