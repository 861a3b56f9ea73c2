import { StartError } from '@transitd/process';
import { type Command, InvalidArgumentError } from 'commander';
import type { LocalWork, ServerOptions } from '../runner/local-work.ts';
import type { Runner } from '../runner/runner.ts';

/** `server`: runs a node until it is asked to stop. */
export function serverCommand(program: Command, { local, work }: Runner): void {
  program
    .command('server')
    .description('run a node')
    .option('--config <file>', 'YAML or JSON; the same keys as environment variables TRANSITD_…')
    .option('--dev', 'one node, initialised and unsealed by itself; not for production')
    .option('--dev-root-token-id <id>', 'root token of a node that --dev initialises', tokenId)
    .option('--dev-allow-remote', 'let --listen name an address that other machines can reach')
    .option('--data-dir <dir>', 'where a --dev node keeps its data; without it nothing is kept')
    .option('--listen <address>', 'address of a --dev node, 127.0.0.1:8200 unless given')
    .action(local((options: ServerOptions) => server(options, work)));
}

function tokenId(text: string): string {
  if (!/^[\x21-\x7e]{1,128}$/.test(text))
    throw new InvalidArgumentError('a token is 1 to 128 printable characters without blanks');
  return text;
}

async function server(options: ServerOptions, work: LocalWork): Promise<number> {
  const { config, dev, ...devOptions } = options;
  if (config !== undefined && (dev === true || Object.keys(devOptions).length > 0)) {
    throw new StartError('give either --config FILE or --dev with its options, not both');
  }
  if (config === undefined && dev !== true) throw new StartError('give --config FILE, or --dev for a node to try things on');
  return work.runServer(options);
}
