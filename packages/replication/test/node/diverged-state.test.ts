import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { DivergedState } from '../../src/node/diverged-state.ts';

describe('the newest of several kept states', () => {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-diverged-'));
  after(() => rmSync(folder, { recursive: true }));

  it('is the one of the latest epoch and position, by their numbers', () => {
    mkdirSync(join(folder, 'diverged'));
    const newest = (...names: readonly string[]) => {
      for (const name of names) writeFileSync(join(folder, 'diverged', name), '');
      return new DivergedState({ directory: folder } as ConstructorParameters<typeof DivergedState>[0]).newest;
    };
    expect(newest()).to.equal(undefined);
    const [ninth, tenth] = ['epoch-9-0a0a0a0a-index-700.snap', 'epoch-10-0b0b0b0b-index-800.snap'];
    expect(newest(ninth, tenth, 'epoch-10-0b0b0b0b-index-800.json')).to.equal(tenth);
    expect(newest('epoch-10-0b0b0b0b-index-1000.snap')).to.equal('epoch-10-0b0b0b0b-index-1000.snap');
  });
});
