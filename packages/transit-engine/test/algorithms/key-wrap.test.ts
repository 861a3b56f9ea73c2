import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { unwrapKey, wrapKey } from '../../src/algorithms/key-wrap.ts';
import { TransitError } from '../../src/values/errors.ts';
import { secret } from '../fixtures.ts';

interface Group {
  readonly keySize: number;
  readonly tests: readonly {
    readonly comment: string;
    readonly key: string;
    readonly msg: string;
    readonly ct: string;
    readonly result: 'valid' | 'invalid';
  }[];
}

const file = new URL('../vectors/aes_kwp_test.json', import.meta.url);
const groups: readonly Group[] = JSON.parse(readFileSync(file, 'utf8')).testGroups;
const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const wrapping = secret(Buffer.alloc(32, 5));

describe('key wrap with padding, on the vectors of Wycheproof', () => {
  const cases = groups.filter(({ keySize }) => keySize === 256).flatMap(({ tests }) => tests);
  const [valid, invalid] = (['valid', 'invalid'] as const).map((wanted) => cases.filter(({ result }) => result === wanted));

  it('wraps and unwraps every valid case', () => {
    expect(valid).to.have.length.above(10);
    for (const { key, msg, ct, comment } of valid ?? []) {
      expect(wrapKey(secret(hex(key)), hex(msg)).toString('hex'), comment).to.equal(ct);
      expect(unwrapKey(secret(hex(key)), hex(ct)).toString('hex'), comment).to.equal(msg);
    }
  });

  it('refuses every invalid case with the same text', () => {
    expect(invalid).to.have.length.above(40);
    for (const { key, ct, comment } of invalid ?? []) {
      expect(() => unwrapKey(secret(hex(key)), hex(ct)), comment).to.throw(TransitError, /^kwp: the key material could not/);
    }
  });
});

describe('key wrap with padding', () => {
  const material = fc.uint8Array({ minLength: 1, maxLength: 600 });

  it('is unwrapped to the same content, for any length', () => {
    fc.assert(
      fc.property(material, (bytes) => {
        expect([...unwrapKey(wrapping, wrapKey(wrapping, bytes))]).to.deep.equal([...bytes]);
      }),
    );
  });

  it('is refused when any bit was modified, or when truncated', () => {
    fc.assert(
      fc.property(material, fc.nat(), fc.integer({ min: 0, max: 7 }), (bytes, at, bit) => {
        const wrapped = wrapKey(wrapping, bytes);
        const changed = Buffer.from(wrapped);
        const place = at % wrapped.length;
        changed[place] = (changed[place] ?? 0) ^ (1 << bit);
        expect(() => unwrapKey(wrapping, changed)).to.throw(TransitError);
        expect(() => unwrapKey(wrapping, wrapped.subarray(0, place))).to.throw(TransitError);
      }),
    );
  });
});
