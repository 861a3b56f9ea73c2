import { exitCode } from '@transitd/process';

/** State of the stop signals since `listenForStop`. */
export interface StopRequest {
  /** Resolves with the exit code at the first stop signal. */
  readonly requested: Promise<number>;
  readonly isRequested: boolean;
}

/**
 * Listens for SIGTERM and SIGINT. Ignores all signals after the first: the time of a stop is limited, and Ctrl-C may arrive twice (from
 * the terminal and from a parent process).
 */
export function listenForStop(onSignal: (signal: NodeJS.Signals) => void): StopRequest {
  const { promise: requested, resolve } = Promise.withResolvers<number>();
  let isRequested = false;
  const onStop = (signal: NodeJS.Signals): void => {
    if (isRequested) return;
    isRequested = true;
    onSignal(signal);
    resolve(exitCode.ok);
  };
  process.on('SIGTERM', onStop);
  process.on('SIGINT', onStop);
  return {
    requested,
    get isRequested() {
      return isRequested;
    },
  };
}
