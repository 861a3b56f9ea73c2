import { expect } from 'chai';
import { unsealedBarrier, unsealWith } from '../../../barrier/test/fixtures.ts';
import { SuccessionKey } from '../../src/node/succession-key.ts';

describe('the key of a succession', () => {
  it('is dropped from memory by a seal, until it can be read again', async () => {
    const { barrier, shares } = await unsealedBarrier();
    const key = new SuccessionKey(barrier);
    await key.renew();
    await key.refresh();
    const before = key.present;
    expect(before).to.have.length(32);
    barrier.seal();
    expect(key.present).to.equal(undefined);
    await key.refresh();
    expect(key.present).to.equal(undefined);
    await unsealWith(barrier, shares.slice(0, 2));
    await key.refresh();
    expect(key.present).to.deep.equal(before);
  });

  it('is not brought back by a read that a seal has overtaken', async () => {
    const { barrier } = await unsealedBarrier();
    await new SuccessionKey(barrier).renew();
    const { store } = barrier;
    const get: typeof store.get = async (path) => {
      const record = await store.get(path);
      barrier.seal();
      return record;
    };
    const key = new SuccessionKey({ store: { ...store, get }, onStateChange: (listener) => barrier.onStateChange(listener) });
    await key.refresh();
    expect(key.present).to.equal(undefined);
  });
});
