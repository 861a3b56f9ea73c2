/** Returns a function that runs tasks one at a time in the order of the calls. A failed task does not stop the next one. */
export function oneAtATime(): <T>(task: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (task) => {
    const result = last.then(task);
    last = result.catch(() => undefined); // the caller of this task gets the error; the next task runs regardless
    return result;
  };
}
