import { expect } from 'chai';
import fc from 'fast-check';
import { TermRuns } from '../../src/log/term-runs.ts';

describe('TermRuns', () => {
  it('returns the term of every entry, also after compaction, like a list of all terms', () => {
    const steps = fc.array(fc.nat({ max: 2 }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(steps, fc.nat(), fc.nat(), (raises, cut, stored) => {
        const terms = raises.map((_, i) => raises.slice(0, i + 1).reduce((sum, raise) => sum + raise));
        // terms[i] is the term of entry i; entry 0 is the base.
        const storedLast = stored % terms.length;
        const runs = terms
          .map((term, firstIndex) => ({ term, firstIndex }))
          .filter(({ term, firstIndex }) => firstIndex === 1 || (firstIndex > 1 && term !== terms[firstIndex - 1]))
          .filter(({ firstIndex }) => firstIndex <= storedLast);
        const subject = new TermRuns({ index: 0, term: terms[0] ?? 0 }, runs, storedLast);
        for (let index = storedLast + 1; index < terms.length; index++) subject.append({ index, term: terms[index] ?? 0 });
        for (const [index, term] of terms.entries()) expect(subject.termAt(index)).to.equal(term);

        const base = cut % terms.length;
        subject.compact({ index: base, term: terms[base] ?? 0 });
        for (const [index, term] of terms.entries()) if (index >= base) expect(subject.termAt(index)).to.equal(term);
        expect(subject.lastTerm).to.equal(terms.at(-1));
      }),
    );
  });

  it('refuses an entry of a lower term than the last entry', () => {
    const runs = new TermRuns({ index: 0, term: 3 }, [], 0);
    expect(() => runs.append({ index: 1, term: 2 })).to.throw(/never fall/);
  });
});

describe('TermRuns, against a plain list of terms', () => {
  const raises = fc.array(fc.nat({ max: 2 }), { minLength: 2, maxLength: 30 });

  it('finds the last entry of at most a given term, and forgets superseded ones', () => {
    fc.assert(
      fc.property(raises, fc.nat(), fc.nat(), fc.nat({ max: 20 }), (steps, at, cut, wanted) => {
        const terms = steps.map((_, i) => 1 + steps.slice(0, i + 1).reduce((sum, raise) => sum + raise));
        const runs = new TermRuns({ index: 0, term: terms[0] ?? 0 }, [], 0);
        for (const [index, term] of terms.entries()) if (index > 0) runs.append({ index, term });
        const last = terms.length - 1;
        const index = at % terms.length;
        expect(runs.lastAtMost({ index, term: wanted })).to.equal(terms.findLastIndex((term, i) => i <= index && term <= wanted));

        const from = 1 + (cut % last);
        runs.truncate(from);
        expect(runs.lastTerm).to.equal(terms[from - 1]);
        runs.append({ index: from, term: (terms.at(-1) ?? 0) + 1 });
        for (let i = 0; i < from; i++) expect(runs.termAt(i)).to.equal(terms[i]);
        expect(runs.termAt(from)).to.equal((terms.at(-1) ?? 0) + 1);
      }),
    );
  });
});
