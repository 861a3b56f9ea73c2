import { runCommandLine } from '@transitd/cli';
import { exitCode } from '@transitd/process';
import { localWork } from './local-work.ts';

// Nothing below catches a bug: whatever arrives here unforeseen stops the node rather than let it serve wrong state.
const stopOnBug = (error: unknown): void => {
  console.error('transitd: broken invariant:', error);
  process.exit(exitCode.invariant);
};
process.on('uncaughtException', stopOnBug);
process.on('unhandledRejection', stopOnBug);
// Nobody reads the welcome any more: no reason to end.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

process.exit(await runCommandLine(process.argv.slice(2), localWork));
