// The third-party packages that a node runs on: how many, why, and that none runs code when it is installed.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { productionPackages } from '../scripts/release/lock-file.ts';
import { thirdPartyOf } from '../scripts/release/workspace.ts';

const root = join(import.meta.dirname, '..');
const packages = readdirSync(join(root, 'packages')).sort();
const directOf = (name: string): string[] =>
  (['dependencies', 'optionalDependencies'] as const).flatMap((kind) => Object.keys(thirdPartyOf([name], kind)));

describe('production dependencies', () => {
  const page = readFileSync(join(root, 'docs/dependencies.md'), 'utf8');

  it('are at most 105, as many as the page says', () => {
    const { length } = productionPackages();
    expect(length).to.be.at.most(105);
    expect(page).to.include(`A node runs ${length} third-party packages`);
  });

  it('are listed with the packages that use them, if they are direct', () => {
    const rows = [...page.matchAll(/^\| `(\S+)` \| ([^|]+) \| \S/gm)].map(([, name = '', users = '']) => [
      name,
      users.split(', '),
    ]);
    const direct = [...new Set(packages.flatMap(directOf))].sort();
    const used = direct.map((name) => [name, packages.filter((one) => directOf(one).includes(name))]);
    expect(rows).to.deep.equal(used);
  });

  it('run no script, except those that the allow-list names', () => {
    expect(readFileSync(join(root, '.npmrc'), 'utf8')).to.match(/^ignore-scripts=true$/m);
    const { packages: locked }: { packages: Record<string, { hasInstallScript?: true }> } = JSON.parse(
      readFileSync(join(root, 'package-lock.json'), 'utf8'),
    );
    const scripted = Object.keys(locked).filter((path) => locked[path]?.hasInstallScript === true);
    const { allowScripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect(Object.keys(allowScripts)).to.include.members(scripted.map((path) => path.replace('node_modules/', '')));
    expect(Object.keys(allowScripts).filter((name) => allowScripts[name] === true)).to.deep.equal(['node']);
  });

  it('are installed first by every script of this repository, so that each runs in a new clone', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
    const others = Object.entries(scripts).filter(
      ([, command]) => !command.startsWith('node scripts/install.mjs && hash -r && '),
    );
    expect(others).to.deep.equal([]);
  });

  it('do not depend on scripts of this repository that npm would skip', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const names = Object.keys(scripts);
    expect(names.filter((name) => names.some((other) => name === `pre${other}` || name === `post${other}`))).to.deep.equal([]);
  });
});
