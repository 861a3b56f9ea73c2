import { expect } from 'chai';
import { createProgram, flagsOf } from '../../src/program.ts';
import { normalised, withoutValues } from '../../src/terminal/arguments.ts';
import { noLocalWork } from '../no-local-work.ts';

const flags = new Set(['--force', '--no-store']);

describe('arguments as other command lines write them', () => {
  for (const { given, means, because } of [
    { given: ['-key-shares=5'], means: ['--key-shares=5'], because: 'a long option may have one dash' },
    { given: ['-field', 'x'], means: ['--field', 'x'], because: 'its value may stand alone' },
    { given: ['-f', '-h'], means: ['-f', '-h'], because: 'one letter is an option of its own' },
    { given: ['--force'], means: ['--force'], because: 'two dashes stay two' },
    { given: ['-force=true', '-no-store=1'], means: ['--force', '--no-store'], because: 'a flag that is set is the flag' },
    { given: ['--force=false'], means: [], because: 'a flag that is not set is nothing' },
    { given: ['--force=maybe'], means: ['--force=maybe'], because: 'what is neither is left for the complaint' },
    { given: ['-', 'k=-', 'a=-b'], means: ['-', 'k=-', 'a=-b'], because: 'a dash alone is standard input' },
    { given: ['-5', '-=x'], means: ['-5', '-=x'], because: 'no option begins so' },
    { given: ['--', '-force=true'], means: ['--', '-force=true'], because: 'behind two dashes there are no options' },
    { given: ['-policy=a\nb'], means: ['--policy=a\nb'], because: 'a value may have several lines' },
  ])
    it(`${JSON.stringify(given)}: ${because}`, () => expect(normalised(given, flags)).to.deep.equal(means));

  it('stay as they are when they are ours', async () => {
    const ours = ['operator', 'init', '--key-shares', '5', '--format=json', '-f', 'a=b'];
    expect(normalised(ours, flagsOf(await createProgram(() => undefined, noLocalWork)))).to.deep.equal(ours);
  });

  it('finds the flags of every command', async () => {
    const found = flagsOf(await createProgram(() => undefined, noLocalWork));
    for (const flag of ['--force', '--reset', '--no-store', '--detailed', '--self']) expect(found.has(flag), flag).to.equal(true);
    for (const option of ['--field', '--key-shares', '--policy', '--format']) expect(found.has(option), option).to.equal(false);
  });
});

describe('complaints about arguments', () => {
  for (const { text, told } of [
    { text: "error: unknown option '--tokn=s.abc'", told: "error: unknown option '--tokn=…'" },
    { text: "error: unknown option '--x=a b'\n(Did you mean --y?)", told: "error: unknown option '--x=…'\n(Did you mean --y?)" },
    {
      text: "error: option '--dev-root-token-id <id>' argument 'my secret' is invalid. a token is …",
      told: "error: option '--dev-root-token-id <id>' has an argument that is not valid. a token is …",
    },
    { text: "error: unknown option '--fly'", told: "error: unknown option '--fly'" },
    { text: "error: unknown command 's.Abc1'", told: 'error: unknown command' },
    {
      text: "error: too many arguments for 'list'. Expected 0 arguments but got 1: s.abc.",
      told: "error: too many arguments for 'list'. Expected 0 arguments but got 1.",
    },
    { text: "error: unknown command 'fly'", told: "error: unknown command 'fly'" },
  ])
    it(`tell no value: ${JSON.stringify(text)}`, () => expect(withoutValues(text)).to.equal(told));
});
