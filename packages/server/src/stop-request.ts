import { exitCode } from '@transitd/process';

/** SIGTERM or SIGINT, heard from `listenForStop` on. */
export interface StopRequest {
  /** The exit code of a process that was asked to stop, once it is. */
  readonly asked: Promise<number>;
  readonly isAsked: boolean;
}

/**
 * Asked again, nothing changes: a stop takes a limited time, and Ctrl-C in a terminal may arrive twice (from the terminal and from
 * the program between).
 */
export function listenForStop(onSignal: (signal: NodeJS.Signals) => void): StopRequest {
  const { promise: asked, resolve } = Promise.withResolvers<number>();
  let isAsked = false;
  const onStop = (signal: NodeJS.Signals): void => {
    if (isAsked) return;
    isAsked = true;
    onSignal(signal);
    resolve(exitCode.ok);
  };
  process.on('SIGTERM', onStop);
  process.on('SIGINT', onStop);
  return {
    asked,
    get isAsked() {
      return isAsked;
    },
  };
}
