import { version } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { print } from '../terminal/print.ts';

/** `version`: the version of the client and the server, which are one program. */
export function versionCommand(program: Command, { localAction }: Runner): void {
  program
    .command('version')
    .description('print the version')
    .action(
      localAction(async () => {
        print(`transitd ${version}`);
      }),
    );
}
