import { StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { serverOptions } from '../terminal/options.ts';

/** `debug`: collects the state of a node and its cluster in one file, for a report. */
export function debugCommand(program: Command, { serverAction }: Runner): void {
  serverOptions(program.command('debug'))
    .description('collect the state, configuration, metrics and members of a cluster in one file, without secrets')
    .argument('[file]', 'file to create; must not exist (default: transitd-debug-<time>.json)')
    .action(
      serverAction(async ({ client, output }, file: string | undefined) => {
        const { collect, writeBundle } = await import('../local/debug-bundle.ts');
        const path = file ?? `transitd-debug-${new Date().toISOString().replace(/[:.]/g, '-')}.json`;
        if (/^(?:-|@)/.test(path)) throw new StartError('the bundle is written to a file: name one');
        const bundle = await collect(client);
        writeBundle(path, bundle);
        output.rows([
          ['file', path],
          ...Object.entries(bundle.sections).map(
            ([name, section]) => [name, 'error' in section ? section.error : 'collected'] as const,
          ),
        ]);
      }),
    );
}
