import { expect } from 'chai';
import { arrowFindings, cycleFindings, fileCycleFindings, observedTable } from '../../../scripts/check/folders.ts';

const file = (path: string, ...imports: string[]) => ({
  path: `packages/p/${path}`,
  text: imports.map((specifier) => `import { x } from '${specifier}';\n`).join(''),
});
/** A package in which `top` imports `low`, `low` imports `.`, and the entry imports both folders. */
const layered = [
  file('src/index.ts', './top/t.ts', './types.ts'),
  file('src/types.ts', 'node:fs', '@transitd/q'),
  file('src/low/l.ts', '../types.ts'),
  file('src/top/t.ts', '../low/l.ts', './u.ts', '../types.ts'),
  file('src/top/u.ts'),
  file('test/t.test.ts', '../src/top/t.ts'),
];
const table = { p: { '.': [], low: ['.'], top: ['.', 'low'] } };
const said = (findings: readonly { path: string; line: number; message: string }[]): string[] =>
  findings.map(({ path, line, message }) => `${path}:${line} ${message}`);

describe('folders of a package', () => {
  it('may import as the table says; the entry may import all', () => {
    expect(arrowFindings(layered, table)).to.deep.equal([]);
    expect(cycleFindings(layered)).to.deep.equal([]);
  });

  it('may not import what their row does not name, type imports and the entry included', () => {
    const wrong = [...layered, file('src/low/m.ts', '../types.ts', '../top/u.ts', '../index.ts')];
    expect(said(arrowFindings(wrong, table))).to.deep.equal([
      'packages/p/src/low/m.ts:2 low may not import top',
      'packages/p/src/low/m.ts:3 low may not import index.ts',
    ]);
    const type = { path: 'packages/p/src/low/m.ts', text: "import type { X } from '../top/u.ts';" };
    expect(arrowFindings([...layered, type], table)).to.have.length(1);
  });

  it('need one row each, as packages do, and every row needs its folder', () => {
    const none = 'packages/p/src:0 the table of folder arrows has no row for this package';
    expect(said(arrowFindings(layered, {}))).to.deep.equal([none]);
    expect(said(arrowFindings(layered, { p: { '.': [], low: ['.'], gone: [] }, q: {} }))).to.deep.equal([
      'packages/q/src:0 the table of folder arrows has a row for this package, which does not exist',
      'packages/p/src:0 folder top has no row',
      'packages/p/src:0 row gone has no folder',
    ]);
  });

  it('are in the order of the table, so that it cannot allow a cycle', () => {
    const upward = { p: { '.': [], low: ['.', 'top'], top: ['.', 'low'] } };
    expect(said(arrowFindings(layered, upward))).to.deep.equal([
      'packages/p/src:0 row low names top, which is not in a row above it',
    ]);
  });

  it('may share the row of their parent, and then do not import each other', () => {
    const shared = { p: { '.': [], low: [], 'low/*': ['low'], top: ['low', 'low/*'] } };
    const files = [file('src/t.ts'), file('src/low/l.ts'), file('src/low/a/a.ts', '../l.ts'), file('src/low/b/b.ts')];
    const top = file('src/top/t.ts', '../low/a/a.ts', '../low/b/b.ts');
    expect(said(arrowFindings([...files, top], shared))).to.deep.equal([]);
    expect(said(arrowFindings([...files, top, file('src/low/b/c.ts', '../a/a.ts', '../../t.ts')], shared))).to.deep.equal([
      'packages/p/src/low/b/c.ts:1 low/b may not import low/a',
      'packages/p/src/low/b/c.ts:2 low/b may not import .',
    ]);
    expect(said(arrowFindings([file('src/t.ts'), file('src/low/l.ts'), top], shared))).to.deep.equal([
      'packages/p/src:0 row low/* has no folder',
    ]);
  });

  it('do not import each other in a cycle, however long', () => {
    const circle = [
      file('src/a/a.ts', '../b/b.ts'),
      file('src/b/b.ts', '../c/c.ts'),
      file('src/c/c.ts', '../a/a.ts'),
      file('src/d/d.ts', '../a/a.ts'),
    ];
    expect(said(cycleFindings(circle))).to.deep.equal([
      'packages/p/src:0 folders import each other: a, b, c (a → b at a/a.ts:1; b → c at b/b.ts:1; c → a at c/c.ts:1)',
    ]);
  });

  it('have no files that import each other, type imports included', () => {
    const type = { path: 'packages/p/src/top/u.ts', text: "import type { T } from './t.ts';" };
    expect(fileCycleFindings(layered)).to.deep.equal([]);
    expect(said(fileCycleFindings([...layered.filter(({ path }) => path !== type.path), type]))).to.deep.equal([
      'packages/p/src/top/t.ts:0 files import each other: packages/p/src/top/t.ts, packages/p/src/top/u.ts',
    ]);
  });

  it('may all be imported by a second entry that package.json names', () => {
    const manifest = { path: 'packages/p/package.json', text: '{ "exports": { "./low": "./src/low/index.ts" } }' };
    const files = [...layered, file('src/low/index.ts', '../top/t.ts')];
    expect(arrowFindings(files, table)).to.have.length(1);
    expect(arrowFindings([...files, manifest], table)).to.deep.equal([]);
  });

  it('are printed as a table that can be pasted', () => {
    expect(observedTable(layered, 'p')).to.equal("  p: {\n    '.': [],\n    low: ['.'],\n    top: ['.', 'low'],\n  },");
    const upward = [...layered, file('src/types-b.ts', './top/u.ts')];
    expect(observedTable(upward, 'p')).to.contain('    // upward: . → top, 1 imports: types-b.ts:1\n');
  });
});
