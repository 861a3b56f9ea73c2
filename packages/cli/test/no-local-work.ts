import type { LocalWork } from '../src/runner/local-work.ts';

const unexpected = (): Promise<never> =>
  Promise.reject(new Error('unexpected: this test must not run a node or read a data directory'));

/** For commands that call a server or only print. */
export const noLocalWork: LocalWork = { runServer: unexpected, recover: unexpected, migrateStorage: unexpected };
