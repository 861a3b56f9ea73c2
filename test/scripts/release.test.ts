// The conditions of a release that is not a dry run. The artifacts have tests of their own (test/release).
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { readManifest, root, version } from '../../scripts/release/project.ts';

describe('npm run release', () => {
  it('refuses a release without a key before it changes anything', () => {
    const { status, stderr, stdout } = spawnSync(process.execPath, [join(root, 'scripts/release.ts')], { encoding: 'utf8' });
    expect({ status, stdout }).to.deep.equal({ status: 1, stdout: '' });
    expect(stderr).to.match(/^release: --key FILE is missing: the key that signs the release$/m);
  });

  it('refuses a key that does not exist', () => {
    const args = [join(root, 'scripts/release.ts'), '--dry-run', '--key', '/does/not/exist.pem'];
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect(status).to.equal(1);
    expect(stderr).to.include('/does/not/exist.pem');
  });

  it('releases all packages in one version', () => {
    const versions = readdirSync(join(root, 'packages')).map((name) => readManifest(join(root, 'packages', name)).version);
    expect(new Set(versions)).to.deep.equal(new Set([version]));
  });
});
