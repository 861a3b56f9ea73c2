import { expect } from 'chai';
import fc from 'fast-check';
import { parseShare } from '../../src/index.ts';
import { hashShare, newSharedKey, ShareCollection } from '../../src/seal/shares.ts';

describe('shares of a key', () => {
  it('combine to the key from any threshold of them, in any order, and one fewer is not enough', async () => {
    const counts = fc.integer({ min: 2, max: 9 }).chain((shares) =>
      fc.record({
        shares: fc.constant(shares),
        threshold: fc.integer({ min: 2, max: shares }),
        seed: fc.infiniteStream(fc.nat()),
      }),
    );
    await fc.assert(
      fc.asyncProperty(counts, async ({ shares: count, threshold, seed }) => {
        const { key, shares } = await newSharedKey({ shares: count, threshold });
        const order = shares.map((share) => ({ share, at: seed.next().value ?? 0 })).sort((a, b) => a.at - b.at);
        const collection = new ShareCollection(threshold, shares.map(hashShare));
        for (const [index, { share }] of order.slice(0, threshold).entries()) {
          expect(collection.complete).to.equal(false);
          collection.add(share);
          expect(collection.progress).to.equal(index + 1);
        }
        expect(collection.complete).to.equal(true);
        expect(await collection.combine()).to.deep.equal(key);
      }),
      { numRuns: 40 },
    );
  });

  it('with a count of one are the key itself', async () => {
    const { key, shares } = await newSharedKey({ shares: 1, threshold: 1 });
    expect(shares).to.have.lengthOf(1);
    expect(shares[0]).to.deep.equal(key);
    expect(shares[0]).not.to.equal(key);
    const collection = new ShareCollection(1, shares.map(hashShare));
    collection.add(shares[0] ?? Buffer.alloc(0));
    expect(await collection.combine()).to.deep.equal(key);
  });

  it('can be 255', async () => {
    const { key, shares } = await newSharedKey({ shares: 255, threshold: 255 });
    const collection = new ShareCollection(255, shares.map(hashShare));
    for (const share of shares) collection.add(share);
    expect(await collection.combine()).to.deep.equal(key);
  });

  it('count once however often they are added', async () => {
    const { shares } = await newSharedKey({ shares: 3, threshold: 2 });
    const collection = new ShareCollection(2, shares.map(hashShare));
    for (const share of [shares[0], shares[0], shares[0]]) collection.add(share ?? Buffer.alloc(0));
    expect(collection.progress).to.equal(1);
  });

  it('are refused when wrong, whatever their length, and nothing changes', async () => {
    const { shares } = await newSharedKey({ shares: 3, threshold: 2 });
    const collection = new ShareCollection(2, shares.map(hashShare));
    const [first = Buffer.alloc(0)] = shares;
    collection.add(first);
    const flipped = Array.from(first, (_, at) => Buffer.from(first.map((byte, index) => (index === at ? byte ^ 1 : byte))));
    for (const wrong of [...flipped, Buffer.alloc(0), first.subarray(1), Buffer.alloc(5000)])
      expect(() => collection.add(wrong))
        .to.throw('invalid key')
        .with.property('code', 'invalid_share');
    expect(collection.progress).to.equal(1);
  });

  it('are zeroed and removed from the collection by a wipe, but stay with their owner', async () => {
    const { shares } = await newSharedKey({ shares: 3, threshold: 2 });
    const collection = new ShareCollection(2, shares.map(hashShare));
    const [share = Buffer.alloc(0)] = shares;
    const copy = Buffer.from(share);
    collection.add(share);
    const { given } = collection;
    collection.wipe();
    expect(collection.progress).to.equal(0);
    expect(given.map((each) => each.every((byte) => byte === 0))).to.deep.equal([true]);
    expect(share).to.deep.equal(copy);
  });
});

describe('a share as text', () => {
  for (const [form, share] of [
    ['hex', '00ff10'],
    ['upper-case hex', '00FF10'],
    ['base64', 'AP8Q'],
  ] as const)
    it(`is parsed from ${form}`, () => {
      expect(parseShare(share)).to.deep.equal(Buffer.of(0, 255, 16));
    });

  for (const share of ['!!not-hex-or-b64!!', 'abc', 'AP8', 'AP8Q=', 'AP8Q ', ' ', 'AP_8'])
    it(`is refused when it is ${JSON.stringify(share)}`, () => {
      expect(() => parseShare(share))
        .to.throw("'key' must be a valid hex or base64 string")
        .with.property('code', 'share_encoding');
    });

  it('is required', () => {
    expect(() => parseShare(''))
      .to.throw("'key' must be specified")
      .with.property('code', 'share_missing');
  });

  it('is parsed from both encodings for every length', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 33 }), (bytes) => {
        const share = Buffer.from(bytes);
        expect(parseShare(share.toString('hex'))).to.deep.equal(share);
        expect(parseShare(share.toString('base64'))).to.deep.equal(share);
      }),
    );
  });
});
