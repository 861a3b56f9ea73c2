import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect } from 'chai';

const packages = join(import.meta.dirname, '../..');

/** Returns what a file loads statically, without type imports and dynamic `import(…)`. */
const loadedBy = (file: string): readonly string[] =>
  [...readFileSync(file, 'utf8').matchAll(/^(?:import|export) (?!type )(?:[^;'"]*? from )?'([^']+)';$/gms)]
    .filter(([statement]) => !/^import \{(?:\s*type [^,}]+,?)+\s*\}/.test(statement))
    .map(([, specifier = '']) => specifier);

/** Returns the file that an import names; undefined for Node's modules and third-party packages. */
function fileOf(specifier: string, from: string): string | undefined {
  if (specifier.startsWith('.')) return resolve(dirname(from), specifier);
  const ours = /^@transitd\/([^/]+)$/.exec(specifier)?.[1];
  return ours && join(packages, ours, 'src/index.ts');
}

/** Returns all workspace files (paths below `packages`) and all third-party packages that a file loads, directly or not. */
function loadedWith(file: string, seen = new Set<string>()): ReadonlySet<string> {
  for (const specifier of loadedBy(join(packages, file))) {
    const target = fileOf(specifier, join(packages, file));
    const name = target === undefined ? specifier : relative(packages, target);
    if (seen.has(name)) continue;
    seen.add(name);
    if (target !== undefined) loadedWith(name, seen);
  }
  return seen;
}

const isOurs = (name: string): boolean => name.endsWith('.ts');
const packagesWith = (file: string): readonly string[] =>
  [...loadedWith(file)].filter((name) => !isOurs(name) && !name.startsWith('node:')).toSorted();
/** Returns the workspace packages that a file loads. */
const workspacePackagesWith = (file: string): readonly string[] =>
  [...new Set([...loadedWith(file)].filter(isOurs).map((name) => name.split('/')[0] ?? ''))].toSorted();

describe('modules loaded at start', () => {
  it('are commander and few others for every command', () => {
    expect(packagesWith('server/src/main.ts')).to.deep.equal(['commander']);
    expect(workspacePackagesWith('server/src/main.ts')).to.deep.equal(['cli', 'process', 'server']);
    const files = [...loadedWith('server/src/main.ts')].filter((name) => isOurs(name) && !name.startsWith('process/'));
    expect(files).to.have.members([
      'server/src/local-work.ts',
      'cli/src/index.ts',
      'cli/src/command-line.ts',
      'cli/src/terminal/arguments.ts',
      'cli/src/terminal/output.ts',
      'cli/src/terminal/print.ts',
      'cli/src/terminal/table.ts',
      'cli/src/program.ts',
      'cli/src/runner/runner.ts',
    ]);
  });

  for (const { file, parts, packages: expected } of [
    { file: 'commands/server.ts', parts: ['cli', 'process'], packages: ['commander'] },
    { file: 'commands/healthcheck.ts', parts: ['cli', 'process'], packages: ['commander'] },
    { file: 'local/healthcheck.ts', parts: ['cli', 'process'], packages: [] },
    { file: 'commands/operator.ts', parts: ['cli', 'process'], packages: ['commander'] },
    { file: 'commands/key/key.ts', parts: ['cli', 'process'], packages: ['commander'] },
    { file: 'commands/policy.ts', parts: ['cli', 'process'], packages: ['commander'] },
    { file: 'commands/audit.ts', parts: ['cli', 'process'], packages: ['commander'] },
    { file: 'commands/doctor.ts', parts: ['cli', 'process'], packages: ['commander'] },
    { file: 'session/session.ts', parts: ['cli', 'client', 'process'], packages: [] },
  ])
    it(`with ${file} are ${expected.join(' and ') || 'no package'} and ${parts.join(', ')}, without the server`, () => {
      expect(packagesWith(`cli/src/${file}`)).to.deep.equal(expected);
      expect(workspacePackagesWith(`cli/src/${file}`).filter((part) => !parts.includes(part))).to.deep.equal([]);
    });

  it('include prom-client but not commander for the server', () => {
    expect(packagesWith('server/src/run-server.ts')).to.include('prom-client').and.not.include('commander');
    expect(workspacePackagesWith('server/src/run-server.ts')).to.include('api').and.not.include('client').and.not.include('cli');
  });

  it('include neither Express nor the database for a gateway thread', () => {
    expect(packagesWith('server/src/gateway-thread.ts')).to.include('zod').and.not.include.oneOf(['express', 'level']);
  });
});
