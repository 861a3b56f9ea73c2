import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { textFrom } from '../terminal/input.ts';
import { fieldOption, serverOptions } from '../terminal/options.ts';
import { print } from '../terminal/print.ts';

/** `audit`: audit devices and audit log files. */
export function auditCommands(program: Command, { serverAction, localAction }: Runner): void {
  const audit = program.command('audit').description('inspect audit devices and verify audit logs');

  serverOptions(audit.command('list'))
    .description('list the audit devices in the configuration')
    .action(
      serverAction(async ({ client, output }) => {
        const { data } = await client.sys.audits();
        const rows = Object.entries(data).map(([path, { type, options }]) => [path, type, options]);
        output.table(['Path', 'Type', 'Options'], rows, data);
      }),
    );

  fieldOption(audit.command('hash'))
    .description('print the hash that replaces a value in the audit log')
    .argument('<device>', 'name of the audit device')
    .argument('<text>', 'the value, @file, or - for standard input')
    .action(
      serverAction(async ({ client, output, sources }, device: string, text: string, options: { field?: string }) => {
        output.answer(await client.sys.auditHash(device, await textFrom(text, sources)), options);
      }),
    );

  audit
    .command('verify')
    .description('verify the hash chain of log files without a server; exits 0 if intact, 2 if broken, 1 if a file is unreadable')
    .argument('<files...>', 'log files of one device, oldest first')
    .action(
      localAction(async (files: string[]) => {
        const { verifyAudit } = await import('@transitd/audit');
        return verifyAudit(files, print);
      }),
    );
}
