import { StartError } from '@transitd/process';
import { type Command, InvalidArgumentError } from 'commander';
import type { LocalWork, ServerOptions } from '../runner/local-work.ts';
import type { Runner } from '../runner/runner.ts';

/** `server`: runs a node until it receives a stop signal. */
export function serverCommand(program: Command, { localAction, work }: Runner): void {
  program
    .command('server')
    .description('start a node')
    .option('--config <file>', 'configuration file in YAML or JSON; TRANSITD_… variables set the same keys')
    .option('--dev', 'start one node that initializes and unseals itself; not for production')
    .option('--dev-root-token-id <id>', 'with --dev: root token of the new node', tokenId)
    .option('--dev-allow-remote', 'with --dev: allow a --listen address that other machines can reach')
    .option('--data-dir <dir>', 'with --dev: data directory (default: a temporary directory)')
    .option('--listen <address>', 'with --dev: listen address (default: 127.0.0.1:8200)')
    .action(localAction((options: ServerOptions) => server(options, work)));
}

function tokenId(text: string): string {
  if (!/^[\x21-\x7e]{1,128}$/.test(text))
    throw new InvalidArgumentError('A token is 1 to 128 printable ASCII characters without spaces.');
  return text;
}

async function server(options: ServerOptions, work: LocalWork): Promise<number> {
  const { config, dev, ...devOptions } = options;
  if (config !== undefined && (dev === true || Object.keys(devOptions).length > 0)) {
    throw new StartError('use either --config FILE or --dev with its options, not both');
  }
  if (config === undefined && dev !== true) throw new StartError('use --config FILE, or --dev for a development node');
  return work.runServer(options);
}
