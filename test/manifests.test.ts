// The manifests name what the sources import, no less and no more.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { importsOf } from '../scripts/check/module.ts';

type Kind = 'dependencies' | 'optionalDependencies' | 'devDependencies';
interface Manifest extends Partial<Record<Kind, Readonly<Record<string, string>>>> {
  readonly name: string;
  readonly bin?: string | Readonly<Record<string, string>>;
  readonly scripts?: Readonly<Record<string, string>>;
}

const root = join(import.meta.dirname, '..');
const packages = readdirSync(join(root, 'packages')).sort();
const manifestIn = (folder: string): Manifest => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
const namesIn = (manifest: Manifest, ...kinds: readonly Kind[]): string[] =>
  kinds.flatMap((kind) => Object.keys(manifest[kind] ?? {}));

/** Returns the modules below a folder as path → text. Built files import nothing. */
function modulesIn(folder: string): ReadonlyMap<string, string> {
  const files = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter(
      (file) => /\.(?:ts|tsx|mjs)$/.test(file) && !/(?:^|\/)(?:node_modules|dist)\//.test(file) && !/\bbuilt\.ts$/.test(file),
    )
    .map((file) => join(root, folder, file));
  return new Map(files.map((file) => [file, readFileSync(file, 'utf8')]));
}

/** How a module loads at once what it does not always need. A method may have this name too. */
const required = /(?:createRequire\([^)]*\)|(?<!\.)\brequire)\('([^'.][^']*)'\)/g;

/** Returns the names of the packages that the modules import in any form, sorted, without those of Node. */
function importedIn(modules: ReadonlyMap<string, string>): string[] {
  const specifiers = [...modules].flatMap(([path, text]) => [
    ...importsOf({ path, text }).map(({ specifier }) => specifier),
    ...[...text.matchAll(required)].map(([, specifier = '']) => specifier),
  ]);
  const names = specifiers
    .filter((specifier) => !/^(?:[./#]|node:|file:|\w:)/.test(specifier))
    .map((specifier) => specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/'));
  return [...new Set(names)].sort();
}

describe('the manifest', () => {
  const own = manifestIn('.');
  const development = namesIn(own, 'devDependencies');

  for (const name of packages) {
    const manifest = manifestIn(`packages/${name}`);
    it(`of ${name} names exactly what its sources import, and its tests import only that and what the repository names`, () => {
      const imported = importedIn(modulesIn(`packages/${name}/src`)).filter((one) => one !== manifest.name);
      const declared = namesIn(manifest, 'dependencies', 'optionalDependencies');
      expect(imported).to.deep.equal(declared.toSorted());
      const known = new Set([...declared, ...namesIn(manifest, 'devDependencies'), ...development, manifest.name]);
      const tested = importedIn(modulesIn(`packages/${name}/test`));
      expect(tested.filter((one) => !known.has(one) && !one.startsWith('@transitd/'))).to.deep.equal([]);
    });
  }

  const folders = ['test', 'scripts', 'bench', ...packages.map((name) => `packages/${name}/test`)];
  const modules = new Map(folders.flatMap((folder) => [...modulesIn(folder)]));
  const imported = importedIn(modules);

  it('of the repository names what its tests, scripts and benchmarks import', () => {
    const shared = importedIn(new Map(['test', 'scripts', 'bench'].flatMap((folder) => [...modulesIn(folder)])));
    expect(shared.filter((one) => !development.includes(one) && !one.startsWith('@transitd/'))).to.deep.equal([]);
  });

  it('of the repository names nothing else: each package is imported there, has the types of one, or is a tool', () => {
    const typed = new Set([
      '@types/node',
      ...[...imported, ...packages.flatMap((name) => namesIn(manifestIn(`packages/${name}`), 'dependencies'))].map(
        (name) => `@types/${name}`,
      ),
    ]);
    const texts = [...Object.values(own.scripts ?? {}), ...modules.values()].join(' ');
    const words = new Set(texts.split(/[^\w@-]+/));
    const isTool = (name: string): boolean => {
      const { bin = {} } = manifestIn(`node_modules/${name}`);
      return [name, ...(typeof bin === 'string' ? [] : Object.keys(bin))].some((word) => words.has(word));
    };
    const unused = development.filter((name) => !imported.includes(name) && !typed.has(name) && !isTool(name));
    expect(unused).to.deep.equal([]);
  });

  it('of each package names the same exact version of a package', () => {
    const versions = new Map<string, Set<string>>();
    for (const manifest of [own, ...packages.map((name) => manifestIn(`packages/${name}`))])
      for (const kind of ['dependencies', 'optionalDependencies', 'devDependencies'] as const)
        for (const [name, version] of Object.entries(manifest[kind] ?? {})) {
          if (name.startsWith('@transitd/')) continue;
          expect(version, name).to.match(/^\d+\.\d+\.\d+(?:-[\w.]+)?$/);
          versions.set(name, (versions.get(name) ?? new Set()).add(version));
        }
    expect([...versions].filter(([, found]) => found.size > 1).map(([name]) => name)).to.deep.equal([]);
  });
});
