import { expect } from 'chai';
import { LogView } from '../../src/log/log-view.ts';

const data = new Uint8Array(10);
const stored = () => new LogView({ base: { index: 2, term: 1 }, lastIndex: 5, terms: [{ term: 1, firstIndex: 3 }] });

describe('LogView', () => {
  it('treats stored entries as stable, by their terms alone', () => {
    const log = stored();
    expect([log.baseIndex, log.lastIndex, log.stableIndex, log.memoryFirst, log.lastTerm]).to.deep.equal([2, 5, 5, 6, 1]);
    expect(log.hasUnwritten).to.equal(false);
  });

  it('hands each entry out to be written once, and counts it as stable only after its write is acknowledged', () => {
    const log = stored();
    log.append({ term: 2, type: 'normal', data });
    expect(log.takeUnwritten(1).map(({ index }) => index)).to.deep.equal([6]);
    log.append({ term: 2, type: 'normal', data });
    log.append({ term: 2, type: 'normal', data });
    expect(log.takeUnwritten(2).map(({ index }) => index)).to.deep.equal([7, 8]);
    expect(log.takeUnwritten(3)).to.deep.equal([]);
    log.persisted(1);
    expect(log.stableIndex).to.equal(6);
    log.checkInvariants();
    log.persisted(3);
    expect(log.stableIndex).to.equal(8);
    log.checkInvariants();
  });

  it('keeps entries until they are both stable and applied', () => {
    const log = stored();
    for (let i = 0; i < 3; i++) log.append({ term: 2, type: 'normal', data });
    log.takeUnwritten(1);
    log.release(8);
    expect(log.memoryFirst, 'not stable').to.equal(6);
    log.persisted(1);
    log.release(7);
    expect(log.memoryFirst, 'entry 8 not applied').to.equal(8);
    expect(log.inMemory({ lo: 8, hi: 8, maxBytes: 1 })).to.have.length(1);
    expect(() => log.inMemory({ lo: 7, hi: 8, maxBytes: 1 })).to.throw(/in memory/);
    log.checkInvariants();
  });

  it('counts the payload of the entries in memory', () => {
    const log = stored();
    log.append({ term: 2, type: 'normal', data });
    log.append({ term: 2, type: 'noop', data: new Uint8Array(0) });
    log.append({ term: 2, type: 'normal', data });
    expect(log.bytesInMemory({ lo: 3, hi: 8 })).to.equal(20);
    expect(log.bytesInMemory({ lo: 6, hi: 7 })).to.equal(10);
  });

  it('compacts only below the entries in memory, and never back', () => {
    const log = stored();
    log.append({ term: 2, type: 'normal', data });
    expect(() => log.compacted({ index: 6, term: 2 })).to.throw(/compaction/);
    log.compacted({ index: 5, term: 1 });
    expect(() => log.compacted({ index: 4, term: 1 })).to.throw(/compaction/);
    expect(log.termAt(5)).to.equal(1);
    expect(() => log.termAt(4)).to.throw();
    log.checkInvariants();
  });
});
