import { Argument, type Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { printExact } from '../terminal/print.ts';

/** `completion`: the completion script for a shell. */
export function completionCommand(program: Command, { localAction, wholeProgram }: Runner): void {
  program
    .command('completion')
    .description('print the shell completion script')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .action(
      localAction(async (name: string) => {
        const { completionScript, shells } = await import('../local/completion.ts');
        const shell = shells.find((one) => one === name);
        if (shell !== undefined) printExact(completionScript(shell, await wholeProgram()));
      }),
    );
}
