import type { LocalWork } from '../src/runner/local-work.ts';

const unexpected = (): Promise<never> => Promise.reject(new Error('this test runs no node and reads no data directory'));

/** For commands that ask a server or only print. */
export const noLocalWork: LocalWork = { runServer: unexpected, recover: unexpected };
