import { expect } from 'chai';
import { CommittedEntries } from '../../../src/core/commit/committed.ts';
import { LogView } from '../../../src/log/log-view.ts';
import type { Entry } from '../../../src/types.ts';

const entry = (index: number): Entry => ({ index, term: 1, type: 'normal', data: new Uint8Array(1) });

describe('committed entries that are read back from the disk', () => {
  for (const { name, arrives } of [
    { name: 'was never carried out', arrives: false },
    { name: 'arrives late', arrives: true },
  ])
    it(`are handed out after a snapshot although the read that it made obsolete ${name}`, () => {
      const log = new LogView({ base: { index: 0, term: 0 }, lastIndex: 9, terms: [{ term: 1, firstIndex: 1 }] });
      const entries = new CommittedEntries(log, { applied: 1, bytesMax: 1_000 });
      const { readLog: obsolete } = entries.take(4);
      entries.reset(6);
      const { readLog: present } = entries.take(8);
      expect([obsolete, present]).to.deep.equal([
        { for: 0, lo: 2, hi: 4 },
        { for: 0, lo: 7, hi: 8 },
      ]);
      if (obsolete !== undefined && arrives) entries.logRead(obsolete, [2, 3, 4].map(entry));
      if (present !== undefined) entries.logRead(present, [7, 8].map(entry));
      expect(entries.take(8).committed.map(({ index }) => index)).to.deep.equal([7, 8]);
    });
});
