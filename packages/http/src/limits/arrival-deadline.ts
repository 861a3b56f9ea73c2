/**
 * Calls `onLate` after this many milliseconds, unless the returned function is called before. A timer that became due while this process
 * stalled runs before the bytes that came meanwhile are read; so that they count, `onLate` waits until they are read.
 */
export function arrivalDeadline(ms: number, onLate: () => void): () => void {
  let afterReading: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    afterReading = setImmediate(onLate);
  }, ms);
  return () => {
    clearTimeout(timer);
    clearImmediate(afterReading);
  };
}
