import { version } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';

/** `version`: the release of this command and of the node that it runs. */
export function versionCommand(program: Command, { local }: Runner): void {
  program
    .command('version')
    .description('print the version')
    .action(
      local(async () => {
        console.log(`transitd ${version}`);
      }),
    );
}
