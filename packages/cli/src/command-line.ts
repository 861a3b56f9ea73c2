import { exitCode, StartError } from '@transitd/process';
import { CommanderError } from 'commander';
import { createProgram, flagsOf, treeOf } from './program.ts';
import type { LocalWork } from './runner/local-work.ts';
import { normalised, withoutValues } from './terminal/arguments.ts';
import { shown } from './terminal/output.ts';

/** Runs one command; resolves with the exit code. What a person should know of a failure is one sentence on stderr. */
export async function runCommandLine(argv: readonly string[], work: LocalWork): Promise<number> {
  let code: number = exitCode.ok;
  const end = (ended: number): void => {
    code = ended;
  };
  const program = await createProgram(end, work, argv[0]);
  for (const command of treeOf(program)) {
    command
      .exitOverride()
      .configureOutput({ outputError: (text, write) => write(withoutValues(text)) })
      .showHelpAfterError('(transitd --help shows the commands)');
  }
  try {
    await program.parseAsync(normalised(argv, flagsOf(program)), { from: 'user' });
    return code;
  } catch (error) {
    // commander has printed its own sentence already
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCode.ok : exitCode.start;
    const told = error instanceof StartError ? { code: exitCode.start, sentence: error.message } : await failureOfClient(error);
    console.error(`transitd: ${told.sentence}`);
    return told.code;
  } finally {
    await shown();
  }
}

/** @throws what is a bug */
async function failureOfClient(error: unknown): Promise<{ readonly code: number; readonly sentence: string }> {
  const { PathError, RefusedError, UnansweredError } = await import('@transitd/client');
  const { harmless } = await import('./terminal/table.ts');
  if (error instanceof UnansweredError || error instanceof PathError) return { code: exitCode.start, sentence: error.message };
  if (!(error instanceof RefusedError)) throw error;
  const after = error.retryAfterS === undefined ? '' : ` (try again in ${error.retryAfterS} s)`;
  return { code: exitCode.denied, sentence: harmless(`the server refused with ${error.status}: ${error.message}${after}`) };
}
