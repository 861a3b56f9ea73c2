import type { Fields } from '@transitd/http';
import { expect } from 'chai';
import { Command } from 'commander';
import { createProgram, treeOf } from '../../../cli/src/program.ts';
import { fieldOption, mountOption } from '../../../cli/src/terminal/options.ts';
import { noLocalWork } from '../../../cli/test/no-local-work.ts';
import type { TransitCalls } from '../../../client/src/transit.ts';
import { dataOperations } from '../../src/transit/data.ts';
import type { DataSchema } from '../../src/transit/data-fields.ts';

type Word = keyof typeof dataOperations;
type Values<W extends Word> = Fields<(typeof dataOperations)[W]['takes']>['values'];
type Options<W extends Word> = NonNullable<
  Parameters<TransitCalls[W]>[W extends 'verify' | 'datakeys' ? 3 : W extends 'hash' | 'random' ? 1 : 2]
>;

/** Options of the client that the operation does not declare, or declares with another type. */
type Unlike<W extends Word> = {
  [Name in keyof Options<W>]-?: Name extends keyof Values<W>
    ? [NonNullable<Options<W>[Name]>] extends [NonNullable<Values<W>[Name]>]
      ? never
      : Name
    : Name;
}[keyof Options<W>];

/** Fields that are arguments of the client's methods, parts of the path, aliases, or not supported. */
type Elsewhere<W extends Word> =
  | ('name' | 'reference' | 'plaintext' | 'ciphertext' | 'input' | 'urlalgorithm' | 'url_mac_length' | 'urlbytes' | 'bytes')
  | (W extends 'rewrap' ? 'hash_algorithm' : never)
  | (W extends 'sign' ? 'algorithm' : never)
  | (W extends 'verify' ? 'algorithm' | 'signature' | 'hmac' | 'cmac' | 'mac_length' : never)
  | (W extends 'datakey' | 'datakeys' ? 'type' : never)
  | (W extends 'datakeys' ? 'count' : never);

/** Fields that the client cannot send. */
type Unsent<W extends Word> = Exclude<keyof Values<W>, keyof Options<W> | Elsewhere<W>>;

// Does not compile if the client's types differ from the declared fields; the error names the field.
const differences: { readonly [W in Word]: [Unlike<W>, Unsent<W>] extends [never, never] ? [] : [Unlike<W> | Unsent<W>] } = {
  encrypt: [],
  decrypt: [],
  rewrap: [],
  datakey: [],
  datakeys: [],
  hmac: [],
  cmac: [],
  sign: [],
  verify: [],
  hash: [],
  random: [],
};

/** Options of the command line that are no fields of the operation. */
const ofProgram = new Set(mountOption(fieldOption(new Command())).options.map((option) => option.attributeName()));
/** Words for 0. */
const zero: Readonly<Record<string, string>> = { key_version: 'latest', mac_length: 'all 16' };
const ofFiles = ['file', 'out', 'resume'];

describe('the fields of an operation on data', () => {
  for (const word of Object.keys(differences) as Word[])
    it(`are the options of its command, with their types, values and defaults: ${word}`, async () => {
      const takes: DataSchema = dataOperations[word].takes;
      const isTool = word === 'hash' || word === 'random';
      const program = await createProgram(() => undefined, noLocalWork);
      const command = treeOf(program).find(
        (each) => each.name() === word && (each.parent?.name() === 'key' || (isTool && each.parent === program)),
      );
      const options = (command ?? expect.fail(`no command ${word}`)).options.filter(
        (option) =>
          !option.hidden &&
          !ofProgram.has(option.attributeName()) &&
          !(word === 'rewrap' && ofFiles.includes(option.attributeName())),
      );
      for (const option of options) {
        const name = option.name() === 'encoding' ? 'format' : option.name().replaceAll('-', '_'); // `--format` is that of the output
        const { kind, default: absent, oneOf = [] } = takes[name] ?? expect.fail(`${word} has no field ${name}`);
        expect(option.isBoolean(), name).to.equal(kind === 'bool');
        expect(option.parseArg !== undefined && option.argChoices === undefined, name).to.equal(kind === 'int');
        if (option.argChoices !== undefined) expect(oneOf, name).to.have.members(option.argChoices);
        const said = /\(default: (.*)\)/.exec(option.description)?.[1];
        if (said !== undefined) expect(absent === 0 ? zero[name] : String(absent), name).to.equal(said);
        const isListed = option.argChoices === undefined && oneOf.length <= 3;
        for (const value of isListed ? oneOf : []) expect(option.description, name).to.include(value);
      }
    });
});
