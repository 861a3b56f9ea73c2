import { expect } from 'chai';
import { createProgram, treeOf } from '../src/program.ts';
import { commandReference } from '../src/reference.ts';
import { noLocalWork } from './no-local-work.ts';

describe('the reference of the command line', () => {
  it('has a section for each command', async () => {
    const program = await createProgram(() => undefined, noLocalWork);
    const leaves = treeOf(program).filter(({ commands }) => commands.length === 0);
    expect(commandReference(program).match(/^### transitd .*$/gm)).to.have.length(leaves.length);
  });
});
