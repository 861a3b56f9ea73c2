import { expect } from 'chai';
import { NoncePool } from '../../src/algorithms/nonce-pool.ts';

describe('NoncePool', () => {
  it('never returns a nonce twice, across several fillings', () => {
    const pool = new NoncePool();
    const seen = new Set<string>();
    for (let i = 0; i < 5000; i++) seen.add(Buffer.from(pool.take()).toString('hex'));
    expect(seen.size).to.equal(5000);
  });

  it('returns twelve bytes that do not change when the pool is filled again', () => {
    const pool = new NoncePool();
    const nonce = pool.take();
    const before = Buffer.from(nonce);
    for (let i = 0; i < 1000; i++) pool.take();
    expect(nonce).to.have.lengthOf(12);
    expect(before.equals(nonce)).to.equal(true);
  });
});
