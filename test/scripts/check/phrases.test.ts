import { expect } from 'chai';
import { bannedPhrases, bannedStarts } from '../../../scripts/check/banned-phrases.ts';
import { phraseFindings, phrasesOf } from '../../../scripts/check/phrases.ts';

const comment = (text: string) => phrasesOf({ kind: 'comment', line: 1, text });
const found = (path: string, text: string): string[] =>
  phraseFindings({ path, text }, []).map(({ line, message }) => `${line} ${message}`);

describe('banned phrases', () => {
  for (const { pattern, bad, good } of [...bannedPhrases, ...bannedStarts]) {
    for (const text of bad)
      it(`refuses "${text}"`, () => {
        expect(comment(text).some((phrase) => new RegExp(pattern).test(phrase.found))).to.equal(true);
      });
    for (const text of good)
      it(`accepts "${text}"`, () => {
        expect(comment(text)).to.deep.equal([]);
      });
  }

  it('each have refused and accepted examples', () => {
    for (const { bad, good } of [...bannedPhrases, ...bannedStarts]) expect(Math.min(bad.length, good.length)).to.be.above(0);
  });

  it('are found in comments, literals and prose, across lines, with the line where they begin', () => {
    expect(found('a.ts', "const a = 1;\n/**\n * It reads the\n * own log.\n */\nlog('starts anew');")).to.deep.equal([
      '3 "the own": write "its own" or "this node\'s"',
      '6 "anew": write "again"',
    ]);
    expect(found('a.md', 'Text\nanew.')).to.deep.equal(['2 "anew": write "again"']);
  });

  it('are allowed in names, code and addresses', () => {
    expect(found('a.ts', "// `anew` at https://example.com/anew\nconst key = 'roster'; roster(anew);")).to.deep.equal([]);
    expect(found('a.md', '```\nthe own\n```\n[it](anew.md)')).to.deep.equal([]);
  });

  it('include sentences that begin with a paraphrase of their subject, wherever a sentence begins', () => {
    expect(found('a.ts', '/** Keeps it. What it keeps\n * is small. Is that so? What for? */')).to.deep.equal([
      '1 "What it keeps is": write the subject: name the thing, or "Returns …"',
    ]);
    expect(found('a.ts', '/** Holds it. @returns What it holds. */')).to.deep.equal([]);
    expect(found('a.ts', "it('what it does', f);")).to.deep.equal([]);
    expect(found('a.md', '## What it is\n\n| What |\n')).to.deep.equal([]);
  });

  it('are allowed by an exception', () => {
    const file = { path: 'docs/a.md', text: 'The standard says "start anew". We start anew.' };
    const because = 'a quotation';
    expect(phraseFindings(file, [{ path: 'docs/a.md', text: 'says "start anew"', because }])).to.have.length(1);
    expect(phraseFindings(file, [{ path: 'docs/', because }])).to.deep.equal([]);
    expect(phraseFindings(file, [{ path: 'docs/b.md', because }])).to.have.length(2);
  });
});
