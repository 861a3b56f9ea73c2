import { BarrierError, ProviderError } from '@transitd/barrier';
import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { TestClock } from '../../process/test/test-clock.ts';
import { UnsealRetry } from '../src/unseal-retry.ts';

function newRetry() {
  const clock = new TestClock();
  const retry = new UnsealRetry(clock, () => 0);
  return { retry, clock };
}
const unopened = new BarrierError('barrier_corrupt', 'the seal key "k" does not open the record core/seal');

describe('the retry of an automatic unseal', () => {
  it('asks for a key that does not open the records at most 70 times an hour', () => {
    const { retry, clock } = newRetry();
    let attempts = 0;
    for (; clock.ms < 3_600_000; clock.ms += 1000) {
      if (!retry.isDue) continue;
      attempts += 1;
      retry.failed(unopened);
    }
    expect(attempts).to.be.within(60, 70);
    expect(retry.health).to.deep.equal({ healthy: false, unhealthySinceMs: 1_000_000, failure: 'wrong_key' });
  });

  it('starts again at once after a success, and is healthy', () => {
    const { retry } = newRetry();
    retry.failed(unopened);
    expect(retry.isDue).to.equal(false);
    retry.succeeded();
    expect([retry.isDue, retry.health]).to.deep.equal([true, undefined]);
  });

  it('leaves the delay to the provider, and shows that it does not open the stored key', () => {
    const { retry } = newRetry();
    retry.failed(new ProviderError('unreachable', 'away'));
    expect([retry.isDue, retry.health]).to.deep.equal([true, undefined]);
    retry.failed(new ProviderError('wrong_key', 'deleted'));
    expect([retry.isDue, retry.health?.failure]).to.deep.equal([true, 'wrong_key']);
  });

  it('waits longer and longer while the services cannot be loaded from the records, and does not blame the key', () => {
    const { retry, clock } = newRetry();
    let attempts = 0;
    for (; clock.ms < 3_600_000; clock.ms += 1000) {
      if (!retry.isDue) continue;
      attempts += 1;
      retry.notLoaded(new Error('the record core/mounts has an unknown format'));
    }
    expect(attempts).to.be.within(60, 70);
    expect(retry.health).to.equal(undefined);
  });

  it('does not wait after a failure of the store, such as a read while no leader is known', () => {
    const { retry } = newRetry();
    const stopped = new StoreError('stopped', 'the node stops');
    retry.failed(stopped);
    expect([retry.isDue, retry.health]).to.deep.equal([true, undefined]);
    retry.notLoaded(stopped);
    expect([retry.isDue, retry.health]).to.deep.equal([true, undefined]);
  });
});
