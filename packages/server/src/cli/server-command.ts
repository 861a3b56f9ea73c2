import { type Command, InvalidArgumentError } from 'commander';
import type { DevOptions } from '../dev.ts';
import { StartError } from '../exit.ts';
import type { Runner } from './runner.ts';

interface ServerOptions extends Partial<DevOptions> {
  readonly config?: string;
  readonly dev?: boolean;
}

/** `server`: runs a node until it is asked to stop. */
export function serverCommand(program: Command, { local }: Runner): void {
  program
    .command('server')
    .description('run a node')
    .option('--config <file>', 'YAML or JSON; the same keys as environment variables TRANSITD_…')
    .option('--dev', 'one node, initialised and unsealed by itself; not for production')
    .option('--dev-root-token-id <id>', 'root token of a node that --dev initialises', tokenId)
    .option('--dev-allow-remote', 'let --listen name an address that other machines can reach')
    .option('--data-dir <dir>', 'where a --dev node keeps its data; without it nothing is kept')
    .option('--listen <address>', 'address of a --dev node, 127.0.0.1:8200 unless given')
    .action(local(server));
}

function tokenId(text: string): string {
  if (!/^[\x21-\x7e]{1,128}$/.test(text))
    throw new InvalidArgumentError('a token is 1 to 128 printable characters without blanks');
  return text;
}

async function server(options: ServerOptions): Promise<number> {
  const { config, dev, ...devOptions } = options;
  if (config !== undefined && (dev === true || Object.keys(devOptions).length > 0)) {
    throw new StartError('give either --config FILE or --dev with its options, not both');
  }
  // Loaded by who runs it only: all other commands end within a moment.
  const [{ readConfigFile }, { prepareDev }, { runServer }] = await Promise.all([
    import('../config.ts'),
    import('../dev.ts'),
    import('../run-server.ts'),
  ]);
  if (config !== undefined) return runServer(readConfigFile(config), { reread: () => readConfigFile(config) });
  if (dev === true) {
    const prepared = prepareDev(devOptions);
    return runServer(prepared.config, { dev: prepared.dev });
  }
  throw new StartError('give --config FILE, or --dev for a node to try things on');
}
