import { createHmac, hkdfSync } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { hkdfExtract } from '../../src/algorithms/kdf.ts';
import { deriveConvergent, deriveKey } from '../../src/keys/derivation.ts';

const material = Buffer.from('000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f', 'hex');
const key = hkdfExtract(material);
const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));
const context = fc.uint8Array({ minLength: 1, maxLength: 40 }).map((array) => Buffer.from(array));
const none = Buffer.alloc(0);

function convergent(inputs: { context: Buffer; associatedData: Buffer; plaintext: Buffer }, keyBytes = 32) {
  const { key: derived, nonce } = deriveConvergent(key, inputs, keyBytes);
  return { key: derived.export().toString('hex'), nonce: Buffer.from(nonce).toString('hex') };
}

describe('deriveKey', () => {
  it('returns HKDF-SHA256 of material and context, at the length of the type', () => {
    for (const length of [16, 32]) {
      const expected = Buffer.from(hkdfSync('sha256', material, '', 'context one', length));
      expect(deriveKey(key, Buffer.from('context one'), length).export().equals(expected)).to.equal(true);
    }
  });
});

describe('deriveConvergent', () => {
  it('without associated data computes the nonce from the plaintext under the 32 bytes after the key', () => {
    fc.assert(
      fc.property(context, bytes, fc.constantFrom(16, 32), (info, plaintext, keyBytes) => {
        const output = Buffer.from(hkdfSync('sha256', material, '', info, keyBytes + 32));
        const nonce = createHmac('sha256', output.subarray(keyBytes)).update(plaintext).digest().subarray(0, 12);
        expect(convergent({ context: info, associatedData: none, plaintext }, keyBytes)).to.deep.equal({
          key: output.subarray(0, keyBytes).toString('hex'),
          nonce: nonce.toString('hex'),
        });
      }),
    );
  });

  it('with associated data computes the nonce from its length, itself and the plaintext under the next 32 bytes', () => {
    const associated = fc.uint8Array({ minLength: 1, maxLength: 300 }).map((array) => Buffer.from(array));
    fc.assert(
      fc.property(context, associated, bytes, fc.constantFrom(16, 32), (info, associatedData, plaintext, keyBytes) => {
        const output = Buffer.from(hkdfSync('sha256', material, '', info, keyBytes + 64));
        const length = Buffer.from(associatedData.length.toString(16).padStart(16, '0'), 'hex');
        const input = Buffer.concat([length, associatedData, plaintext]);
        const nonce = createHmac('sha256', output.subarray(keyBytes + 32))
          .update(input)
          .digest()
          .subarray(0, 12);
        expect(convergent({ context: info, associatedData, plaintext }, keyBytes)).to.deep.equal({
          key: output.subarray(0, keyBytes).toString('hex'),
          nonce: nonce.toString('hex'),
        });
      }),
    );
  });

  it('returns another nonce when a byte moves between associated data and plaintext', () => {
    const inputs = (associatedData: string, plaintext: string) => ({
      context: Buffer.from('c'),
      associatedData: Buffer.from(associatedData),
      plaintext: Buffer.from(plaintext),
    });
    const nonces = [inputs('ab', 'c'), inputs('a', 'bc'), inputs('', 'abc'), inputs('', 'c'), inputs('', 'bc')].map(
      (input) => convergent(input).nonce,
    );
    expect(new Set(nonces).size).to.equal(5);
  });
});
