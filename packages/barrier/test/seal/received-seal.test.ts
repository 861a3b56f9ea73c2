import { memoryStore, type StoredRecord } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { codeOf, everything, openBarrier, threeOfTwo, unsealWith } from '../fixtures.ts';

const core = ['core/seal', 'core/keyring'];

/** A sealed barrier, and a function that replaces its seal and keyring by those of another cluster, at the same revisions. */
async function receiving() {
  const store = memoryStore({ reportsEverything: true });
  let received: ReadonlyMap<string, Buffer> = new Map();
  const get = async (path: string): Promise<StoredRecord | undefined> => {
    const record = await store.get(path);
    const value = core.includes(path) ? received.get(path) : undefined;
    return record && { ...record, ...(value && { value }) };
  };
  const barrier = await openBarrier({ ...store, get });
  const { shares } = await barrier.initialize(threeOfTwo, []);
  const other = memoryStore();
  const { shares: others } = await (await openBarrier(other)).initialize({ secretShares: 5, secretThreshold: 3 }, []);
  const receive = async (): Promise<void> => {
    received = await everything(other);
    await store.commit({ conditions: [], writes: [{ path: 'core/other', value: Buffer.from('x') }] });
  };
  return { barrier, shares, receive, others };
}

describe('a received seal with the revision of the former one', () => {
  it('is that of the status', async () => {
    const { barrier, receive } = await receiving();
    expect(barrier.sealStatus).to.include({ t: 2, n: 3 });
    await receive();
    await until(() => barrier.sealStatus.n !== 3);
    expect(barrier.sealStatus).to.include({ t: 3, n: 5 });
  });

  it('takes no share of the former seal, and drops those that were given', async () => {
    const { barrier, shares, receive, others } = await receiving();
    await unsealWith(barrier, shares.slice(0, 1));
    await receive();
    expect(await codeOf(barrier.unseal(shares[1] ?? Buffer.alloc(0)))).to.equal('invalid_share');
    await unsealWith(barrier, others.slice(0, 3));
    expect(barrier.state.sealed).to.equal(false);
  });
});
