import { expect } from 'chai';
import { lineFindings } from '../../../scripts/check/lines.ts';

const messages = (findings: readonly { line: number; message: string }[]): string[] =>
  findings.map(({ line, message }) => `${line} ${message}`);
const words = (count: number): string => 'word '.repeat(count / 5);

describe('the limit on the length of lines', () => {
  it('refuses a line that is too long, in code and in prose', () => {
    for (const path of ['a.ts', 'a.md', 'a.yml'])
      expect(messages(lineFindings({ path, text: `short\n${words(145)}` }))).to.deep.equal(['2 145 characters; at most 140']);
    expect(lineFindings({ path: 'a.ts', text: '…'.repeat(140) })).to.deep.equal([]);
  });

  it('allows a long string literal that is alone on its line', () => {
    for (const text of [`    '${words(145)}',`, `  name: '${words(145)}',`, `  \`${words(145)}\`;`])
      expect(lineFindings({ path: 'a.ts', text })).to.deep.equal([]);
    expect(lineFindings({ path: 'a.ts', text: `call('${words(145)}');` })).to.have.length(1);
  });

  it('ignores the parts of Markdown that cannot be broken: table rows and addresses', () => {
    const address = `https://example.com/${'x'.repeat(150)}`;
    for (const text of [`| ${words(150)} |`, `see ${address}`, `see [it](${address})`])
      expect(lineFindings({ path: 'a.md', text })).to.deep.equal([]);
    expect(lineFindings({ path: 'a.ts', text: `// ${address}` })).to.have.length(1);
  });
});
