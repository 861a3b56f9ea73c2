import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { bytesFrom } from '../terminal/input.ts';
import { fieldOption, mountOption, wholeNumber } from '../terminal/options.ts';

interface ToolOptions {
  readonly mount: string;
  readonly field?: string;
  readonly encoding: 'hex' | 'base64';
}

const encodingOption = (): Option =>
  new Option('--encoding <encoding>', 'encoding of the result').choices(['hex', 'base64']).default('base64');

/** `random`: random bytes from the service. */
export function randomCommand(program: Command, { serverAction }: Runner): void {
  mountOption(fieldOption(program.command('random')))
    .description('print random bytes of the service')
    .argument('[bytes]', 'how many, at most 131072 (default: 32)', positive)
    .option('--source <source>', 'platform, seal or all (default: platform)')
    .addOption(encodingOption())
    .action(
      serverAction(async ({ client, output }, bytes: number | undefined, options: ToolOptions & { source?: string }) => {
        const answer = await client.transit(options.mount).random(bytes ?? 32, {
          format: options.encoding,
          ...(options.source !== undefined && { source: options.source }),
        });
        if (output.format === 'json' || options.field !== undefined) return output.answer(answer, options);
        output.warnings(answer);
        output.line(answer.data.random_bytes);
      }),
    );
}

function positive(text: string): number {
  const number = wholeNumber(text);
  if (number === 0) throw new InvalidArgumentError('It must be at least 1.');
  return number;
}

/** `hash`: a hash without a key. */
export function hashCommand(program: Command, { serverAction }: Runner): void {
  mountOption(fieldOption(program.command('hash')))
    .description('print the hash of data')
    .argument('[data]', 'text, @file, or - for standard input (default)')
    .option('--algorithm <name>', 'hash algorithm (default: sha2-256)')
    .addOption(encodingOption())
    .action(
      serverAction(
        async ({ client, output, sources }, data: string | undefined, options: ToolOptions & { algorithm?: string }) => {
          const answer = await client.transit(options.mount).hash((await bytesFrom(data, sources)).toString('base64'), {
            format: options.encoding,
            ...(options.algorithm !== undefined && { algorithm: options.algorithm }),
          });
          if (output.format === 'json' || options.field !== undefined) return output.answer(answer, options);
          output.line(answer.data.sum);
        },
      ),
    );
}
