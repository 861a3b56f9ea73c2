import { escapeControls, exitCode, StartError } from '@transitd/process';
import { CommanderError } from 'commander';
import { createProgram, flagsOf, treeOf } from './program.ts';
import type { LocalWork } from './runner/local-work.ts';
import { helpAsOption, normalizeArguments, redactTokens, redactValues } from './terminal/arguments.ts';
import { flushOutput } from './terminal/output.ts';
import { printError } from './terminal/print.ts';

/** Runs one command and resolves with the exit code. Prints one sentence on stderr if it fails. */
export async function runCommandLine(argv: readonly string[], work: LocalWork): Promise<number> {
  let code: number = exitCode.ok;
  const setExitCode = (result: number): void => {
    code = result;
  };
  const program = await createProgram(setExitCode, work, argv[0] === 'help' ? argv[1] : argv[0]);
  for (const command of treeOf(program)) {
    command
      .exitOverride()
      .configureOutput({ outputError: (text, write) => write(escapeControls(redactValues(text))) })
      .showHelpAfterError('(run transitd --help for the commands)');
  }
  try {
    await program.parseAsync(normalizeArguments(helpAsOption(argv, program), flagsOf(program)), { from: 'user' });
    return code;
  } catch (error) {
    // commander has already printed the message of the error
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCode.ok : exitCode.start;
    const failure = error instanceof StartError ? { code: exitCode.start, sentence: error.message } : await clientFailure(error);
    printError(`transitd: ${failure.sentence}`);
    return failure.code;
  } finally {
    await flushOutput();
  }
}

/** Returns the exit code and the message for an error of the client; rethrows any other error, which is a bug. */
async function clientFailure(error: unknown): Promise<{ readonly code: number; readonly sentence: string }> {
  const { PathError, RefusedError, UnansweredError } = await import('@transitd/client');
  const { adviceForConnection, adviceForRefusal } = await import('./terminal/advice.ts');
  if (error instanceof PathError) return { code: exitCode.start, sentence: error.message };
  if (error instanceof UnansweredError)
    return { code: exitCode.start, sentence: joined(error.message, adviceForConnection(error.message, error.address)) };
  if (!(error instanceof RefusedError)) throw error;
  const after = error.retryAfterS === undefined ? '' : ` (retry after ${error.retryAfterS} s)`;
  const refusal = `the server refused ${redactTokens(error.request)} with ${error.status}: ${error.message}${after}`;
  return { code: exitCode.denied, sentence: joined(refusal, adviceForRefusal(error)) };
}

const joined = (sentence: string, advice: string): string => (advice === '' ? sentence : `${sentence}; ${advice}`);
