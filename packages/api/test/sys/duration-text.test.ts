import { secondsOf } from '@transitd/process';
import { expect } from 'chai';
import fc from 'fast-check';
import { durationText, secondsText } from '../../src/sys/duration-text.ts';

describe('the text of a duration', () => {
  for (const [seconds, text] of [
    [0, '0s'],
    [59, '59s'],
    [60, '1m0s'],
    [90, '1m30s'],
    [3600, '1h0m0s'],
    [86_400, '24h0m0s'],
  ] as const)
    it(`of ${seconds} seconds is ${text}`, () => {
      expect(durationText(seconds)).to.equal(text);
    });

  it('is parsed as the same duration', () => {
    fc.assert(
      fc.property(fc.nat(9_000_000_000), (seconds) => {
        expect(secondsOf(durationText(seconds))).to.equal(seconds);
      }),
    );
  });

  it('has milliseconds for measured durations', () => {
    expect([0, 47.4, 4600, 61_000].map(secondsText)).to.deep.equal(['0s', '0.047s', '4.6s', '61s']);
  });
});
