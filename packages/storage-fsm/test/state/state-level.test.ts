import { stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeFilesPrivate } from '../../src/state/state-level.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';

describe('makeFilesPrivate', () => {
  it('skips files that LevelDB removes meanwhile', () =>
    inTemporaryDirectory(async (directory) => {
      await writeFile(join(directory, 'open'), '', { mode: 0o644 });
      // A file that is listed, but missing when it is opened.
      await symlink(join(directory, 'gone'), join(directory, '000008.ldb'));
      await makeFilesPrivate(directory);
      expect((await stat(join(directory, 'open'))).mode & 0o777).to.equal(0o600);
    }));
});
