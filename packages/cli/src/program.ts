import { Command } from 'commander';
import type { LocalWork } from './local-work.ts';
import { createRunner, type Runner } from './runner.ts';

type Declare = (program: Command, runner: Runner) => void;

/** The commands at the top, in the order in which the help shows them, and where each is declared with all below it. */
const declarations: Readonly<Record<string, () => Promise<Declare>>> = {
  server: async () => (await import('./server-command.ts')).serverCommand,
  status: async () => (await import('./status-command.ts')).statusCommand,
  login: async () => (await import('./login-command.ts')).loginCommand,
  read: async () => (await import('./generic-commands.ts')).readCommand,
  write: async () => (await import('./generic-commands.ts')).writeCommand,
  list: async () => (await import('./generic-commands.ts')).listCommand,
  delete: async () => (await import('./generic-commands.ts')).deleteCommand,
  unwrap: async () => (await import('./generic-commands.ts')).unwrapCommand,
  key: async () => (await import('./key-commands.ts')).keyCommands,
  token: async () => (await import('./token-commands.ts')).tokenCommands,
  policy: async () => (await import('./policy-commands.ts')).policyCommands,
  secrets: async () => (await import('./mount-commands.ts')).secretsCommands,
  auth: async () => (await import('./mount-commands.ts')).authCommands,
  audit: async () => (await import('./audit-commands.ts')).auditCommands,
  operator: async () => (await import('./operator-commands.ts')).operatorCommands,
  doctor: async () => (await import('./doctor-command.ts')).doctorCommand,
  healthcheck: async () => (await import('./healthcheck-command.ts')).healthcheckCommand,
  completion: async () => (await import('./completion-command.ts')).completionCommand,
  version: async () => (await import('./version-command.ts')).versionCommand,
};

/**
 * The commands, of which only the one that is asked for is loaded: a container engine's probe comes every few seconds. All of them
 * when it is none of them.
 * @param end - told the exit code of the command that was run
 */
export async function createProgram(end: (code: number) => void, work: LocalWork, asked?: string): Promise<Command> {
  const program = new Command('transitd').description('A clustered, highly available transit cryptography service.');
  const runner = createRunner(end, work);
  const one = asked !== undefined && Object.hasOwn(declarations, asked) ? declarations[asked] : undefined;
  const declared = await Promise.all((one === undefined ? Object.values(declarations) : [one]).map((load) => load()));
  for (const declare of declared) declare(program, runner);
  return program;
}

/** A command and all below it. */
export const treeOf = (command: Command): readonly Command[] => [command, ...command.commands.flatMap(treeOf)];

/** Long options that take no value, of all commands: `--force` and the like. */
export const flagsOf = (program: Command): ReadonlySet<string> =>
  new Set(
    treeOf(program).flatMap(({ options }) =>
      options.flatMap(({ long, required, optional }) => (long && !required && !optional ? [long] : [])),
    ),
  );
