import { createHash } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { addToDigest, emptyDigest, recordDigest, removeFromDigest } from '../src/digest.ts';

const record = fc.record({ path: fc.string(), value: fc.uint8Array(), revision: fc.nat() });
const sum = (shares: readonly bigint[]) => shares.reduce(addToDigest, emptyDigest);

describe('state digest', () => {
  it('is SHA-256 of the length-prefixed path and value and the revision', () => {
    const bytes = Buffer.from('00000002c3a9 00000003 78797a 0000000000000102'.replaceAll(' ', ''), 'hex');
    const expected = BigInt(`0x${createHash('sha256').update(bytes).digest('hex')}`);
    expect(recordDigest({ path: 'é', value: Buffer.from('xyz'), revision: 258 })).to.equal(expected);
  });

  it('counts all 64 bits of the revision', () => {
    const bytes = Buffer.from('0000000161 00000000 001fffffffffffff'.replaceAll(' ', ''), 'hex');
    const expected = BigInt(`0x${createHash('sha256').update(bytes).digest('hex')}`);
    expect(recordDigest({ path: 'a', value: Buffer.alloc(0), revision: Number.MAX_SAFE_INTEGER })).to.equal(expected);
  });

  it('does not depend on the order of the records, and a record that goes leaves no trace', () => {
    fc.assert(
      fc.property(fc.array(record), record, (records, extra) => {
        const shares = records.map(recordDigest);
        const share = recordDigest(extra);
        expect(sum(shares.toReversed())).to.equal(sum(shares));
        expect(removeFromDigest(sum([share, ...shares]), share)).to.equal(sum(shares));
      }),
    );
  });

  it('stays below 2^256', () => {
    const most = 2n ** 256n - 1n;
    expect(addToDigest(most, 2n)).to.equal(1n);
    expect(removeFromDigest(1n, 2n)).to.equal(most);
  });
});
