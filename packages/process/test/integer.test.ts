import { expect } from 'chai';
import { integerOf } from '../src/integer.ts';

describe('an integer', () => {
  for (const [text, integer] of [
    ['0', 0],
    ['42', 42],
    ['+42', 42],
    ['-42', -42],
    ['0x1F', 31],
    ['0b101', 5],
    ['0o17', 15],
    ['017', 15],
    ['-0x10', -16],
  ] as const)
    it(`${text} is ${integer}`, () => expect(integerOf(text)).to.equal(integer));

  for (const text of ['', '+', '1.0', '1e3', '08', '0x', '0b2', ' 1', '1_000'])
    it(`${JSON.stringify(text)} is invalid`, () => expect(integerOf(text)).to.be.NaN);
});
