import { createHash, randomBytes } from 'node:crypto';
import type { SealTerms } from '@transitd/barrier';
import { expect } from 'chai';
import { PendingJoin } from '../../src/join/join-pending.ts';

const shares = [1, 2, 3].map(() => randomBytes(33));
const terms: SealTerms = {
  type: 'shamir',
  shares: 3,
  threshold: 2,
  shareHashes: shares.map((share) => createHash('sha256').update(share).digest()),
  keyId: '',
};
const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = shares;

describe('a join that waits for shares', () => {
  it('looks like a sealed node with the seal of the cluster', () => {
    const pending = new PendingJoin(terms);
    expect(pending.sealStatus).to.deep.equal({
      type: 'shamir',
      initialized: false,
      sealed: true,
      t: 2,
      n: 3,
      progress: 0,
      nonce: '',
      recoverySeal: false,
      migration: false,
    });
  });

  it('counts different shares, under one nonce, until there are enough', () => {
    const pending = new PendingJoin(terms);
    expect(pending.addShare(first)).to.equal(false);
    const { nonce } = pending.sealStatus;
    expect(nonce).to.match(/^[0-9a-f-]{36}$/);
    expect(pending.addShare(first)).to.equal(false);
    expect(pending.sealStatus).to.include({ progress: 1, nonce });
    expect(pending.addShare(second)).to.equal(true);
    expect(pending.sealStatus).to.include({ progress: 2, nonce });
    expect(pending.addShare(second), 'the last share again, for another attempt').to.equal(true);
  });

  it('refuses a wrong share at once and keeps the progress', () => {
    const pending = new PendingJoin(terms);
    pending.addShare(first);
    expect(() => pending.addShare(randomBytes(33)))
      .to.throw('not one of the shares')
      .with.property('code', 'invalid_share');
    expect(pending.sealStatus.progress).to.equal(1);
  });

  it('wipes its copies at a reset and begins again under another nonce', () => {
    const pending = new PendingJoin(terms);
    pending.addShare(first);
    const { nonce } = pending.sealStatus;
    const { given } = pending.shares;
    const copy = Buffer.from(first);
    pending.reset();
    expect(pending.sealStatus).to.include({ progress: 0, nonce: '' });
    expect(given.map((share) => share.every((byte) => byte === 0))).to.deep.equal([true]);
    expect(first, 'the share stays with its owner').to.deep.equal(copy);
    pending.addShare(first);
    expect(pending.sealStatus.nonce).not.to.equal(nonce);
  });
});
