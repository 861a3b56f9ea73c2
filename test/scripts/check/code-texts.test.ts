import { expect } from 'chai';
import { codeTextsOf } from '../../../scripts/check/code-texts.ts';

const short = (source: string): string[] => codeTextsOf(source).map(({ kind, line, text }) => `${kind} ${line} ${text}`);

describe('texts of code', () => {
  it('joins consecutive line comments, but not with a comment at the end of a line of code', () => {
    expect(short('// one\n// two\nlet a = 1; // three\n// four\n\n// five')).to.deep.equal([
      'comment 1 one\ntwo',
      'comment 3 three',
      'comment 4 four',
      'comment 6 five',
    ]);
  });

  it('takes slashes and stars from a block comment and keeps its lines', () => {
    expect(short('/**\n * First line.\n * @throws Error\n */')).to.deep.equal(['comment 1 \nFirst line.\n@throws Error\n']);
  });

  it('finds the literals of both quotes, and of templates with templates inside', () => {
    expect(short(`f('it\\'s', "b", \`c \${g('d', \`e\${h}\`)} f\`);`)).to.deep.equal([
      "string 1 it\\'s",
      'string 1 b',
      'string 1 c … f',
      'string 1 d',
      'string 1 e…',
    ]);
  });

  it('is not misled by regular expressions, nor by divisions', () => {
    expect(short(`const a = /['"\`/]/.test(b) ? c / d : e / f; // after\nreturn /"/;`)).to.deep.equal(['comment 1 after']);
  });

  it('counts the lines of templates', () => {
    expect(short(`\`a\n\${\nb\n}\`;\n"c d"`)).to.deep.equal(['string 1 a\n…\n\n', 'string 5 c d']);
  });
});
