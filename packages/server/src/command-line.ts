import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { verifyAudit } from './audit/verify.ts';
import type { DevOptions } from './dev.ts';
import { exitCode, StartError } from './exit.ts';
import { checkHealth } from './healthcheck.ts';
import { version } from './version.ts';

function tokenId(text: string): string {
  if (!/^[\x21-\x7e]{1,128}$/.test(text))
    throw new InvalidArgumentError('a token is 1 to 128 printable characters without blanks');
  return text;
}

interface ServerOptions extends Partial<DevOptions> {
  readonly config?: string;
  readonly dev?: boolean;
}

async function server(options: ServerOptions): Promise<number> {
  const { config, dev, ...devOptions } = options;
  if (config !== undefined && (dev === true || Object.keys(devOptions).length > 0)) {
    throw new StartError('give either --config FILE or --dev with its options, not both');
  }
  // Loaded by who runs it only: a container engine's probe comes every few seconds, and needs none of it.
  const [{ readConfigFile }, { prepareDev }, { runServer }] = await Promise.all([
    import('./config.ts'),
    import('./dev.ts'),
    import('./run-server.ts'),
  ]);
  if (config !== undefined) return runServer(readConfigFile(config), { reread: () => readConfigFile(config) });
  if (dev === true) {
    const prepared = prepareDev(devOptions);
    return runServer(prepared.config, { dev: prepared.dev });
  }
  throw new StartError('give --config FILE, or --dev for a node to try things on');
}

/** Runs one command; resolves with the exit code. Errors meant for the operator are one sentence on stderr. */
export async function runCommandLine(argv: readonly string[]): Promise<number> {
  let code: number = exitCode.ok;
  const program = new Command('transitd')
    .description('A clustered, highly available transit cryptography service.')
    .exitOverride()
    .showHelpAfterError('(transitd --help shows the commands)');

  program
    .command('server')
    .description('run a node')
    .option('--config <file>', 'YAML or JSON; the same keys as environment variables TRANSITD_…')
    .option('--dev', 'one node, initialised and unsealed by itself; not for production')
    .option('--dev-root-token-id <id>', 'root token of a node that --dev initialises', tokenId)
    .option('--dev-allow-remote', 'let --listen name an address that other machines can reach')
    .option('--data-dir <dir>', 'where a --dev node keeps its data; without it nothing is kept')
    .option('--listen <address>', 'address of a --dev node, 127.0.0.1:8200 unless given')
    .action(async (options: ServerOptions) => {
      code = await server(options);
    });

  program
    .command('healthcheck')
    .description('exit 0 when a node is unsealed and active or a standby, 1 when it does not answer, 2 otherwise')
    .option('--address <url>', 'address of the node', process.env['TRANSITD_ADDR'] ?? 'http://127.0.0.1:8200')
    .action(async ({ address }: { address: string }) => {
      code = await checkHealth(address);
    });

  program
    .command('policy')
    .description('work on policies, without a server')
    .command('test')
    .description('exit 0 when the policy in a file allows the request, 2 when it does not, 1 when there is a mistake in either')
    .argument('<file>', 'the policy, HCL or JSON')
    .argument('<path>', 'path of the request, below /v1/')
    .argument('<capability>', 'create, read, update, patch, delete, list or sudo')
    .argument('[parameters...]', 'members of the body, name=value each')
    .action(async (file: string, path: string, capability: string, parameters: string[]) => {
      const { testPolicy } = await import('./policy-test.ts');
      code = testPolicy({ file, path, capability, parameters });
    });

  program
    .command('audit')
    .description('work on audit files, without a server')
    .command('verify')
    .description('exit 0 when the chain of entries is whole, 2 when it is broken, 1 when a file cannot be read')
    .argument('<files...>', 'files of one sink, the oldest first')
    .action(async (files: string[]) => {
      code = await verifyAudit(files, (line) => console.log(line));
    });

  program
    .command('version')
    .description('print the version')
    .action(() => console.log(`transitd ${version}`));

  try {
    await program.parseAsync(argv, { from: 'user' });
    return code;
  } catch (error) {
    // commander has printed its own sentence already
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCode.ok : exitCode.start;
    if (error instanceof StartError) {
      console.error(`transitd: ${error.message}`);
      return exitCode.start;
    }
    throw error;
  }
}
