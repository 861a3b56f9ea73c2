/** A gate through which tasks go in the order of the calls, each after the one before has ended, however it ended. */
export function oneAtATime(): <T>(task: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (task) => {
    const result = last.then(task);
    last = result.catch(() => undefined); // its caller gets the error; the next task must not
    return result;
  };
}
