import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { textFrom } from '../terminal/input.ts';
import { asksServer, showsField } from '../terminal/options.ts';

/** `audit`: the sinks of a server, and files of theirs. */
export function auditCommands(program: Command, { asking, local }: Runner): void {
  const audit = program.command('audit').description('where requests are recorded');

  asksServer(audit.command('list'))
    .description('show the sinks; they come from the configuration')
    .action(
      asking(async ({ client, output }) => {
        const { data } = await client.sys.audits();
        const rows = Object.entries(data).map(([path, { type, options }]) => [path, type, options]);
        output.table(['Path', 'Type', 'Options'], rows, data);
      }),
    );

  showsField(audit.command('hash'))
    .description('show what stands for a text in the entries of a sink')
    .argument('<sink>')
    .argument('<text>', 'or - for standard input, @file for a file')
    .action(
      asking(async ({ client, output, sources }, sink: string, text: string, options: { field?: string }) => {
        output.answer(await client.sys.auditHash(sink, await textFrom(text, sources)), options);
      }),
    );

  audit
    .command('verify')
    .description('exit 0 when the chain of entries is whole, 2 when it is broken, 1 when a file cannot be read; without a server')
    .argument('<files...>', 'files of one sink, the oldest first')
    .action(
      local(async (files: string[]) => {
        const { verifyAudit } = await import('@transitd/audit');
        return verifyAudit(files, (line) => console.log(line));
      }),
    );
}
