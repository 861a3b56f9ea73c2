/** Returns a function that runs a task. A call during a run starts no second one: it gets the outcome of the run in progress. */
export function sharedRun<Args extends unknown[], T>(task: (...args: Args) => Promise<T>): (...args: Args) => Promise<T> {
  let running: Promise<T> | undefined;
  return (...args) => {
    if (running !== undefined) return running;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    running = promise; // first: the task may ask for itself before it waits for anything
    task(...args)
      .finally(() => {
        running = undefined;
      })
      .then(resolve, reject);
    return promise;
  };
}
