// @live
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { faults } from './faults.ts';

const root = join(import.meta.dirname, '../..');

/** Copies the sources and tests of all packages, with the libraries of this checkout. */
function copyOfPackages(): string {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-planted-'));
  for (const name of readdirSync(join(root, 'packages')))
    for (const part of ['package.json', 'src', 'test'])
      cpSync(join(root, 'packages', name, part), join(folder, 'packages', name, part), { recursive: true });
  cpSync(join(root, 'test'), join(folder, 'test'), { recursive: true });
  for (const part of ['package.json', 'scripts', 'docs']) cpSync(join(root, part), join(folder, part), { recursive: true });
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, '@transitd'), { recursive: true });
  for (const name of readdirSync(join(root, 'node_modules')))
    if (name !== '@transitd') symlinkSync(join(root, 'node_modules', name), join(modules, name));
  for (const name of readdirSync(join(root, 'packages')))
    symlinkSync(join(folder, 'packages', name), join(modules, '@transitd', name));
  return folder;
}

describe('a planted fault is found by a test:', function () {
  this.timeout(240_000);
  let folder = '';
  before(() => {
    folder = copyOfPackages();
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const passes = (tests: readonly string[]): boolean => {
    const specs = tests.flatMap((test) => ['--spec', test]);
    const args = ['node_modules/mocha/bin/mocha.js', '--no-config', '--timeout', '60000', '--exit', '--bail', ...specs];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
    if (!/\d+ (?:passing|failing)/.test(stdout)) throw new Error(`the tests did not run: ${stdout}${stderr}`);
    return status === 0;
  };

  for (const { name, file, find, replace, tests } of faults)
    it(name, () => {
      const path = join(folder, file);
      const text = readFileSync(path, 'utf8');
      const parts = text.split(find);
      expect(parts, 'the place of the fault').to.have.length(2);
      writeFileSync(path, parts.join(replace));
      try {
        expect(passes(tests)).to.equal(false);
      } finally {
        writeFileSync(path, text);
      }
    });

  it('whereas all of these tests pass without one', () => {
    expect(passes([...new Set(faults.flatMap(({ tests }) => tests))])).to.equal(true);
  });
});
