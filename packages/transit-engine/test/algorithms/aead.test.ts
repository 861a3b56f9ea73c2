import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type Aead, open, seal } from '../../src/algorithms/aead.ts';
import { keyType } from '../../src/keys/key-type.ts';
import { TransitError } from '../../src/values/errors.ts';
import { aeadOf, secret } from '../fixtures.ts';

interface Vector {
  readonly tcId: number;
  readonly comment: string;
  readonly key: string;
  readonly iv: string;
  readonly aad: string;
  readonly msg: string;
  readonly ct: string;
  readonly tag: string;
  readonly result: 'valid' | 'invalid';
}
interface Group {
  readonly ivSize: number;
  readonly keySize: number;
  readonly tagSize: number;
  readonly tests: readonly Vector[];
}

const groupsOf = (file: string): readonly Group[] =>
  JSON.parse(readFileSync(new URL(`../vectors/${file}`, import.meta.url), 'utf8')).testGroups;
const hex = (text: string): Buffer => Buffer.from(text, 'hex');

function opened(type: Aead, vector: Vector): string {
  try {
    const payload = Buffer.concat([hex(vector.iv), hex(vector.ct), hex(vector.tag)]);
    return open(type, secret(hex(vector.key)), { payload, associatedData: hex(vector.aad) }).toString('hex');
  } catch (error) {
    if (error instanceof TransitError) return error.message;
    throw error;
  }
}

function sealed(type: Aead, vector: Vector): string {
  const input = { plaintext: hex(vector.msg), associatedData: hex(vector.aad), nonce: hex(vector.iv) };
  return seal(type, secret(hex(vector.key)), input).toString('hex');
}

describe('seal and open, on the vectors of Wycheproof', () => {
  for (const { file, name, keySize, expected } of [
    { file: 'aes_gcm_test.json', name: 'aes128-gcm96', keySize: 128, expected: { valid: 32, invalid: 21 } },
    { file: 'aes_gcm_test.json', name: 'aes256-gcm96', keySize: 256, expected: { valid: 30, invalid: 19 } },
    { file: 'chacha20_poly1305_test.json', name: 'chacha20-poly1305', keySize: 256, expected: { valid: 200, invalid: 47 } },
  ] as const) {
    const type = aeadOf(name);
    const vectors = groupsOf(file)
      .filter((group) => group.keySize === keySize && group.ivSize === 96 && group.tagSize === 128)
      .flatMap(({ tests }) => tests);
    const [valid, invalid] = [vectors.filter((v) => v.result === 'valid'), vectors.filter((v) => v.result === 'invalid')];

    it(`${name}: ${expected.valid} valid cases are encrypted and decrypted, byte for byte`, () => {
      expect(valid).to.have.lengthOf(expected.valid);
      for (const vector of valid) {
        expect(sealed(type, vector), vector.comment).to.equal(vector.iv + vector.ct + vector.tag);
        expect(opened(type, vector), vector.comment).to.equal(vector.msg);
      }
    });

    it(`${name}: ${expected.invalid} modified cases are refused with one text`, () => {
      expect(invalid).to.have.lengthOf(expected.invalid);
      for (const vector of invalid) expect(opened(type, vector), vector.comment).to.equal(type.authenticationFailure);
    });
  }

  it('skips AES-192, which is not a key type, and nonces of other lengths', () => {
    const all = [...groupsOf('aes_gcm_test.json'), ...groupsOf('chacha20_poly1305_test.json')];
    const count = (groups: readonly Group[]): number => groups.flatMap(({ tests }) => tests).length;
    const otherKey = all.filter(({ keySize }) => keySize === 192);
    const otherNonce = all.filter(({ keySize, ivSize }) => keySize !== 192 && ivSize !== 96);
    expect(all.every(({ tagSize }) => tagSize === 128)).to.equal(true);
    expect({ all: count(all), otherKey: count(otherKey), otherNonce: count(otherNonce) }).to.deep.equal({
      all: 489,
      otherKey: 79,
      otherNonce: 61,
    });
    expect(() => keyType('aes192-gcm96')).to.throw(TransitError, 'unknown key type aes192-gcm96');
  });
});

describe('seal', () => {
  for (const bytes of [0, 11, 13]) {
    it(`refuses a nonce of ${bytes} bytes`, () => {
      const input = { plaintext: Buffer.from('x'), associatedData: Buffer.alloc(0), nonce: Buffer.alloc(bytes) };
      expect(() => seal(aeadOf('aes256-gcm96'), secret(Buffer.alloc(32)), input)).to.throw(`not ${bytes}`);
    });
  }
});

describe('open', () => {
  const type = aeadOf('aes256-gcm96');
  const key = secret(Buffer.alloc(32));
  for (const { bytes, message } of [
    { bytes: 0, message: 'invalid ciphertext length' },
    { bytes: 11, message: 'invalid ciphertext length' },
    { bytes: 12, message: 'cipher: message authentication failed' },
    { bytes: 27, message: 'cipher: message authentication failed' },
    { bytes: 28, message: 'cipher: message authentication failed' },
  ]) {
    it(`refuses ${bytes} random bytes: ${message}`, () => {
      const input = { payload: Buffer.alloc(bytes), associatedData: Buffer.alloc(0) };
      expect(() => open(type, key, input)).to.throw(TransitError, message);
    });
  }
});
