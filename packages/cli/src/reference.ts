import type { Command, Option } from 'commander';
import { treeOf } from './program.ts';

/** Returns docs/command-reference.md: every command with its arguments and options, as `--help` shows them. */
export function commandReference(program: Command): string {
  const leaves = treeOf(program).filter(({ commands, parent }) => commands.length === 0 && parent !== null);
  const shared = sharedOptions(leaves);
  return [
    '# Reference of the command line',
    'Every command, generated from the program. [The command line](command-line.md) explains them, with examples.',
    '## Options of most commands',
    optionTable(shared),
    '## Commands',
    ...leaves.map((leaf) => section(leaf, shared)),
  ]
    .join('\n\n')
    .concat('\n');
}

/** Returns the options that more than half of the commands have. */
function sharedOptions(leaves: readonly Command[]): readonly Option[] {
  const flags = new Map<string, { readonly option: Option; count: number }>();
  for (const option of leaves.flatMap(({ options }) => options)) {
    const known = flags.get(identity(option)) ?? { option, count: 0 };
    known.count++;
    flags.set(identity(option), known);
  }
  return [...flags.values()].filter(({ count }) => count > leaves.length / 2).map(({ option }) => option);
}

const identity = ({ flags, description }: Option): string => `${flags}\n${description}`;

function section(command: Command, shared: readonly Option[]): string {
  const common = new Set(shared.map(identity));
  const own = command.options.filter((option) => !common.has(identity(option)));
  const described = command.registeredArguments.map((argument) => [argument.name(), argument.description] as const);
  const rows = described.filter(([, text]) => text !== '').map(([name, text]) => `| \`<${name}>\` | ${cell(text)} |`);
  const parts = [`### ${pathOf(command)}`, sentence(command.description())];
  if (rows.length > 0) parts.push(['| argument | meaning |', '|---|---|', ...rows].join('\n'));
  if (own.length > 0) parts.push(optionTable(own));
  return parts.join('\n\n');
}

const optionTable = (options: readonly Option[]): string =>
  [
    '| option | meaning |',
    '|---|---|',
    ...options.map(({ flags, description }) => `| \`${code(flags)}\` | ${cell(description)} |`),
  ].join('\n');

const pathOf = (command: Command): string =>
  command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;

/** Escapes characters that would end a cell, or begin an element of HTML. */
const cell = (text: string): string => code(text).replaceAll('<', '&lt;');
/** Escapes characters that would end a cell within code. */
const code = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const sentence = (text: string): string => cell(`${text.charAt(0).toUpperCase()}${text.slice(1)}.`);
