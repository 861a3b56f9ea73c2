// The third-party packages that a node runs on, as the lock file lists them.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './project.ts';

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

/** Returns the third-party packages of the production tree, sorted by path. @throws if one is not installed */
export function productionPackages(): ProductionPackage[] {
  const { packages }: { packages: Record<string, Locked> } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return Object.entries(packages)
    .filter(([path, { dev, link }]) => path.includes('node_modules/') && dev !== true && link !== true)
    .map(([path, locked]) => ({ ...locked, path, name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length) }))
    .map((one) => {
      if (!existsSync(join(root, one.path))) throw new Error(`${one.path} is not installed: run "npm ci"`);
      return one;
    })
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}
