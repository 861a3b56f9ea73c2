import { mkdtempSync, rmdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { StartError } from '../src/exit.ts';
import { requireOwn } from '../src/owner-only.ts';

describe('requireOwn', () => {
  let folder = '';
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-own-'));
  });
  after(() => rmdirSync(folder));

  it('lets the owner of a folder go on', () => {
    requireOwn(folder);
  });

  it('refuses everybody else, root included: what is made there would be closed to the owner', () => {
    const { uid } = statSync(folder);
    expect(() => requireOwn(folder, uid + 1)).to.throw(StartError, `belongs to the user with the id ${uid}`);
  });
});
