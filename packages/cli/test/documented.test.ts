import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Command } from 'commander';
import { createProgram, flagsOf, treeOf } from '../src/program.ts';
import { clientVariables } from '../src/session/environment.ts';
import { normalizeArguments } from '../src/terminal/arguments.ts';
import { noLocalWork } from './no-local-work.ts';

const page = readFileSync(join(import.meta.dirname, '../../../docs/command-line.md'), 'utf8');
const program = await createProgram(() => undefined, noLocalWork);
const flags = flagsOf(program);

/** Words of the commands in the examples, without pipes, redirections and comments. */
const examples = [...page.matchAll(/^```sh\n(.*?)^```$/gms)]
  .flatMap(([, block = '']) => block.split('\n'))
  .flatMap((line) => [...line.matchAll(/(?:^|\||<\()\s*transitd ([^#|<>)]*)/g)].map(([, words = '']) => wordsOf(words)));

function wordsOf(text: string): readonly string[] {
  return [...text.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

/** Finds the command that the words name, and returns it with the remaining words. */
function commandIn(words: readonly string[]): { readonly command: Command; readonly rest: readonly string[] } {
  let command = program;
  for (const [at, word] of words.entries()) {
    const next = command.commands.find((one) => one.name() === word);
    if (next === undefined) return { command, rest: words.slice(at) };
    command = next;
  }
  return { command, rest: [] };
}

const pathOf = (command: Command): string =>
  command.parent === null ? '' : `${pathOf(command.parent)} ${command.name()}`.trim();

describe('docs/command-line.md', () => {
  it('has an example of every command', () => {
    const documented = new Set(examples.map((words) => pathOf(commandIn(words).command)));
    const leaves = treeOf(program).filter(({ commands }) => commands.length === 0);
    expect(leaves.map(pathOf).filter((path) => !documented.has(path))).to.deep.equal([]);
  });

  for (const words of examples)
    it(`has a valid example: transitd ${words.join(' ')}`, () => {
      const { command, rest } = commandIn(words);
      expect(command.commands, 'a command, not a group').to.have.length(0);
      const given = normalizeArguments(rest, flags);
      const names = given.filter((word) => word.startsWith('-') && word !== '-').map((word) => word.split('=')[0]);
      const known = command.options.flatMap(({ long, short }) => [long, short]);
      expect(names.filter((name) => !known.includes(name))).to.deep.equal([]);
      const valued = command.options.filter(({ required }) => required).map(({ long }) => long);
      const positional = given.filter((word, at) => (!word.startsWith('-') || word === '-') && !valued.includes(given[at - 1]));
      const { registeredArguments: declared } = command;
      expect(positional.length).to.be.at.least(declared.filter(({ required }) => required).length);
      if (!declared.some(({ variadic }) => variadic)) expect(positional.length).to.be.at.most(declared.length);
    });

  it('names every variable of the environment', () => {
    for (const name of clientVariables) expect(page).to.include(`TRANSITD_${name}`).and.include(`VAULT_${name}`);
  });
});
