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
  const [byPath, needed] = [lockedPackages(), new Set<ProductionPackage>()];
  // A package of this workspace that the server does not import, such as one that is not yet used, brings nothing into a release.
  for (const name of closureOf('server'))
    addNeeded(byPath, `packages/${name}`, dependenciesOf(readManifest(join(root, 'packages', name))), needed);
  for (const { path } of needed) if (!existsSync(join(root, path))) throw new Error(`${path} is not installed: run "npm ci"`);
  return [...needed].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Returns the packages that come with a direct dependency of one of our packages, itself included. */
export function packagesWith(name: string, ours: string): ProductionPackage[] {
  const found = new Set<ProductionPackage>();
  addNeeded(lockedPackages(), `packages/${ours}`, [name], found);
  return [...found];
}

function lockedPackages(): ReadonlyMap<string, ProductionPackage> {
  const { packages }: { packages: Record<string, Locked> } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const locked = Object.entries(packages)
    .filter(([path, { dev, link }]) => path.includes('node_modules/') && dev !== true && link !== true)
    .map(([path, one]) => ({ ...one, path, name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length) }));
  return new Map(locked.map((one) => [one.path, one]));
}

/** Adds the packages of these names, as `from` finds them, and those that they need. */
function addNeeded(
  byPath: ReadonlyMap<string, ProductionPackage>,
  from: string,
  names: readonly string[],
  found: Set<ProductionPackage>,
): void {
  for (const name of names) {
    const one = packageAt(byPath, from, name);
    if (one === undefined || found.has(one)) continue;
    found.add(one);
    addNeeded(byPath, one.path, dependenciesOf(one), found);
  }
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
