import { Argument, type Command } from 'commander';
import type { Runner } from '../runner/runner.ts';

/** `completion`: a script by which a shell completes these commands. */
export function completionCommand(program: Command, { local, wholeProgram }: Runner): void {
  program
    .command('completion')
    .description('print a script that completes commands and options')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .action(
      local(async (name: string) => {
        const { completionScript, shells } = await import('../work/completion.ts');
        const shell = shells.find((one) => one === name);
        if (shell !== undefined) process.stdout.write(completionScript(shell, await wholeProgram()));
      }),
    );
}
