import { expect } from 'chai';
import { NoncePool } from '../src/nonce-pool.ts';

describe('NoncePool', () => {
  it('never gives a nonce twice, over several fillings', () => {
    const pool = new NoncePool();
    const seen = new Set<string>();
    for (let i = 0; i < 5000; i++) {
      const nonce = Buffer.alloc(12);
      pool.take(nonce);
      seen.add(nonce.toString('hex'));
    }
    expect(seen.size).to.equal(5000);
  });

  it('fills twelve bytes and leaves the rest of the payload alone', () => {
    const payload = Buffer.alloc(20);
    new NoncePool().take(payload);
    expect(payload.subarray(12).equals(Buffer.alloc(8))).to.equal(true);
    expect(payload.subarray(0, 12).equals(Buffer.alloc(12))).to.equal(false);
  });
});
