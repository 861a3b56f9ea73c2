import { expect } from 'chai';
import { codeTextsOf, importsOf } from '../../../scripts/check/module.ts';

const short = (text: string, path = 'a.ts'): string[] =>
  codeTextsOf({ path, text }).map(({ kind, line, text }) => `${kind} ${line} ${text}`);

describe('texts of a module', () => {
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
    expect(short(`const a = /['"\`/]/.test(b) ? c / d : e / f; // after\nexport default /"/;`)).to.deep.equal([
      'comment 1 after',
    ]);
  });

  it('refuses a module with a syntax error, and names it', () => {
    expect(() => importsOf({ path: 'a.ts', text: 'import {' })).to.throw(/^a\.ts: /);
  });
});
