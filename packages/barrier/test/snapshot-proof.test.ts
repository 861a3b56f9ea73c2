import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { isSnapshotProof, proveSnapshot } from '../src/snapshot-proof.ts';

describe('snapshot proof', () => {
  const rootKey = randomBytes(32);
  const sums = Buffer.from('sums');

  it('is valid only for its checksums and its root key', () => {
    const proof = proveSnapshot(rootKey, sums);
    expect(isSnapshotProof(rootKey, sums, proof)).to.equal(true);
    expect(isSnapshotProof(rootKey, Buffer.from('sumz'), proof)).to.equal(false);
    expect(isSnapshotProof(randomBytes(32), sums, proof)).to.equal(false);
  });

  it('is different each time', () => {
    expect(proveSnapshot(rootKey, sums)).not.to.deep.equal(proveSnapshot(rootKey, sums));
  });

  it('is invalid after a change of any bit or of its length', () => {
    const proof = proveSnapshot(rootKey, sums);
    fc.assert(
      fc.property(fc.nat(proof.length * 8 - 1), (bit) => {
        const changed = Buffer.from(proof);
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(isSnapshotProof(rootKey, sums, changed)).to.equal(false);
      }),
    );
    for (const other of [Buffer.alloc(0), proof.subarray(1), Buffer.concat([proof, Buffer.of(0)])])
      expect(isSnapshotProof(rootKey, sums, other)).to.equal(false);
  });
});
