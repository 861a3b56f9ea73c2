import { createHash } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { codePoint } from '../../../../test/code-points.ts';
import { addToDigest, DigestSum, emptyDigest, recordDigest, removeFromDigest } from '../../src/store/digest.ts';

const record = fc.record({ path: fc.string(), value: fc.uint8Array(), revision: fc.nat() });
const sum = (shares: readonly bigint[]) => shares.reduce(addToDigest, emptyDigest);

function sha256Of({ path, value, revision }: { path: string; value: Uint8Array; revision: number }): bigint {
  const lengths = Buffer.alloc(16);
  lengths.writeUInt32BE(Buffer.byteLength(path));
  lengths.writeUInt32BE(value.length, 4);
  lengths.writeBigUInt64BE(BigInt(revision), 8);
  const hash = createHash('sha256').update(lengths.subarray(0, 4)).update(path).update(lengths.subarray(4, 8)).update(value);
  return BigInt(`0x${hash.update(lengths.subarray(8)).digest('hex')}`);
}

describe('state digest', () => {
  it('is SHA-256 of the length-prefixed path and value and the revision', () => {
    const bytes = Buffer.from('00000002c3a9 00000003 78797a 0000000000000102'.replaceAll(' ', ''), 'hex');
    const expected = BigInt(`0x${createHash('sha256').update(bytes).digest('hex')}`);
    expect(recordDigest({ path: 'é', value: Buffer.from('xyz'), revision: 258 })).to.equal(expected);
  });

  it('includes all 64 bits of the revision', () => {
    const bytes = Buffer.from('0000000161 00000000 001fffffffffffff'.replaceAll(' ', ''), 'hex');
    const expected = BigInt(`0x${createHash('sha256').update(bytes).digest('hex')}`);
    expect(recordDigest({ path: 'a', value: Buffer.alloc(0), revision: Number.MAX_SAFE_INTEGER })).to.equal(expected);
  });

  it('does not depend on the order of the records or on removed records', () => {
    fc.assert(
      fc.property(fc.array(record), record, (records, extra) => {
        const shares = records.map(recordDigest);
        const share = recordDigest(extra);
        expect(sum(shares.toReversed())).to.equal(sum(shares));
        expect(removeFromDigest(sum([share, ...shares]), share)).to.equal(sum(shares));
      }),
    );
  });

  it('is the same when DigestSum adds many records, including long ones and any text', () => {
    const any = fc.record({
      path: fc.string({ unit: codePoint, maxLength: 40 }),
      value: fc.oneof(fc.uint8Array(), fc.constantFrom(Buffer.alloc(16 * 1024, 1), Buffer.alloc(100_000, 2))),
      revision: fc.nat(),
    });
    fc.assert(
      fc.property(fc.array(any), (records) => {
        const all = new DigestSum();
        for (const one of records) all.add(one);
        expect(all.digest).to.equal(sum(records.map(sha256Of)));
        expect(sum(records.map(recordDigest))).to.equal(all.digest);
      }),
    );
  });

  it('stays below 2^256', () => {
    const most = 2n ** 256n - 1n;
    expect(addToDigest(most, 2n)).to.equal(1n);
    expect(removeFromDigest(1n, 2n)).to.equal(most);
  });
});
