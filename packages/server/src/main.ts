import { inspect } from 'node:util';
import { runCommandLine } from '@transitd/cli';
import { endProcess, escapeControls, exitCode, OrdinaryEnd } from '@transitd/process';
import { localWork } from './local-work.ts';

const ending = new OrdinaryEnd();
// No other code catches bugs: an unexpected error ends the process, so that the node never serves wrong state.
const stopOnBug = (error: unknown): void => {
  console.error(escapeControls(`transitd: broken invariant: ${inspect(error)}`));
  endProcess(exitCode.invariant);
};
process.on('uncaughtException', stopOnBug);
process.on('unhandledRejection', stopOnBug);
// A closed stdout must not end the process.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

await ending.end(await runCommandLine(process.argv.slice(2), localWork));
