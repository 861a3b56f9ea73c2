// The third-party packages that a node runs on, as the lock file lists them.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { readManifest, root } from './project.ts';
import { closureOf } from './workspace.ts';

interface Locked {
  readonly version: string;
  readonly integrity?: string;
  readonly license?: string;
  readonly dev?: true;
  readonly link?: true;
  readonly optional?: true;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

export interface ProductionPackage extends Locked {
  /** Where it is installed, relative to the repository: `node_modules/a` or `node_modules/a/node_modules/b`. */
  readonly path: string;
  readonly name: string;
}

/** Returns the third-party packages that the server needs, directly or not, sorted by path. @throws if one is not installed */
export function productionPackages(): ProductionPackage[] {
  const { packages }: { packages: Record<string, Locked> } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const installed = Object.entries(packages)
    .filter(([path, { dev, link }]) => path.includes('node_modules/') && dev !== true && link !== true)
    .map(([path, locked]) => ({ ...locked, path, name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length) }));
  return neededBy(closureOf('server'), new Map(installed.map((one) => [one.path, one])))
    .map((one) => {
      if (!existsSync(join(root, one.path))) throw new Error(`${one.path} is not installed: run "npm ci"`);
      return one;
    })
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** A package of this workspace that the server does not import, such as one that is not yet used, brings nothing into a release. */
function neededBy(ours: readonly string[], byPath: ReadonlyMap<string, ProductionPackage>): ProductionPackage[] {
  const needed = new Set<ProductionPackage>();
  const visit = (from: string, names: readonly string[]): void => {
    for (const name of names) {
      const one = packageAt(byPath, from, name);
      if (one === undefined || needed.has(one)) continue;
      needed.add(one);
      visit(one.path, dependenciesOf(one));
    }
  };
  for (const name of ours) visit(`packages/${name}`, dependenciesOf(readManifest(join(root, 'packages', name))));
  return [...needed];
}

/** Returns the names of the packages that are installed with this one. */
export const dependenciesOf = ({
  dependencies,
  optionalDependencies,
}: Pick<Locked, 'dependencies' | 'optionalDependencies'>): string[] => Object.keys({ ...dependencies, ...optionalDependencies });

/** Finds a package as Node does: in the node_modules of the importing package, then in those above it. */
export function packageAt(
  byPath: ReadonlyMap<string, ProductionPackage>,
  from: string,
  name: string,
): ProductionPackage | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = byPath.get(posix.join(folder, 'node_modules', name));
    if (found !== undefined || folder === '.' || folder === '') return found;
  }
}
