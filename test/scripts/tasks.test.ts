// The tasks of Turborepo (turbo.json): which results may be kept, and in which order the suites run.
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { join, matchesGlob, relative } from 'node:path';
import { expect } from 'chai';
import { importsOf } from '../../scripts/check/module.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const { tasks } = JSON.parse(read('turbo.json')) as { tasks: Record<string, Task> };

interface Task {
  readonly cache?: boolean;
  readonly inputs?: readonly string[];
}

/** The tasks `test` of the packages whose results are kept. */
const cached = readdirSync(join(root, 'packages')).flatMap((name) => {
  const file = `packages/${name}/turbo.json`;
  const { test }: Record<string, Task | undefined> = existsSync(join(root, file)) ? JSON.parse(read(file)).tasks : {};
  return test?.cache === true ? [{ name, inputs: test.inputs ?? [] }] : [];
});

describe('a suite whose results are kept', () => {
  it('is the exception', () => {
    expect(cached.map(({ name }) => name)).to.include('configuration');
    const kept = Object.keys(tasks).filter((name) => name.includes('test') && tasks[name]?.cache !== false);
    expect(kept).to.deep.equal([]);
  });

  for (const { name, inputs } of cached)
    describe(`packages/${name}`, () => {
      const files = globSync(`packages/${name}/test/**/*.ts`, { cwd: root }).map((path) => ({ path, text: read(path) }));

      it('draws no seed, opens no socket and starts no process', () => {
        const impure = [
          'fast-check',
          'node:net',
          'node:http',
          'node:https',
          'node:tls',
          'node:child_process',
          'node:worker_threads',
        ];
        const found = files.flatMap((file) => importsOf(file).map(({ specifier }) => specifier));
        expect(found.filter((specifier) => impure.includes(specifier))).to.deep.equal([]);
        expect(files.filter(({ text }) => /^\/\/ @live$/m.test(text))).to.deep.equal([]);
      });

      it('reads nothing outside of its package that is not among its inputs', () => {
        const outside = files.flatMap(({ path, text }) =>
          [...text.matchAll(/['`]((?:\.\.\/){2,}[^'`]+)['`]/g)].map(([, to = '']) => relative(root, join(root, path, '..', to))),
        );
        const unnamed = outside
          .filter((path) => !path.startsWith(`packages/${name}/`) && existsSync(join(root, path)))
          .filter((path) => !inputs.some((input) => matchesGlob(path, input.replace('$TURBO_ROOT$/', ''))));
        expect(unnamed).to.deep.equal([]);
      });
    });
});

describe('the suites of npm test', function () {
  this.timeout(60_000);

  it('form a cluster of several nodes only with --cluster, and with the options after it', () => {
    const { spec, ignore } = JSON.parse(read('test/.mocharc.json')) as { spec: string; ignore: string[] };
    const files = globSync([spec, 'packages/*/test/**/*.test.ts'], { cwd: root, exclude: ignore });
    const forming = files.filter((path) =>
      importsOf({ path, text: read(path) }).some(({ specifier }) => /\/(?:live-cluster|scenario|machines)\.ts$/.test(specifier)),
    );
    expect(files).to.have.length.above(400);
    expect(forming).to.deep.equal([]);
  });

  it('run one after the other where they start clusters, or share the output of the compiler', () => {
    const suites = [
      'check',
      'test:live',
      'test:cluster',
      'test:attack',
      'test:chaos',
      'test:clients',
      'test:release',
      'test:e2e',
    ];
    const plan = execFileSync(join(root, 'node_modules/.bin/turbo'), ['run', ...suites, '--only', '--dry=json'], {
      encoding: 'utf8',
      cwd: root,
      maxBuffer: 2 ** 26,
    });
    const after = Object.fromEntries(
      (JSON.parse(plan).tasks as { task: string; dependencies: string[] }[]).map(({ task, dependencies }) => [
        task,
        dependencies,
      ]),
    );
    expect(after).to.deep.equal({
      check: [],
      'test:live': [],
      'test:cluster': ['//#test:live'],
      'test:attack': ['//#test:cluster'],
      'test:chaos': ['//#test:attack'],
      'test:clients': ['//#check'],
      'test:release': ['//#test:clients'],
      'test:e2e': ['//#test:release'],
    });
  });
});
