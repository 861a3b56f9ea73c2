import { join } from 'node:path';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';

/** Reads the options of a command. @throws CommanderError that names the wrong option; for `--help` one with the exit code 0 */
export function readOptions<Options extends object>(name: string, options: readonly Option[], args: readonly string[]): Options {
  const command = new Command(`node ${name}`).helpOption('--help').allowExcessArguments(false);
  command.exitOverride().configureOutput({ writeErr: () => undefined }); // runCommand says what is wrong
  for (const option of options) command.addOption(option);
  return command.parse(args, { from: 'user' }).opts<Options>();
}

/** Runs a command of the benchmarks. A failure is one line and exit code 1; a signal ends it. */
export async function runCommand(name: string, main: (args: readonly string[]) => Promise<void>): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  try {
    await main(process.argv.slice(2));
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return; // the help was printed
    console.error(`${name}: ${error instanceof Error ? error.message.replace(/^error: /, '') : error}`);
    process.exitCode = 1;
  }
}

/** An option whose value is a whole number from 1. */
export const countOption = (flags: string, description: string): Option =>
  new Option(flags, description).argParser((text) => {
    const value = positive(text);
    if (!Number.isSafeInteger(value)) throw new InvalidArgumentError('It must be a positive integer.');
    return value;
  });

/** An option whose value is a number of seconds above 0, which may have a fraction. */
export const secondsOption = (flags: string, description: string): Option => new Option(flags, description).argParser(positive);

/** An option whose value is a list with commas. */
export const listOption = (flags: string, description: string): Option =>
  new Option(flags, description).argParser((text) => text.split(',').filter((item) => item !== ''));

/** The folder of a report. */
export const outOption = (): Option =>
  new Option('--out <folder>', 'folder of the report').default(join(import.meta.dirname, 'results'), 'bench/results');

function positive(text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) throw new InvalidArgumentError('It must be a positive number.');
  return value;
}
