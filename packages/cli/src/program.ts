import { Command } from 'commander';
import type { LocalWork } from './runner/local-work.ts';
import { createRunner, type Runner } from './runner/runner.ts';

type Declare = (program: Command, runner: Runner) => void;

/** The commands at the top, in the order in which the help shows them, and where each is declared with all below it. */
const declarations: Readonly<Record<string, () => Promise<Declare>>> = {
  server: async () => (await import('./commands/server.ts')).serverCommand,
  status: async () => (await import('./commands/status.ts')).statusCommand,
  login: async () => (await import('./commands/login.ts')).loginCommand,
  read: async () => (await import('./commands/generic.ts')).readCommand,
  write: async () => (await import('./commands/generic.ts')).writeCommand,
  list: async () => (await import('./commands/generic.ts')).listCommand,
  delete: async () => (await import('./commands/generic.ts')).deleteCommand,
  unwrap: async () => (await import('./commands/generic.ts')).unwrapCommand,
  key: async () => (await import('./commands/key.ts')).keyCommands,
  token: async () => (await import('./commands/token.ts')).tokenCommands,
  policy: async () => (await import('./commands/policy.ts')).policyCommands,
  secrets: async () => (await import('./commands/mount.ts')).secretsCommands,
  auth: async () => (await import('./commands/mount.ts')).authCommands,
  audit: async () => (await import('./commands/audit.ts')).auditCommands,
  operator: async () => (await import('./commands/operator.ts')).operatorCommands,
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand,
  healthcheck: async () => (await import('./commands/healthcheck.ts')).healthcheckCommand,
  completion: async () => (await import('./commands/completion.ts')).completionCommand,
  version: async () => (await import('./commands/version.ts')).versionCommand,
};

/**
 * The commands, of which only the one that is asked for is loaded: a container engine's probe comes every few seconds. All of them
 * when it is none of them.
 * @param end - told the exit code of the command that was run
 */
export async function createProgram(end: (code: number) => void, work: LocalWork, asked?: string): Promise<Command> {
  const program = new Command('transitd').description('A clustered, highly available transit cryptography service.');
  const runner = createRunner(end, work, () => createProgram(() => undefined, work));
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
