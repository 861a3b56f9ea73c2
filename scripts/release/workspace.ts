// The packages of this workspace, compiled to JavaScript. Node does not strip types below node_modules, so a release contains no TypeScript
// sources.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readManifest, root } from './project.ts';

const own = '@transitd/';

/** Compiles the server, the client and what they import into the folders `dist` of the packages. */
export function compile(): void {
  execFileSync(join(root, 'node_modules/.bin/tsc'), ['-b', 'packages/server', 'packages/client'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
  });
}

/** Returns the folder names of the packages that `name` imports, directly or not, and of `name` itself; sorted. */
export function closureOf(name: string): string[] {
  const found = new Set<string>();
  const visit = (next: string): void => {
    if (found.has(next)) return;
    found.add(next);
    const { dependencies = {} } = readManifest(join(root, 'packages', next));
    for (const dependency of Object.keys(dependencies)) if (dependency.startsWith(own)) visit(dependency.slice(own.length));
  };
  visit(name);
  return [...found].sort();
}

/** Returns the third-party dependencies of these packages: name → exact version, sorted by name. */
export function thirdPartyOf(names: readonly string[], kind: 'dependencies' | 'optionalDependencies'): Record<string, string> {
  const all = names.flatMap((name) => Object.entries(readManifest(join(root, 'packages', name))[kind] ?? {}));
  return Object.fromEntries(all.filter(([name]) => !name.startsWith(own)).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Copies the compiled modules and declarations of a package. Output of sources that no longer exist stays behind. */
export function copyCompiled(name: string, to: string): void {
  const folder = join(root, 'packages', name);
  for (const source of readdirSync(join(folder, 'src'), { recursive: true, encoding: 'utf8' }).sort()) {
    if (!source.endsWith('.ts')) continue;
    for (const extension of ['.js', '.d.ts']) {
      const file = source.replace(/\.ts$/, extension);
      mkdirSync(dirname(join(to, 'dist', file)), { recursive: true });
      cpSync(join(folder, 'dist', file), join(to, 'dist', file));
    }
  }
}

export function writeJson(path: string, value: unknown): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(value, undefined, 2)}\n`);
}

/** Copies a text and replaces each phrase, which must occur exactly once. */
export function copyReplaced(from: string, to: string, phrases: Readonly<Record<string, string>>): void {
  let text = readFileSync(from, 'utf8');
  for (const [phrase, by] of Object.entries(phrases)) {
    if (text.split(phrase).length !== 2) throw new Error(`${from} does not contain ${JSON.stringify(phrase)} exactly once`);
    text = text.replace(phrase, () => by);
  }
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, text);
}
