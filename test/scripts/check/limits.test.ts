import { expect } from 'chai';
import { folderFindings, lengthFindings, lineFindings } from '../../../scripts/check/limits.ts';

const messages = (findings: readonly { line: number; message: string }[]): string[] =>
  findings.map(({ line, message }) => `${line} ${message}`);
const words = (count: number): string => 'word '.repeat(count / 5);

describe('limits of size', () => {
  it('refuse a line that is too long, in code and in prose', () => {
    for (const path of ['a.ts', 'a.md', 'a.yml'])
      expect(messages(lineFindings({ path, text: `short\n${words(145)}` }))).to.deep.equal(['2 145 characters; at most 140']);
    expect(lineFindings({ path: 'a.ts', text: '…'.repeat(140) })).to.deep.equal([]);
  });

  it('allow a long string literal that is alone on its line', () => {
    for (const text of [`    '${words(145)}',`, `  name: '${words(145)}',`, `  \`${words(145)}\`;`])
      expect(lineFindings({ path: 'a.ts', text })).to.deep.equal([]);
    expect(lineFindings({ path: 'a.ts', text: `call('${words(145)}');` })).to.have.length(1);
  });

  it('ignore the parts of Markdown that cannot be broken: table rows and addresses', () => {
    const address = `https://example.com/${'x'.repeat(150)}`;
    for (const text of [`| ${words(150)} |`, `see ${address}`, `see [it](${address})`])
      expect(lineFindings({ path: 'a.md', text })).to.deep.equal([]);
    expect(lineFindings({ path: 'a.ts', text: `// ${address}` })).to.have.length(1);
  });

  it('refuse a file that is too long; a test may be longer', () => {
    const text = 'x\n'.repeat(401);
    expect(messages(lengthFindings({ path: 'packages/a/src/b.ts', text }))).to.deep.equal(['0 401 lines; at most 400']);
    expect(lengthFindings({ path: 'packages/a/test/b.test.ts', text })).to.deep.equal([]);
    expect(lengthFindings({ path: 'test/b.ts', text: 'x\n'.repeat(501) })).to.have.length(1);
    expect(lengthFindings({ path: 'docs/b.md', text })).to.deep.equal([]);
    expect(lengthFindings({ path: 'a.ts', text: 'x\n'.repeat(400) })).to.deep.equal([]);
  });

  it('do not apply to listed files', () => {
    expect(lengthFindings({ path: 'a.ts', text: 'x\n'.repeat(401) }, { 'a.ts': 'a table' })).to.deep.equal([]);
    expect(lineFindings({ path: 'a.ts', text: words(150) }, { 'a.ts': 'generated' })).to.deep.equal([]);
  });

  it('refuse a folder with too many source files, not counting the files in folders below it', () => {
    const files = (count: number, folder = 'a') =>
      Array.from({ length: count }, (_, i) => ({ path: `${folder}/${i}.ts`, text: '' }));
    expect(folderFindings([...files(30), ...files(30, 'a/b'), { path: 'a/c.md', text: '' }])).to.deep.equal([]);
    expect(folderFindings(files(31)).map(({ path, message }) => `${path} ${message}`)).to.deep.equal([
      'a 31 source files; at most 30',
    ]);
  });
});
