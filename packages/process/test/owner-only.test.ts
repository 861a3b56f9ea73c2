import { mkdtempSync, rmdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { StartError } from '../src/exit.ts';
import { requireOwner } from '../src/owner-only.ts';

describe('requireOwner', () => {
  let folder = '';
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-own-'));
  });
  after(() => rmdirSync(folder));

  it('accepts the owner of a folder', () => {
    requireOwner(folder);
  });

  it('refuses every other user, root included, since the owner could not read the files created there', () => {
    const { uid } = statSync(folder);
    expect(() => requireOwner(folder, uid + 1)).to.throw(StartError, `is owned by user id ${uid}`);
  });
});
