import { expect } from 'chai';
import fc from 'fast-check';
import { LogView } from '../../src/log/log-view.ts';
import type { Entry } from '../../src/types.ts';

const step = fc.oneof(
  fc.record({ do: fc.constant('append' as const), raise: fc.nat({ max: 1 }) }),
  fc.record({ do: fc.constant('supersede' as const), back: fc.nat({ max: 6 }), count: fc.nat({ max: 3 }) }),
  fc.record({ do: fc.constantFrom('write' as const, 'sync' as const, 'apply' as const, 'install' as const) }),
);

/** The same log as a plain model: a list of entries, a list of writes, and a disk that does one write after the other. */
class Model {
  entries: Entry[] = [];
  disk: Entry[] = [];
  base = 0;
  readonly writes: { readonly seq: number; readonly entries: readonly Entry[]; readonly base: number }[] = [];

  get last(): number {
    return this.base + this.entries.length;
  }
  at(index: number): Entry | undefined {
    return this.entries[index - this.base - 1];
  }
  /** Returns the last entry of the current log up to which the disk holds it without a gap. */
  get stable(): number {
    let stable = this.base;
    while (stable < this.last && this.disk.find(({ index }) => index === stable + 1)?.term === this.at(stable + 1)?.term)
      stable++;
    return stable;
  }
}

describe('LogView, against a plain model of log and disk', () => {
  it('never treats entries as stable that are not on disk, even if some are superseded while writes are under way (ABA)', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const log = new LogView({ base: { index: 0, term: 0 }, lastIndex: 0, terms: [] });
        const model = new Model();
        let [term, seq, applied] = [1, 0, 0];
        const push = (): void => {
          const entry: Entry = { term, index: model.last + 1, type: 'normal', data: new Uint8Array(1) };
          model.entries.push(entry);
          log.push(entry);
        };
        for (const action of steps) {
          if (action.do === 'append') {
            term += action.raise;
            push();
          } else if (action.do === 'supersede') {
            const from = Math.max(applied + 1, model.last - action.back);
            if (from > model.last || from <= model.base) continue;
            term += 1;
            log.truncate(from);
            model.entries.length = from - model.base - 1;
            for (let i = 0; i <= action.count; i++) push();
          } else if (action.do === 'write') {
            seq += 1;
            const entries = log.takeUnwritten(seq);
            if (entries.length > 0) model.writes.push({ seq, entries, base: model.base });
          } else if (action.do === 'sync') {
            const write = model.writes.shift();
            if (write === undefined) continue;
            if (write.base === model.base) {
              const first = write.entries[0]?.index ?? 0;
              model.disk = [...model.disk.filter(({ index }) => index < first), ...write.entries];
            }
            log.persisted(write.seq);
          } else if (action.do === 'apply') {
            applied = Math.max(applied, log.stableIndex);
            log.release(applied);
          } else {
            term += 1;
            const index = model.last + 2;
            log.install({ index, term });
            model.base = index;
            model.entries = [];
            model.disk = [];
            applied = index;
          }
          log.checkInvariants();
          expect(log.lastIndex).to.equal(model.last);
          expect(log.stableIndex, 'stable is on the disk').to.be.at.most(model.stable);
          for (const { index, term: of } of model.entries) expect(log.termAt(index)).to.equal(of);
          const { memoryFirst } = log;
          expect(log.inMemory({ lo: memoryFirst, hi: model.last, maxBytes: 1_000 })).to.deep.equal(
            model.entries.filter(({ index }) => index >= memoryFirst),
          );
        }
        log.takeUnwritten(seq + 1);
        log.persisted(seq + 1);
        expect(log.stableIndex, 'all is stable once all is written').to.equal(model.last);
      }),
      { numRuns: 400 },
    );
  });

  it('limits an acknowledgement to the entries that are still in the log: a late one for an overwritten entry does not count', () => {
    const log = new LogView({ base: { index: 0, term: 0 }, lastIndex: 0, terms: [] });
    const entry = (index: number, term: number): Entry => ({ term, index, type: 'normal', data: new Uint8Array(1) });
    for (const index of [1, 2, 3]) log.push(entry(index, 1));
    log.takeUnwritten(1);
    expect(log.truncate(2)).to.equal(true);
    log.push(entry(2, 2));
    log.takeUnwritten(2);
    log.persisted(1);
    expect(log.stableIndex).to.equal(1);
    log.persisted(2);
    expect(log.stableIndex).to.equal(2);
  });
});
