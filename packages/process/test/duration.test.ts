import { expect } from 'chai';
import { secondsOf } from '../src/duration.ts';

describe('a duration', () => {
  for (const [text, seconds] of [
    ['90', 90],
    ['+90', 90],
    ['-90', -90],
    ['2d', 172_800],
    ['1h30m', 5400],
    ['1.5h', 5400],
    ['+30m', 1800],
    ['-30m', -1800],
    ['.5m', 30],
    ['1500ms', 1],
    ['0s', 0],
  ] as const)
    it(`${text} is ${seconds} s`, () => expect(secondsOf(text)).to.equal(seconds));

  for (const text of ['', '+', 's', '1x', '1h 30m', '1.5d', '1,5h', '1w'])
    it(`${JSON.stringify(text)} is invalid`, () => expect(secondsOf(text)).to.be.NaN);

  it('below one second does not become 0, which means no limit', () => expect(secondsOf('999ms')).to.be.NaN);

  it('has at most 64 characters', () => expect(secondsOf('0'.repeat(65))).to.be.NaN);
});
