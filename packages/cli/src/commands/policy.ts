import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { asksServer, showsField } from '../terminal/options.ts';
import { harmless } from '../terminal/table.ts';

/** `policy`: what tokens may do. */
export function policyCommands(program: Command, { asking, local }: Runner): void {
  const policy = program.command('policy').description('what tokens may do');

  asksServer(policy.command('list'))
    .description('show the names of all policies')
    .action(asking(async ({ client, output }) => output.names((await client.sys.policies()).data.keys)));

  showsField(policy.command('read'))
    .description('show the text of a policy')
    .argument('<name>')
    .action(
      asking(async ({ client, output }, name: string, options: { field?: string }) => {
        const answer = await client.sys.policy(name);
        if (output.format === 'json' || options.field !== undefined) return output.answer(answer, options);
        output.line(harmless(answer.data.policy.trimEnd()));
      }),
    );

  asksServer(policy.command('write'))
    .description('make a policy, or replace its text')
    .argument('<name>')
    .argument('<file>', 'HCL or JSON, or - for standard input')
    .action(
      asking(async ({ client, output, sources }, name: string, file: string) => {
        const text = await (file === '-' ? sources.stdin() : sources.file(file.replace(/^@/, '')));
        output.done(await client.sys.writePolicy(name, text.toString('utf8')), `Wrote policy ${name}.`);
      }),
    );

  asksServer(policy.command('delete'))
    .description('remove a policy')
    .argument('<name>')
    .action(
      asking(async ({ client, output }, name: string) => {
        output.done(await client.sys.deletePolicy(name), `Deleted policy ${name}.`);
      }),
    );

  policy
    .command('test')
    .description(
      'exit 0 when the policy in a file allows the request, 2 when it does not, 1 when there is a mistake in either; without a server',
    )
    .argument('<file>', 'the policy, HCL or JSON')
    .argument('<path>', 'path of the request, below /v1/')
    .argument('<capability>', 'create, read, update, patch, delete, list or sudo')
    .argument('[parameters...]', 'members of the body, name=value each')
    .action(
      local(async (file: string, path: string, capability: string, parameters: string[]) => {
        const { testPolicy } = await import('../work/policy-test.ts');
        return testPolicy({ file, path, capability, parameters });
      }),
    );
}
