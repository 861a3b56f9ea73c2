import { expect } from 'chai';
import { createProgram, flagsOf } from '../../src/program.ts';
import { helpAsOption, normalizeArguments, redactTokens, redactValues } from '../../src/terminal/arguments.ts';
import { noLocalWork } from '../no-local-work.ts';

const flags = new Set(['--force', '--no-store']);

describe('normalizeArguments', () => {
  for (const { given, expected, because } of [
    { given: ['-key-shares=5'], expected: ['--key-shares=5'], because: 'a long option may have one dash' },
    { given: ['-field', 'x'], expected: ['--field', 'x'], because: 'its value may be the next argument' },
    { given: ['-f', '-h'], expected: ['-f', '-h'], because: 'one letter is a short option' },
    { given: ['--force'], expected: ['--force'], because: 'two dashes are kept' },
    { given: ['-force=true', '-no-store=1'], expected: ['--force', '--no-store'], because: 'a true value sets the flag' },
    { given: ['--force=false'], expected: [], because: 'a false value drops the flag' },
    { given: ['--force=maybe'], expected: ['--force=maybe'], because: 'any other value is left for commander to reject' },
    { given: ['-', 'k=-', 'a=-b'], expected: ['-', 'k=-', 'a=-b'], because: 'a dash alone means standard input' },
    { given: ['-5', '-=x'], expected: ['-5', '-=x'], because: 'an option name starts with a letter' },
    { given: ['--', '-force=true'], expected: ['--', '-force=true'], because: 'there are no options after --' },
    { given: ['-policy=a\nb'], expected: ['--policy=a\nb'], because: 'a value may contain newlines' },
  ])
    it(`${JSON.stringify(given)}: ${because}`, () => expect(normalizeArguments(given, flags)).to.deep.equal(expected));

  it('leaves arguments in our own syntax unchanged', async () => {
    const args = ['operator', 'init', '--key-shares', '5', '--format=json', '-f', 'a=b'];
    expect(normalizeArguments(args, flagsOf(await createProgram(() => undefined, noLocalWork)))).to.deep.equal(args);
  });

  it('knows the flags of every command', async () => {
    const found = flagsOf(await createProgram(() => undefined, noLocalWork));
    for (const flag of ['--force', '--reset', '--no-store', '--detailed', '--self']) expect(found.has(flag), flag).to.equal(true);
    for (const option of ['--field', '--key-shares', '--policy', '--format']) expect(found.has(option), option).to.equal(false);
  });
});

const program = await createProgram(() => undefined, noLocalWork);

describe('helpAsOption', () => {
  for (const [given, expected] of [
    ['help', '--help'],
    ['help key', 'key --help'],
    ['help key encrypt', 'key encrypt --help'],
    ['key help encrypt', 'key encrypt --help'],
    ['help operator raft snapshot save', 'operator raft snapshot save --help'],
    ['operator help raft', 'operator raft --help'],
    ['help fly', 'fly'],
    ['help key fly', 'key fly'],
    ['help version x', 'version x --help'],
    ['key encrypt help', 'key encrypt help'],
    ['key encrypt orders help', 'key encrypt orders help'],
    ['key encrypt --help', 'key encrypt --help'],
    ['', ''],
  ] as const)
    it(`makes "${expected}" of "${given}"`, () => expect(helpAsOption(given.split(' '), program).join(' ')).to.equal(expected));
});

describe('redactTokens', () => {
  for (const [text, expected] of [
    ['GET auth/token/lookup/s.AbCdEfGhIjKlMnOpQrStUvWx', 'GET auth/token/lookup/…'],
    ['GET hvs.CAESIAbCdEfGhIjKlMnOpQrStUvWx/x', 'GET …/x'],
    ['GET transit/keys/s.orders', 'GET transit/keys/s.orders'],
    ['POST transit/encrypt/orders', 'POST transit/encrypt/orders'],
  ] as const)
    it(`of ${text}`, () => expect(redactTokens(text)).to.equal(expected));
});

describe('redactValues', () => {
  for (const { text, expected } of [
    { text: "error: unknown option '--tokn=s.abc'", expected: "error: unknown option '--tokn=…'" },
    {
      text: "error: unknown option '--x=a b'\n(Did you mean --y?)",
      expected: "error: unknown option '--x=…'\n(Did you mean --y?)",
    },
    {
      text: "error: option '--dev-root-token-id <id>' argument 'my secret' is invalid. a token is …",
      expected: "error: option '--dev-root-token-id <id>' has an invalid argument. a token is …",
    },
    { text: "error: unknown option '--fly'", expected: "error: unknown option '--fly'" },
    { text: "error: unknown command 's.Abc1'", expected: 'error: unknown command' },
    {
      text: "error: too many arguments for 'list'. Expected 0 arguments but got 1: s.abc.",
      expected: "error: too many arguments for 'list'. Expected 0 arguments but got 1.",
    },
    { text: "error: unknown command 'fly'", expected: "error: unknown command 'fly'" },
  ])
    it(`redacts values in ${JSON.stringify(text)}`, () => expect(redactValues(text)).to.equal(expected));
});
