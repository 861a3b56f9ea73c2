import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect } from 'chai';

const source = join(import.meta.dirname, '../../src');

/** What a file loads by itself: types vanish, and `import(…)` waits for who needs it. */
const loadedBy = (file: string): readonly string[] =>
  [...readFileSync(file, 'utf8').matchAll(/^(?:import|export) (?!type )(?:[^;'"]*? from )?'([^']+)';$/gms)]
    .filter(([statement]) => !/^import \{(?:\s*type [^,}]+,?)+\s*\}/.test(statement))
    .map(([, specifier = '']) => specifier);

/** All files and packages that are loaded with a file. */
function loadedWith(file: string, seen = new Set<string>()): ReadonlySet<string> {
  for (const specifier of loadedBy(file)) {
    const target = specifier.startsWith('.') ? resolve(dirname(file), specifier) : specifier;
    if (seen.has(target)) continue;
    seen.add(target);
    if (specifier.startsWith('.')) loadedWith(target, seen);
  }
  return seen;
}

const packagesWith = (file: string): readonly string[] =>
  [...loadedWith(join(source, file))].filter((one) => !one.startsWith('/') && !one.startsWith('node:')).toSorted();

describe('what is loaded', () => {
  it('by every command is commander and little else', () => {
    expect(packagesWith('main.ts')).to.deep.equal(['commander']);
    const files = [...loadedWith(join(source, 'main.ts'))]
      .filter((one) => one.startsWith('/'))
      .map((one) => relative(source, one));
    expect(files).to.have.members([
      'cli/command-line.ts',
      'cli/arguments.ts',
      'cli/output.ts',
      'cli/table.ts',
      'cli/program.ts',
      'cli/runner.ts',
      'exit.ts',
    ]);
  });

  for (const { file, packages } of [
    { file: 'cli/server-command.ts', packages: ['commander'] },
    { file: 'cli/healthcheck-command.ts', packages: [] },
    { file: 'cli/healthcheck.ts', packages: [] },
    { file: 'cli/operator-commands.ts', packages: ['commander'] },
    { file: 'cli/key-commands.ts', packages: ['commander'] },
    { file: 'cli/policy-commands.ts', packages: ['commander'] },
    { file: 'cli/audit-commands.ts', packages: ['commander'] },
    { file: 'cli/doctor-command.ts', packages: ['commander'] },
    { file: 'cli/session.ts', packages: ['@transitd/client'] },
  ])
    it(`with ${file} is ${packages.join(' and ') || 'no package'}: neither the server nor its client comes along`, () => {
      expect(packagesWith(file)).to.deep.equal(packages);
    });

  it('by the server is the server', () => {
    expect(packagesWith('run-server.ts')).to.include('express').and.not.include('@transitd/client').and.not.include('commander');
  });
});
