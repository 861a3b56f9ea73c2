import { expect } from 'chai';
import fc from 'fast-check';
import { jsonValuesMax } from '../../src/fields/json.ts';
import { valuesAtMost } from '../../src/fields/value-count.ts';

const atMost = (text: string): number => valuesAtMost(Buffer.from(text));
const valuesIn = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Object.values(value).reduce((sum: number, one) => sum + valuesIn(one), 0) : 1;

describe('the most values of a body', () => {
  it('are never fewer than it has', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1), (value, indent) => {
        const text = JSON.stringify({ value }, undefined, indent);
        expect(atMost(text)).to.be.at.least(Math.min(valuesIn({ value }), Math.ceil(text.length / 2)));
      }),
    );
  });

  it('are few for one long text, whatever it contains except a backslash', () => {
    expect(atMost(`{"plaintext":"${'A'.repeat(1_000_000)}","context":"${',[{'.repeat(100_000)}"}`)).to.equal(3);
    expect(atMost(`{"plaintext":"${'A'.repeat(1_000)}\\n"}`)).to.be.above(500);
  });

  it('follow from the length for a body of many values or blanks, up to the most that are parsed', () => {
    expect(atMost(`[${'{},'.repeat(200_000)}{}]`)).to.equal(300_002);
    expect(atMost(' '.repeat(3_000_000))).to.equal(jsonValuesMax);
  });

  it('are counted in a body that is not JSON', () => {
    for (const text of ['"', '{"', '}', '', '{"a']) expect(atMost(text)).to.be.within(0, 2);
  });
});
