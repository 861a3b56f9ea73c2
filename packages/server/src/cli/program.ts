import { Command } from 'commander';
import { version } from '../version.ts';
import { auditCommands } from './audit-commands.ts';
import { completionCommand } from './completion-command.ts';
import { doctorCommand } from './doctor-command.ts';
import { genericCommands } from './generic-commands.ts';
import { healthcheckCommand } from './healthcheck-command.ts';
import { keyCommands } from './key-commands.ts';
import { loginCommand } from './login-command.ts';
import { authCommands, secretsCommands } from './mount-commands.ts';
import { operatorCommands } from './operator-commands.ts';
import { policyCommands } from './policy-commands.ts';
import { createRunner } from './runner.ts';
import { serverCommand } from './server-command.ts';
import { statusCommand } from './status-command.ts';
import { tokenCommands } from './token-commands.ts';

/** Every command. @param end - told the exit code of the one that was run */
export function createProgram(end: (code: number) => void): Command {
  const program = new Command('transitd').description('A clustered, highly available transit cryptography service.');
  const runner = createRunner(end);
  serverCommand(program, runner);
  statusCommand(program, runner);
  loginCommand(program, runner);
  genericCommands(program, runner);
  keyCommands(program, runner);
  tokenCommands(program, runner);
  policyCommands(program, runner);
  secretsCommands(program, runner);
  authCommands(program, runner);
  auditCommands(program, runner);
  operatorCommands(program, runner);
  doctorCommand(program, runner);
  healthcheckCommand(program, runner);
  completionCommand(program, runner);
  program
    .command('version')
    .description('print the version')
    .action(() => console.log(`transitd ${version}`));
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
