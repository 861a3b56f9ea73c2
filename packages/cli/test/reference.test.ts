import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { createProgram, treeOf } from '../src/program.ts';
import { commandReference } from '../src/reference.ts';
import { noLocalWork } from './no-local-work.ts';

describe('the reference of the command line', () => {
  it('is what the generator writes; otherwise run `npm run docs:commands`', async () => {
    const program = await createProgram(() => undefined, noLocalWork);
    const written = readFileSync(new URL('../../../docs/command-reference.md', import.meta.url), 'utf8');
    expect(written).to.equal(commandReference(program));
    const leaves = treeOf(program).filter(({ commands }) => commands.length === 0);
    expect(written.match(/^### transitd .*$/gm)).to.have.length(leaves.length);
  });
});
