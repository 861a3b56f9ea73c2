export { runCommandLine } from './command-line.ts';
export type { LocalWork } from './runner/local-work.ts';
