import type { Clock } from '@transitd/raft-core';

/** A real timer that does not keep the process alive. */
export const unreferencedTimer: Clock['every'] = (intervalMs, task) => {
  const timer = setInterval(task, intervalMs).unref();
  return () => clearInterval(timer);
};
