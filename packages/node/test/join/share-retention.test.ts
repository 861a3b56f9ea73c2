import { RateLimited } from '@transitd/access';
import { expect } from 'chai';
import { AddressRate } from '../../src/join/address-rate.ts';
import { GivenShares } from '../../src/join/share-retention.ts';

const refusalOf = (task: () => void): string => {
  try {
    task();
  } catch (error) {
    if (error instanceof RateLimited) return `${error.resetS} s`;
    throw error;
  }
  return 'admitted';
};

describe('shares that were given', () => {
  it('are kept for a minute after the newest, and then forgotten for an address once in ten minutes', () => {
    const clock = { nowMs: 1_000_000 };
    const shares = new GivenShares(() => clock.nowMs);
    const reset = (address: string) => refusalOf(() => shares.admitReset(address));
    shares.given();
    expect(reset('192.0.2.66')).to.equal('60 s');
    clock.nowMs += 40_000;
    shares.given();
    clock.nowMs += 59_000;
    expect(reset('192.0.2.66')).to.equal('1 s');
    clock.nowMs += 1_000;
    expect(reset('192.0.2.66')).to.equal('admitted');
    expect(reset('::ffff:192.0.2.66')).to.equal('600 s');
    expect(reset('192.0.2.7'), 'another address').to.equal('admitted');
    clock.nowMs += 600_000;
    expect(reset('192.0.2.66')).to.equal('admitted');
  });
});

describe('a rate by address', () => {
  it('takes an IPv6 /64 for one caller, and remembers a bounded number of callers', () => {
    const rate = new AddressRate({ rate: 1, intervalS: 60, blockIntervalS: 0 }, { refusal: 'too often', now: () => 0 });
    const ask = (address: string) => refusalOf(() => rate.admit(address));
    expect([ask('2001:db8::1'), ask('2001:db8::2:0:0:1')]).to.deep.equal(['admitted', '60 s']);
    for (let n = 0; n < 4_096; n += 1) rate.admit(`10.0.${n >> 8}.${n & 255}`);
    expect(ask('2001:db8::1'), 'forgotten for newer ones').to.equal('admitted');
    expect(ask('10.0.15.255')).to.equal('60 s');
  });
});
