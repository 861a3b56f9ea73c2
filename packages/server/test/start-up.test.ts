import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect } from 'chai';

const packages = join(import.meta.dirname, '../..');

/** What a file loads by itself: types vanish, and `import(…)` waits for who needs it. */
const loadedBy = (file: string): readonly string[] =>
  [...readFileSync(file, 'utf8').matchAll(/^(?:import|export) (?!type )(?:[^;'"]*? from )?'([^']+)';$/gms)]
    .filter(([statement]) => !/^import \{(?:\s*type [^,}]+,?)+\s*\}/.test(statement))
    .map(([, specifier = '']) => specifier);

/** The file that an import names; undefined for Node's own modules and for packages of others. */
function fileOf(specifier: string, from: string): string | undefined {
  if (specifier.startsWith('.')) return resolve(dirname(from), specifier);
  const ours = /^@transitd\/([^/]+)$/.exec(specifier)?.[1];
  return ours && join(packages, ours, 'src/index.ts');
}

/** All files of this workspace, by their paths below `packages`, and all packages that are loaded with a file. */
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
/** The packages of this workspace. */
const partsWith = (file: string): readonly string[] =>
  [...new Set([...loadedWith(file)].filter(isOurs).map((name) => name.split('/')[0] ?? ''))].toSorted();

describe('what is loaded', () => {
  it('by every command is commander and little else', () => {
    expect(packagesWith('server/src/main.ts')).to.deep.equal(['commander']);
    expect(partsWith('server/src/main.ts')).to.deep.equal(['cli', 'process', 'server']);
    const files = [...loadedWith('server/src/main.ts')].filter((name) => isOurs(name) && !name.startsWith('process/'));
    expect(files).to.have.members([
      'server/src/local-work.ts',
      'cli/src/index.ts',
      'cli/src/command-line.ts',
      'cli/src/terminal/arguments.ts',
      'cli/src/terminal/output.ts',
      'cli/src/terminal/table.ts',
      'cli/src/program.ts',
      'cli/src/runner/runner.ts',
    ]);
  });

  for (const { file, parts, packages: expected } of [
    { file: 'commands/server.ts', parts: ['cli', 'process'], packages: ['commander'] },
    { file: 'commands/healthcheck.ts', parts: ['cli'], packages: [] },
    { file: 'work/healthcheck.ts', parts: ['cli', 'process'], packages: [] },
    { file: 'commands/operator.ts', parts: ['cli', 'process'], packages: ['commander'] },
    { file: 'commands/key.ts', parts: ['cli', 'process'], packages: ['commander'] },
    { file: 'commands/policy.ts', parts: ['cli', 'process'], packages: ['commander'] },
    { file: 'commands/audit.ts', parts: ['cli', 'process'], packages: ['commander'] },
    { file: 'commands/doctor.ts', parts: ['cli', 'process'], packages: ['commander'] },
    { file: 'session/session.ts', parts: ['cli', 'client', 'process'], packages: [] },
  ])
    it(`with ${file} is ${expected.join(' and ') || 'no package'} and ${parts.join(', ')}: the server does not come along`, () => {
      expect(packagesWith(`cli/src/${file}`)).to.deep.equal(expected);
      expect(partsWith(`cli/src/${file}`).filter((part) => !parts.includes(part))).to.deep.equal([]);
    });

  it('by the server is the server', () => {
    expect(packagesWith('server/src/run-server.ts')).to.include('express').and.not.include('commander');
    expect(partsWith('server/src/run-server.ts')).to.include('api').and.not.include('client').and.not.include('cli');
  });
});
