import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { decisionFindings } from '../../../scripts/check/decisions.ts';
import { findingsIn, lineOf } from '../../../scripts/check/rules.ts';
import { readSourceFiles } from '../../../scripts/check/source-files.ts';

describe('rules of the repository', () => {
  it('refuse a cited decision that does not exist', () => {
    const files = [
      { path: 'docs/decisions/0007-a.md', text: '' },
      { path: 'a.ts', text: '// decision 7\n// decisions 7 and 8' },
    ];
    expect(decisionFindings(files).map(lineOf)).to.deep.equal(['a.ts:2 decision: decision 8 does not exist']);
  });

  it('are all applied', () => {
    const long = `// ${'x '.repeat(80)}`;
    const text = `import '../b/b.ts';\n// decision 9\n${long}\n`;
    const files = [
      { path: 'packages/p/src/a/0.ts', text },
      { path: 'packages/p/src/b/b.ts', text: "import '../a/0.ts';" },
    ];
    const findings = findingsIn(files).filter(({ path }) => path.startsWith('packages/p'));
    expect(new Set(findings.map(({ rule }) => rule))).to.deep.equal(new Set(['arrow', 'cycle', 'decision', 'line']));
  });

  it('read the files that git tracks or would track, except cases that others publish', () => {
    const root = mkdtempSync(join(tmpdir(), 'transitd-check-'));
    try {
      execFileSync('git', ['init', '-q'], { cwd: root });
      const names = ['a/b.ts', 'c.md', '.gitignore', 'ignored/d.ts', 'test/conformance/x/cases/e.json', 'f.png'];
      for (const name of names) {
        mkdirSync(dirname(join(root, name)), { recursive: true });
        writeFileSync(join(root, name), name === '.gitignore' ? 'ignored/\n' : 'text');
      }
      expect(readSourceFiles(root)).to.deep.equal([
        { path: 'a/b.ts', text: 'text' },
        { path: 'c.md', text: 'text' },
      ]);
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});
