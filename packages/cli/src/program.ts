import { version } from '@transitd/process';
import { Command } from 'commander';
import type { LocalWork } from './runner/local-work.ts';
import { createRunner, type Runner } from './runner/runner.ts';

const environmentHelp = `
Environment:
  TRANSITD_ADDR                               address of the server
  TRANSITD_TOKEN                              the token (default: that of the last login)
  TRANSITD_CACERT                             PEM file of the only authorities to trust
  TRANSITD_CAPATH                             folder with PEM files of the only authorities to trust
  TRANSITD_CLIENT_CERT, TRANSITD_CLIENT_KEY   PEM files of a client certificate
  TRANSITD_TLS_SERVER_NAME                    name to expect in the server's certificate
  TRANSITD_SKIP_VERIFY                        true accepts any certificate
  TRANSITD_NAMESPACE                          namespace of the requests
  TRANSITD_FORMAT                             table or json
VAULT_… and BAO_… are read if a TRANSITD_… variable is not set. The server reads its own variables: see docs/configuration.md.`;

type Declare = (program: Command, runner: Runner) => void;

/** The top-level commands in the order of the help, each with a loader for its declaration, subcommands included. */
const declarations: Readonly<Record<string, () => Promise<Declare>>> = {
  server: async () => (await import('./commands/server.ts')).serverCommand,
  status: async () => (await import('./commands/status.ts')).statusCommand,
  login: async () => (await import('./commands/login.ts')).loginCommand,
  read: async () => (await import('./commands/generic.ts')).readCommand,
  write: async () => (await import('./commands/generic.ts')).writeCommand,
  list: async () => (await import('./commands/generic.ts')).listCommand,
  delete: async () => (await import('./commands/generic.ts')).deleteCommand,
  unwrap: async () => (await import('./commands/generic.ts')).unwrapCommand,
  key: async () => (await import('./commands/key/key.ts')).keyCommands,
  random: async () => (await import('./commands/tools.ts')).randomCommand,
  hash: async () => (await import('./commands/tools.ts')).hashCommand,
  token: async () => (await import('./commands/token.ts')).tokenCommands,
  policy: async () => (await import('./commands/policy.ts')).policyCommands,
  secrets: async () => (await import('./commands/mount.ts')).secretsCommands,
  auth: async () => (await import('./commands/mount.ts')).authCommands,
  audit: async () => (await import('./commands/audit.ts')).auditCommands,
  operator: async () => (await import('./commands/operator.ts')).operatorCommands,
  replication: async () => (await import('./commands/replication.ts')).replicationCommands,
  'path-help': async () => (await import('./commands/path-help.ts')).pathHelpCommand,
  monitor: async () => (await import('./commands/monitor.ts')).monitorCommand,
  debug: async () => (await import('./commands/debug.ts')).debugCommand,
  migrate: async () => (await import('./commands/migrate.ts')).migrateCommand,
  'migrate-storage': async () => (await import('./storage/migrate-storage.ts')).migrateStorageCommand,
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand,
  healthcheck: async () => (await import('./commands/healthcheck.ts')).healthcheckCommand,
  completion: async () => (await import('./commands/completion.ts')).completionCommand,
  version: async () => (await import('./commands/version.ts')).versionCommand,
};

/**
 * Returns the program. Loads only the requested command, because container engines run the health check every few seconds; loads all
 * commands if `requested` names none of them.
 * @param setExitCode - receives the exit code of the command
 */
export async function createProgram(setExitCode: (code: number) => void, work: LocalWork, requested?: string): Promise<Command> {
  const program = new Command('transitd')
    .description('A clustered, highly available transit cryptography service.')
    .version(`transitd ${version}`, '-v, --version', 'print the version')
    .helpCommand('help [command...]', 'show the help of a command')
    .addHelpText('after', environmentHelp);
  const runner = createRunner(setExitCode, work, () => createProgram(() => undefined, work));
  const only = requested !== undefined && Object.hasOwn(declarations, requested) ? declarations[requested] : undefined;
  const declared = await Promise.all((only === undefined ? Object.values(declarations) : [only]).map((load) => load()));
  for (const declare of declared) declare(program, runner);
  return program;
}

/** Returns a command and all its subcommands. */
export const treeOf = (command: Command): readonly Command[] => [command, ...command.commands.flatMap(treeOf)];

/** Returns the long options without a value of all commands, such as `--force`. */
export const flagsOf = (program: Command): ReadonlySet<string> =>
  new Set(
    treeOf(program).flatMap(({ options }) =>
      options.flatMap(({ long, required, optional }) => (long && !required && !optional ? [long] : [])),
    ),
  );
