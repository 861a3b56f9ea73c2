import { expect } from 'chai';
import fc from 'fast-check';
import { LogView } from '../../src/log/log-view.ts';

describe('LogView', () => {
  it('behaves like a plain list of entries', () => {
    const step = fc.record({ back: fc.nat(5), bytes: fc.nat(60), drop: fc.option(fc.nat(3), { freq: 4 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const view = new LogView({ index: 5, term: 0 });
        let base = 5;
        let list: { index: number; term: number }[] = [];
        steps.forEach(({ back, bytes, drop }, i) => {
          const index = Math.max(base + 1, base + 1 + list.length - back);
          view.append({ index, term: i + 1, segment: 1, offset: i * 100, bytes });
          list = [...list.filter((stored) => stored.index < index), { index, term: i + 1 }];
          if (drop === null) return;
          base = Math.min(base + drop, base + list.length);
          view.dropUpTo({ index: base, term: 0 });
          list = list.filter((stored) => stored.index > base);
        });
        expect(view.lastIndex).to.equal(base + list.length);
        const stored = list.map(({ index }) => view.at(index));
        expect(stored.map((found) => found && { index: found.index, term: found.term })).to.deep.equal(list);
        expect(view.terms().map(({ firstIndex }) => firstIndex)).to.deep.equal(list.map(({ index }) => index));
      }),
    );
  });
});
