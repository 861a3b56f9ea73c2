export { runCommandLine } from './command-line.ts';
export type { LocalWork } from './local-work.ts';
