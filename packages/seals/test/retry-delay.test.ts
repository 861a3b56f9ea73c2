import { expect } from 'chai';
import { retryDelayMs } from '../src/retry-delay.ts';

describe('the delay after a failure', () => {
  it('starts at 1 s, doubles, and is at most one minute', () => {
    expect([1, 2, 3, 6, 7, 8, 1000].map((failures) => retryDelayMs(failures, 0))).to.deep.equal([
      1000, 2000, 4000, 32_000, 60_000, 60_000, 60_000,
    ]);
  });

  it('is up to a quarter shorter, never zero', () => {
    expect(retryDelayMs(1, 1)).to.equal(750);
    expect(retryDelayMs(100, 1)).to.equal(45_000);
  });

  it('is at least what the provider asked for, up to ten minutes', () => {
    expect(retryDelayMs(1, 0, 30_000)).to.equal(30_000);
    expect(retryDelayMs(100, 0, 5_000)).to.equal(60_000);
    expect(retryDelayMs(1, 0, 86_400_000)).to.equal(600_000);
  });
});
