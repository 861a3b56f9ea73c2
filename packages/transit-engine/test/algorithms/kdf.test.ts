import { Hmac, hkdfSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { hkdfExpand, hkdfExtract } from '../../src/algorithms/kdf.ts';
import { secret } from '../fixtures.ts';

interface Vector {
  readonly comment: string;
  readonly ikm: string;
  readonly salt: string;
  readonly info: string;
  readonly size: number;
  readonly okm: string;
  readonly result: 'valid' | 'invalid';
}

const file = new URL('../vectors/hkdf_sha256_test.json', import.meta.url);
const groups: readonly { readonly tests: readonly Vector[] }[] = JSON.parse(readFileSync(file, 'utf8')).testGroups;
const vectors = groups.flatMap(({ tests }) => tests);
const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const derived = ({ ikm, salt, info, size }: Vector): string =>
  hkdfExpand(hkdfExtract(hex(ikm), salt === '' ? undefined : secret(hex(salt))), hex(info), size).toString('hex');

describe('HKDF-SHA256, on the vectors of Wycheproof', () => {
  it('computes the output of 65 valid cases', () => {
    const valid = vectors.filter(({ result }) => result === 'valid');
    expect(valid).to.have.lengthOf(65);
    for (const vector of valid) expect(derived(vector), vector.comment).to.equal(vector.okm);
  });

  it('refuses the 2 cases with too long an output', () => {
    const invalid = vectors.filter(({ result }) => result === 'invalid');
    expect(invalid).to.have.lengthOf(2);
    for (const vector of invalid) expect(() => derived(vector), vector.comment).to.throw(RangeError);
  });
});

describe('HKDF-SHA256', () => {
  it('agrees with node:crypto within its limits, without a salt', () => {
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 64 });
    fc.assert(
      fc.property(bytes, fc.uint8Array({ maxLength: 1024 }), fc.integer({ min: 1, max: 200 }), (material, info, length) => {
        const expected = Buffer.from(hkdfSync('sha256', material, '', info, length));
        expect(hkdfExpand(hkdfExtract(material), info, length).equals(expected)).to.equal(true);
      }),
    );
  });

  it('wipes its intermediate blocks', () => {
    const { digest } = Hmac.prototype;
    const blocks: Uint8Array[] = [];
    Hmac.prototype.digest = new Proxy(digest, {
      apply(target, hmac, encoding) {
        const block: unknown = Reflect.apply(target, hmac, encoding);
        if (block instanceof Uint8Array) blocks.push(block);
        return block;
      },
    });
    try {
      expect(hkdfExpand(hkdfExtract(Buffer.alloc(32)), Buffer.from('info'), 80)).to.have.lengthOf(80);
    } finally {
      Hmac.prototype.digest = digest;
    }
    expect(blocks).to.have.lengthOf(4);
    for (const block of blocks) expect([...block]).to.deep.equal(Array(32).fill(0));
  });

  it('accepts a context of any length', () => {
    expect(hkdfExpand(hkdfExtract(Buffer.alloc(32)), Buffer.alloc(100_000), 32)).to.have.lengthOf(32);
  });
});
