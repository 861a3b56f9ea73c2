import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { isProof, prove } from '../src/root-key-proof.ts';

describe('a proof of the root key', () => {
  const rootKey = randomBytes(32);
  const sums = Buffer.from('sums');

  it('is valid only for its subject and its root key', () => {
    const proof = prove(rootKey, 'snapshot', sums);
    expect(isProof(rootKey, 'snapshot', sums, proof)).to.equal(true);
    expect(isProof(rootKey, 'snapshot', Buffer.from('sumz'), proof)).to.equal(false);
    expect(isProof(randomBytes(32), 'snapshot', sums, proof)).to.equal(false);
    expect(isProof(rootKey, 'answering node', sums, proof)).to.equal(false);
  });

  it('is different each time', () => {
    expect(prove(rootKey, 'snapshot', sums)).not.to.deep.equal(prove(rootKey, 'snapshot', sums));
  });

  it('is invalid after a change of any bit or of its length', () => {
    const proof = prove(rootKey, 'snapshot', sums);
    fc.assert(
      fc.property(fc.nat(proof.length * 8 - 1), (bit) => {
        const changed = Buffer.from(proof);
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(isProof(rootKey, 'snapshot', sums, changed)).to.equal(false);
      }),
    );
    for (const other of [Buffer.alloc(0), proof.subarray(1), Buffer.concat([proof, Buffer.of(0)])])
      expect(isProof(rootKey, 'snapshot', sums, other)).to.equal(false);
  });
});
