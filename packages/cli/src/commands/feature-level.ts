import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { serverOptions, wholeNumber } from '../terminal/options.ts';

/** `operator feature-level`: shows and raises the feature level of the cluster. */
export function featureLevelCommands(operator: Command, { serverAction }: Runner): void {
  const featureLevel = operator.command('feature-level').description('show and raise the feature level of the cluster');

  serverOptions(featureLevel.command('status'))
    .description('show the feature level and the levels that each member supports')
    .action(
      serverAction(async ({ client, output }) => {
        const { data } = await client.sys.featureLevel.status();
        if (output.format === 'json') return output.json(data);
        output.rows([
          ['Level', data.level],
          ['Highest Possible', data.highest],
          ...(data.waits_for.length > 0 ? [['Waits For', data.waits_for] as const] : []),
        ]);
        output.line('');
        const rows = data.members.map((member) => [member.node_id, member.oldest, member.newest]);
        output.table(['Node', 'Oldest', 'Newest'], rows, data);
      }),
    );

  serverOptions(featureLevel.command('raise'))
    .description('raise the feature level; no member can go back to an earlier release afterwards')
    .option('--level <level>', 'level to raise to (default: the highest that all members support)', wholeNumber)
    .action(
      serverAction(async ({ client, output }, { level }: { readonly level?: number }) => {
        const { data } = await client.sys.featureLevel.raise(level);
        output.rows([['Level', data.level]], data);
      }),
    );
}
