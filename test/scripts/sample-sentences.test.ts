import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { draw, sentencesIn } from '../../scripts/check/sample.ts';

const short = (path: string, text: string): string[] =>
  sentencesIn({ path, text }).map(({ kind, line, text }) => `${kind} ${line} ${text}`);

describe('sample of sentences', () => {
  it('takes whole comments and the messages of sources', () => {
    const text = `/**\n * Returns the newest.\n * It may be old.\n */\nlog.warn({ a }, \`disk \${path} is nearly full\`);\nf('too short');`;
    expect(short('packages/p/src/a.ts', text)).to.deep.equal([
      'comment 1 Returns the newest. It may be old.',
      'message 5 disk … is nearly full',
    ]);
    expect(short('packages/p/test/a.test.ts', text)).to.deep.equal(['comment 1 Returns the newest. It may be old.']);
  });

  it('takes documents sentence by sentence, without code blocks', () => {
    const text =
      'Start one node first.\nThen start two more, e.g. on\nother hosts. `code` ends here as well.\n\n```\nnot this one, it is code\n```';
    expect(short('docs/a.md', text)).to.deep.equal([
      'doc 1 Start one node first.',
      'doc 2 Then start two more, e.g. on other hosts.',
      'doc 3 `code` ends here as well.',
    ]);
  });

  it('takes the names of tests with those of their suites, but no other literal of a test', () => {
    const inner = `it(\`refuses writes \${where} and answers reads\`, () => f('no name of any test'));`;
    const text = `describe('a node with a full disk', () => {\n  ${inner}\n});`;
    expect(short('packages/p/test/a.test.ts', text)).to.deep.equal([
      'test 1 a node with a full disk',
      'test 2 a node with a full disk › refuses writes … and answers reads',
    ]);
  });

  it('takes the text between the tags of TSX, and its literals', () => {
    const code = 'const f = (a: Map<string, number>) => a.size > 3 && b < 4;';
    const tag = '<p title="Why this node waits here">\n    No leader is known yet. {more}\n  </p>';
    const text = `${code}\nexport const page = (\n  ${tag}\n);`;
    expect(short('packages/console/app/a.tsx', text)).to.deep.equal([
      'message 3 Why this node waits here',
      'message 4 No leader is known yet.',
    ]);
  });

  it('takes the comments of Helm templates', () => {
    expect(short('deploy/helm/a.tpl', '{{- define "a" }}\n{{/* The name of each pod. */}}\n{{- end }}')).to.deep.equal([
      'comment 2 The name of each pod.',
    ]);
  });

  it('takes the plain, quoted and folded values of YAML, but no code', () => {
    const text = [
      'groups:',
      '  - name: faults of one node',
      '    expr: up == 0 and on(node) a > b',
      '    summary: "The disk of {{ $labels.node }} is full"',
      '    description: >-',
      '      Writes are refused.',
      '      Reads continue.',
      '    script: |',
      '      some code that runs here',
    ].join('\n');
    expect(short('deploy/a.yml', text)).to.deep.equal([
      'message 2 faults of one node',
      'message 4 The disk of {{ $labels.node }} is full',
      'message 6 Writes are refused. Reads continue.',
    ]);
  });

  const sentence = (text: string, kind: 'comment' | 'doc' = 'doc', path = 'a.md') => ({ kind, path, line: 1, text });
  const texts = Array.from({ length: 50 }, (_, i) => `sentence number ${i}`);

  it('is the same for the same seed, wherever the sentences are, and different for another seed', () => {
    const here = draw(
      texts.map((text) => sentence(text)),
      { seed: 7, size: 10 },
    ).map(({ text }) => text);
    const moved = draw(
      texts.toReversed().map((text) => sentence(text, 'doc', 'b.md')),
      { seed: 7, size: 10 },
    ).map(({ text }) => text);
    expect(here).to.have.length(10);
    expect(moved).to.have.members(here);
    expect(
      draw(
        texts.map((text) => sentence(text)),
        { seed: 8, size: 10 },
      ).map(({ text }) => text),
    ).not.to.have.members(here);
  });

  it('draws each text once, and the kinds in equal shares while there are enough', () => {
    const all = [
      ...texts.map((text) => sentence(text)),
      sentence('one comment', 'comment'),
      sentence('one comment', 'comment', 'c.ts'),
    ];
    expect(draw(all, { seed: 1, size: 6 }).filter(({ kind }) => kind === 'comment')).to.have.length(1);
    expect(draw(all, { seed: 1, size: 6, kinds: ['comment'] })).to.have.length(1);
    expect(draw(all, { seed: 1, size: 100 })).to.have.length(51);
  });

  it('is printed with numbers, files and lines, from the checkout that is named', () => {
    const root = mkdtempSync(join(tmpdir(), 'transitd-sample-'));
    try {
      execFileSync('git', ['init', '-q'], { cwd: root });
      mkdirSync(join(root, 'docs'));
      writeFileSync(join(root, 'docs/a.md'), '# A title of four words\n\nThe leader stores the entry.\n');
      const script = join(import.meta.dirname, '../../scripts/sample-sentences.ts');
      const run = (...args: string[]) => spawnSync(process.execPath, [script, '--root', root, ...args], { encoding: 'utf8' });
      expect(run('--seed', '7', '--size', '5').stdout).to.equal(
        '  1. [doc] docs/a.md:1\n     A title of four words\n\n  2. [doc] docs/a.md:3\n     The leader stores the entry.\n\n' +
          'seed 7: 2 of 2 sentences (0 comment, 0 message, 2 doc, 0 test)\n',
      );
      expect(run('--size', 'x').stderr).to.contain('--size must be a whole number, not x');
      expect(run('--kind', 'poem').status).to.equal(1);
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});
