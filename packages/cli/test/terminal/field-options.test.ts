import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { Command } from 'commander';
import { addFields, bool, fieldsIn, flag, oneOf, text, texts, whole } from '../../src/terminal/field-options.ts';

const declared = {
  key_size: whole('bytes', 'size'),
  auto_rotate_period: text('duration', 'interval'),
  exportable: flag('allow export'),
  deletion_allowed: bool('whether it can be deleted'),
  policy: texts('name', 'policy; repeatable'),
  type: oneOf('type', 'type', ['service', 'batch']),
};

function fieldsOf(...argv: readonly string[]): object {
  const command = addFields(new Command('create').option('--mount <path>', 'mount', 'transit'), declared);
  return fieldsIn(declared, command.parse(argv, { from: 'user' }).opts());
}

describe('options that set fields of a request', () => {
  it('have the names of the fields', () => {
    const flags = addFields(new Command('create'), declared).options.map((option) => option.flags);
    expect(flags.slice(0, 4)).to.deep.equal([
      '--key-size <bytes>',
      '--auto-rotate-period <duration>',
      '--exportable',
      '--deletion-allowed <bool>',
    ]);
  });

  it('set just the fields that are given', () => {
    expect(fieldsOf()).to.deep.equal({});
    expect(fieldsOf('--key-size', '32', '--exportable', '--deletion-allowed', 'false')).to.deep.equal({
      key_size: 32,
      exportable: true,
      deletion_allowed: false,
    });
    expect(fieldsOf('--auto-rotate-period', '', '--policy', 'a', '--policy', 'b', '--type', 'batch')).to.deep.equal({
      auto_rotate_period: '',
      policy: ['a', 'b'],
      type: 'batch',
    });
  });

  it('refuse a value that is not one of the choices', () => {
    expect(() => fieldsOf('--deletion-allowed', 'yes')).to.throw(StartError, '--deletion-allowed must be true or false');
    expect(() => fieldsOf('--type', 'root')).to.throw(StartError, '--type must be service or batch');
  });
});
