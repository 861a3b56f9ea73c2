import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { DataDirectory } from '../../src/storage/data-directory.ts';

describe('a data directory', () => {
  let path: string;
  beforeEach(() => {
    path = mkdtempSync(join(tmpdir(), 'transitd-data-'));
  });
  afterEach(() => rmSync(path, { recursive: true }));

  it('names the error of the system when its lock cannot be opened', async () => {
    mkdirSync(join(path, 'lock/LOCK'), { recursive: true });
    const error = await DataDirectory.open(path).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).to.be.instanceOf(StartError);
    expect(String(error)).to.match(/data_dir: .* cannot be used: .*Is a directory/);
  });
});
