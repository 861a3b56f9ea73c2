// The third-party packages that a node runs on: how many, why, and that none runs code when it is installed.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { packagesWith, productionPackages } from '../scripts/release/lock-file.ts';
import { noticeOf } from '../scripts/release/notices.ts';
import { thirdPartyOf } from '../scripts/release/workspace.ts';

const root = join(import.meta.dirname, '..');
const packages = readdirSync(join(root, 'packages')).sort();
const directOf = (name: string): string[] =>
  (['dependencies', 'optionalDependencies'] as const).flatMap((kind) => Object.keys(thirdPartyOf([name], kind)));

describe('production dependencies', () => {
  const page = readFileSync(join(root, 'docs/dependencies.md'), 'utf8');

  const usersOf = (name: string): string[] => packages.filter((one) => directOf(one).includes(name));
  const direct = [...new Set(packages.flatMap(directOf))].sort();

  it('are at most 215, as many as the page says, which names the optional ones', () => {
    const { length } = productionPackages();
    expect(length).to.be.at.most(215);
    expect(page).to.include(`A node runs ${length} third-party packages`);
    const optional = Object.keys(thirdPartyOf(packages, 'optionalDependencies'));
    expect(page).to.include(`Optional are ${optional.map((name) => `\`${name}\``).join(', ')}`);
  });

  it('are listed with the packages that use them and the number that comes with each, if they are direct', () => {
    const rows = [...page.matchAll(/^\| `(\S+)` \| ([^|]+) \| (\d+) \| \S/gm)].map(([, ...cells]) => cells);
    const expected = direct.map((name) => {
      const users = usersOf(name);
      return [name, users.join(', '), String(packagesWith(name, users[0] ?? '').length)];
    });
    expect(rows).to.deep.equal(expected);
  });

  it('are under a license that allows redistribution, whose text the release has', () => {
    const allowed = /^(?:MIT|ISC|0BSD|BlueOak-1\.0\.0|Apache-2\.0|BSD-[23]-Clause)$/;
    for (const one of productionPackages()) {
      // With `OR`, one of them is enough.
      const choices = (one.license ?? '')
        .replace(/[()]/g, '')
        .split(' OR ')
        .map((choice) => choice.split(' AND '));
      expect(
        choices.some((all) => all.every((license) => allowed.test(license))),
        `${one.path}: ${one.license}`,
      ).to.equal(true);
      expect(noticeOf(one)).to.include(`${one.name} ${one.version}`);
    }
  });

  it('for development are listed too, each with its reason', () => {
    const manifests = [root, ...packages.map((name) => join(root, 'packages', name))];
    const names = manifests.flatMap((folder) => {
      const { devDependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      return Object.keys(devDependencies);
    });
    const rows = [...page.matchAll(/^\| ((?:`[^`]+`(?:, )?)+) \| [^|]+ \|$/gm)].flatMap(([, cell = '']) => cell.split(', '));
    expect(rows.map((name) => name.slice(1, -1)).toSorted()).to.deep.equal(
      [...new Set(names)].filter((name) => !direct.includes(name) && !name.startsWith('@transitd/')).sort(),
    );
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
