// The npm packages: `@transitd/client`, and `transitd` with the server and the command line. The workspace's own packages are bundled in
// `transitd`; third-party packages are its dependencies, in the exact versions of the lock file.
import { chmodSync, cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { npm } from './npm.ts';
import { nodeVersion, readManifest, root, version } from './project.ts';
import { closureOf, copyCompiled, copyReplaced, thirdPartyOf, writeJson } from './workspace.ts';

const entryPoint = { '.': { types: './dist/index.d.ts', default: './dist/index.js' } };

const common = { version, license: readManifest(root).license, type: 'module' };

/** Writes the content of `@transitd/client` into a folder. */
export function stageClient(to: string): void {
  copyCompiled('client', to);
  copyTexts(join(root, 'packages/client/README.md'), to);
  writeJson(join(to, 'package.json'), {
    name: '@transitd/client',
    description: 'A typed client of the transitd HTTP API (transit engine of Vault and OpenBao), without dependencies',
    ...common,
    exports: entryPoint,
    sideEffects: false,
    files: ['dist'],
    engines: { node: '>=20' },
  });
}

/** Writes the content of `transitd` into a folder, without third-party packages. */
export function stageServer(to: string): void {
  const names = closureOf('server');
  for (const name of names) stageBundled(name, join(to, 'node_modules/@transitd', name));
  copyReplaced(join(root, 'packages/server/transitd.mjs'), join(to, 'transitd.mjs'), {
    "'../../node_modules/.cache/transitd'": "'node_modules/.cache/transitd'",
    "'./src/main.ts'": "'@transitd/server'",
  });
  chmodSync(join(to, 'transitd.mjs'), 0o755);
  copyTexts(join(root, 'scripts/release/npm-readme.md'), to);
  writeJson(join(to, 'package.json'), {
    name: 'transitd',
    description: 'A clustered transit cryptography service: the server and the command line',
    ...common,
    bin: { transitd: 'transitd.mjs' },
    exports: { './package.json': './package.json' },
    files: ['transitd.mjs'],
    engines: { node: `>=${nodeVersion}` },
    dependencies: {
      ...Object.fromEntries(names.map((name) => [`@transitd/${name}`, version])),
      ...thirdPartyOf(names, 'dependencies'),
    },
    optionalDependencies: thirdPartyOf(names, 'optionalDependencies'),
    bundleDependencies: names.map((name) => `@transitd/${name}`),
  });
}

/** A package inside `transitd`. It finds third-party packages among the dependencies of `transitd`, so it names none itself. */
function stageBundled(name: string, to: string): void {
  copyCompiled(name, to);
  const exports = name === 'server' ? { '.': './dist/main.js' } : entryPoint;
  writeJson(join(to, 'package.json'), { name: `@transitd/${name}`, ...common, exports });
}

function copyTexts(readme: string, to: string): void {
  mkdirSync(to, { recursive: true });
  cpSync(readme, join(to, 'README.md'));
  cpSync(join(root, 'LICENSE'), join(to, 'LICENSE'));
}

/** Runs `npm pack` on a staged package, and returns the path of the archive in `out`. */
export function pack(staged: string, out: string): string {
  const report: unknown = JSON.parse(npm(['pack', '--json', '--ignore-scripts', '--pack-destination', out], staged));
  const { name } = readManifest(staged);
  const filename = filenameIn(report, name);
  if (filename === undefined) throw new Error(`npm pack did not name the archive of ${name}`);
  return join(out, filename);
}

/** Older versions of npm report a list, newer ones an object by name. */
function filenameIn(report: unknown, name: string): string | undefined {
  const entry: unknown = Array.isArray(report) ? report[0] : Reflect.get(Object(report), name);
  const filename: unknown = Reflect.get(Object(entry), 'filename');
  return typeof filename === 'string' ? filename : undefined;
}
