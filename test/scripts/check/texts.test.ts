import { expect } from 'chai';
import { lineAt, textsOf, withoutCode } from '../../../scripts/check/texts.ts';

const short = (path: string, text: string): string[] =>
  textsOf({ path, text }).map(({ kind, line, text }) => `${kind} ${line} ${text}`);

describe('texts of a file', () => {
  it('are the paragraphs, items, headings and cells of Markdown, without fenced code', () => {
    const text = '# Title\n\nOne\ntwo.\n- item\n  more\n\n```sh\nno text\n```\n\n| a `x|y` | b |\n|---|---|\n> quoted';
    expect(short('a.md', text)).to.deep.equal([
      'heading 1 Title',
      'prose 3 One\ntwo.',
      'prose 5 item\nmore',
      'cell 12 a `x|y`',
      'cell 12 b',
      'prose 14 quoted',
    ]);
  });

  it('are the comments of a script, and all lines of YAML', () => {
    expect(short('a.sh', '#!/bin/sh\n# one\n# two\nrun # three')).to.deep.equal(['comment 2 one\ntwo', 'comment 4 three']);
    expect(short('a.yml', '# one\nkey: some text')).to.deep.equal(['comment 1 one', 'string 2 key: some text']);
  });

  it('are the strings of a dashboard, but not of other JSON', () => {
    expect(short('deploy/a.json', '{\n "title": "two words" }')).to.deep.equal(['string 2 two words']);
    expect(short('a.json', '{ "title": "two words" }')).to.deep.equal([]);
  });

  it('have code and addresses masked without moving a character', () => {
    expect(withoutCode('see `a b` and [x](y.md) {@link Z}')).to.equal('see ·· ·· and [x]······ ······ ··');
  });

  it('know the line of a character', () => {
    expect(lineAt({ kind: 'comment', line: 7, text: 'a\nb\nc' }, 4)).to.equal(9);
  });
});
