import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { fieldOption, serverOptions } from '../terminal/options.ts';

/** `policy`: ACL policies. */
export function policyCommands(program: Command, { serverAction, localAction }: Runner): void {
  const policy = program.command('policy').description('manage and test policies');

  serverOptions(policy.command('list'))
    .description('list the policy names')
    .action(serverAction(async ({ client, output }) => output.names((await client.sys.policies()).data.keys)));

  fieldOption(policy.command('read'))
    .description('print the text of a policy')
    .argument('<name>', 'name of the policy')
    .action(
      serverAction(async ({ client, output }, name: string, options: { field?: string }) => {
        const answer = await client.sys.policy(name);
        if (output.format === 'json' || options.field !== undefined) return output.answer(answer, options);
        output.line(answer.data.policy.trimEnd());
      }),
    );

  serverOptions(policy.command('write'))
    .description('create or replace a policy')
    .argument('<name>', 'name of the policy')
    .argument('<file>', 'policy file in HCL or JSON, or - for standard input')
    .action(
      serverAction(async ({ client, output, sources }, name: string, file: string) => {
        const text = await (file === '-' ? sources.stdin() : sources.file(file.replace(/^@/, '')));
        output.done(await client.sys.writePolicy(name, text.toString('utf8')), `Wrote policy ${name}.`);
      }),
    );

  serverOptions(policy.command('delete'))
    .description('delete a policy')
    .argument('<name>', 'name of the policy')
    .action(
      serverAction(async ({ client, output }, name: string) => {
        output.done(await client.sys.deletePolicy(name), `Deleted policy ${name}, if it existed.`);
      }),
    );

  policy
    .command('fmt')
    .description('format a policy file in place, or standard input to standard output; exits 1 on invalid input')
    .argument('<file>', 'policy file in HCL or JSON, or - for standard input')
    .option('--check', 'change nothing; exit 2 if the file is not formatted')
    .action(
      localAction(async (file: string, { check }: { check?: true }) => {
        const { formatPolicyFile } = await import('../local/policy-file.ts');
        return formatPolicyFile(file, { check: check === true });
      }),
    );

  policy
    .command('test')
    .description('test a policy file without a server; exits 0 if it allows the request, 2 if not, 1 on invalid input')
    .argument('<file>', 'policy file in HCL or JSON')
    .argument('<path>', 'request path below /v1/')
    .argument('<capability>', 'create, read, update, patch, delete, list or sudo')
    .argument('[parameters...]', 'request parameters, each name=value')
    .action(
      localAction(async (file: string, path: string, capability: string, parameters: string[]) => {
        const { testPolicy } = await import('../local/policy-test.ts');
        return testPolicy({ file, path, capability, parameters });
      }),
    );
}
