import { StartError } from '@transitd/process';
import { StorageDamaged, StorageFailed } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { Output } from '../../src/terminal/output.ts';
import { storageFault } from '../../src/terminal/storage-fault.ts';

describe('a fault of the storage', () => {
  const notices: string[] = [];
  const output = { notice: (text: string) => void notices.push(text) } as unknown as Output;
  beforeEach(() => {
    notices.length = 0;
  });

  for (const error of [new StorageDamaged('raft.log ends early.'), new StorageFailed('raft.log ends early.')])
    it(`is reported with a hint, and ends the command with 74: ${error.name}`, () => {
      expect(storageFault(error, output, ' Use --without-log.')).to.equal(74);
      expect(notices).to.deep.equal(['transitd: raft.log ends early. Use --without-log.']);
    });

  for (const error of [new StartError('the file exists'), new TypeError('a bug'), 'a text'])
    it(`is no other error: ${error} is thrown`, () => {
      expect(() => storageFault(error, output)).to.throw(String(error instanceof Error ? error.message : error));
      expect(notices).to.deep.equal([]);
    });
});
