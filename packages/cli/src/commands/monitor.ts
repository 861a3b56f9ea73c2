import { escapeInJson, StartError } from '@transitd/process';
import { type Command, Option } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { serverOptions } from '../terminal/options.ts';

interface MonitorOptions {
  readonly logLevel: string;
  readonly logFormat?: 'standard' | 'json';
}

/** `monitor`: prints the log of a node as it is written. */
export function monitorCommand(program: Command, { serverAction }: Runner): void {
  serverOptions(program.command('monitor'))
    .description('print the log of the node at the first address as it is written, until it is interrupted')
    .addOption(
      new Option('--log-level <level>', 'lowest level of the lines')
        .choices(['trace', 'debug', 'info', 'warn', 'error'])
        .default('info'),
    )
    .addOption(
      new Option('--log-format <format>', 'form of the lines (default: json with --format json)').choices(['standard', 'json']),
    )
    .action(
      serverAction(async ({ client, addresses, output }, { logLevel, logFormat }: MonitorOptions) => {
        const [{ Readable }, { pipeline }] = await Promise.all([import('node:stream'), import('node:stream/promises')]);
        const lines = await client.sys.monitor({
          level: logLevel,
          format: logFormat ?? (output.format === 'json' ? 'json' : 'standard'),
        });
        try {
          await pipeline(Readable.fromWeb(lines as Parameters<typeof Readable.fromWeb>[0]), withoutEmptyLines, process.stdout, {
            end: false,
          });
        } catch (error) {
          // The reader of this program's output has ended, as in `transitd monitor | head`.
          if ((error as NodeJS.ErrnoException).code === 'EPIPE') return;
          throw new StartError(`the connection to ${addresses[0]} was interrupted`);
        }
      }),
    );
}

/** Removes the empty lines with which the server keeps the connection open, and escapes what could control the terminal. */
async function* withoutEmptyLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let begun = '';
  for await (const chunk of chunks) {
    const lines = (begun + decoder.decode(chunk, { stream: true })).split('\n');
    begun = lines.pop() ?? '';
    const text = lines.filter((line) => line !== '').map((line) => `${escapeInJson(line)}\n`);
    if (text.length > 0) yield text.join('');
  }
}
