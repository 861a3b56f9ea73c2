import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { closeSeal, decodeSeal, openSeal, type SealTerms } from '../../src/seal/seal-record.ts';

const key = randomBytes(32);
const rootKey = randomBytes(32);
const terms: SealTerms = {
  type: 'static',
  shares: 2,
  threshold: 2,
  shareHashes: [randomBytes(32), randomBytes(32)],
  keyId: 'k1',
};
const changed = (change: object): Buffer =>
  Buffer.from(JSON.stringify({ ...JSON.parse(closeSeal(terms, key, rootKey).toString()), ...change }));

describe("the seal's record", () => {
  it('is plaintext JSON with a root key that the wrapping key opens', () => {
    const stored = closeSeal(terms, key, rootKey);
    expect(JSON.parse(stored.toString())).to.include({ format: 1, type: 'static', shares: 2, threshold: 2, keyId: 'k1' });
    expect(decodeSeal(stored)).to.deep.include(terms);
    expect(openSeal(decodeSeal(stored), key)).to.deep.equal(rootKey);
  });

  it('does not open with another key', () => {
    expect(openSeal(decodeSeal(closeSeal(terms, key, rootKey)), randomBytes(32))).to.equal(undefined);
  });

  for (const [what, change] of Object.entries({
    'the hash of a share, so that nobody can add a share of their own': {
      shareHashes: [randomBytes(32).toString('hex'), terms.shareHashes[1]?.toString('hex')],
    },
    'their order': { shareHashes: terms.shareHashes.map((hash) => hash.toString('hex')).reverse() },
    'the threshold': {
      shares: 3,
      threshold: 2,
      shareHashes: [...terms.shareHashes, randomBytes(32)].map((hash) => hash.toString('hex')),
    },
    'the type': { type: 'shamir' },
    'the key id': { keyId: 'k2' },
  }))
    it(`does not open after a change of ${what}`, () => {
      expect(openSeal(decodeSeal(changed(change)), key)).to.equal(undefined);
    });

  it('has a name only with a provider, and does not open after a change of the name', () => {
    const named: SealTerms = { ...terms, type: 'transit', name: 'n1', wrappedKey: 'svc:v1:AA==' };
    const stored = closeSeal(named, key, rootKey);
    expect(decodeSeal(stored)).to.deep.include(named);
    expect(openSeal(decodeSeal(stored), key)).to.deep.equal(rootKey);
    for (const name of ['n2', undefined]) {
      const other = decodeSeal(Buffer.from(JSON.stringify({ ...JSON.parse(stored.toString()), name })));
      expect(openSeal(other, key)).to.equal(undefined);
    }
    for (const name of ['', 'a b', 'x'.repeat(65), 7, null])
      expect(() => decodeSeal(Buffer.from(JSON.stringify({ ...JSON.parse(stored.toString()), name }))))
        .to.throw(/core\/seal/)
        .with.property('code', 'barrier_corrupt');
  });

  for (const [what, stored] of Object.entries({
    'not JSON': Buffer.from('{'),
    null: Buffer.from('null'),
    'of another format': changed({ format: 2 }),
    'of a named seal without a provider': changed({ name: 'n' }),
    'of an unknown type': changed({ type: 'other' }),
    'without its hashes': changed({ shareHashes: [] }),
    'with impossible counts': changed({ threshold: 3 }),
    'without a root key': changed({ wrappedRootKey: undefined }),
  }))
    it(`is refused when it is ${what}`, () => {
      expect(() => decodeSeal(stored))
        .to.throw(/core\/seal/)
        .with.property('code', 'barrier_corrupt');
    });
});
