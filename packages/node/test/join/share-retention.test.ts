import { RateLimited } from '@transitd/access';
import { expect } from 'chai';
import { TestClock } from '../../../process/test/test-clock.ts';
import { AddressRate } from '../../src/join/address-rate.ts';
import { ShareRetention } from '../../src/join/share-retention.ts';

const refusalOf = (task: () => void): string => {
  try {
    task();
  } catch (error) {
    if (error instanceof RateLimited) return `${error.resetS} s`;
    throw error;
  }
  return 'admitted';
};

describe('ShareRetention', () => {
  it('keeps shares for a minute after the newest share, then lets an address discard them once in ten minutes', () => {
    const clock = new TestClock();
    clock.ms = 1_000_000;
    const shares = new ShareRetention(clock);
    const reset = (address: string) => refusalOf(() => shares.admitDiscard(address));
    shares.shareAccepted();
    expect(reset('192.0.2.66')).to.equal('60 s');
    clock.ms += 40_000;
    shares.shareAccepted();
    clock.ms += 59_000;
    expect(reset('192.0.2.66')).to.equal('1 s');
    clock.ms += 1_000;
    expect(reset('192.0.2.66')).to.equal('admitted');
    expect(reset('::ffff:192.0.2.66')).to.equal('600 s');
    expect(reset('192.0.2.7'), 'another address').to.equal('admitted');
    clock.ms += 600_000;
    expect(reset('192.0.2.66')).to.equal('admitted');
  });
});

describe('AddressRate', () => {
  it('counts an IPv6 /64 as one caller, and remembers a bounded number of callers', () => {
    const rate = new AddressRate({ rate: 1, intervalS: 60, blockIntervalS: 0 }, { refusal: 'too often', clock: new TestClock() });
    const ask = (address: string) => refusalOf(() => rate.admit(address));
    expect([ask('2001:db8::1'), ask('2001:db8::2:0:0:1')]).to.deep.equal(['admitted', '60 s']);
    for (let n = 0; n < 4_096; n += 1) rate.admit(`10.0.${n >> 8}.${n & 255}`);
    expect(ask('2001:db8::1'), 'forgotten in favor of newer callers').to.equal('admitted');
    expect(ask('10.0.15.255')).to.equal('60 s');
  });
});
