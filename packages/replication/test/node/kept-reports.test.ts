import { memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { KeptReports } from '../../src/node/kept-reports.ts';

const id = 'a'.repeat(32);
const promotion = {
  ...{ id, utcMs: 1, isForced: true, position: 7 },
  ...{ lossless: false, missing: 3, missesRestore: false, lag: { entries: 3 } },
};
const inEpoch = { epochs: [{ number: 2, id, start: 7 }] };

describe('kept reports', () => {
  let store: ReturnType<typeof memoryStore>;
  beforeEach(() => {
    store = memoryStore();
  });

  const other = async (): Promise<KeptReports> => {
    const reports = new KeptReports(store);
    await reports.refresh();
    return reports;
  };

  it('are known to another node and after a restart', async () => {
    await new KeptReports(store).keepPromotion(promotion);
    expect((await other()).promotion(inEpoch)).to.deep.equal(promotion);
  });

  it('do not name a promotion that was kept and then not made', async () => {
    await new KeptReports(store).keepPromotion(promotion);
    expect((await other()).promotion({ epochs: [{ number: 2, id: 'b'.repeat(32), start: 7 }] })).to.equal(undefined);
  });

  it('are read again after a read that failed', async () => {
    await new KeptReports(store).keepPromotion(promotion);
    let isSealed = true;
    const reports = new KeptReports({
      get: async (path) => {
        if (isSealed) throw new Error('sealed');
        return store.get(path);
      },
      commit: (transaction) => store.commit(transaction),
      watch: (prefix, listener) => store.watch(prefix, listener),
    });
    await reports.refresh();
    expect(reports.promotion(inEpoch)).to.equal(undefined);
    isSealed = false;
    await reports.refresh();
    expect(reports.promotion(inEpoch)).to.deep.equal(promotion);
  });

  it('ignore a record of a later release', async () => {
    const value = Buffer.from(JSON.stringify({ format: 2, id }));
    await store.commit({ conditions: [], writes: [{ path: 'core/replication/promotion', value }] });
    expect((await other()).promotion(inEpoch)).to.equal(undefined);
  });
});
