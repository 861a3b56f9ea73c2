// HKDF, HMAC and hashes, compared with @noble/hashes: JavaScript that shares no code with OpenSSL (decision 118).
import { hkdf } from '@noble/hashes/hkdf.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha1 } from '@noble/hashes/legacy.js';
import { sha224, sha256, sha384, sha512 } from '@noble/hashes/sha2.js';
import { sha3_224, sha3_256, sha3_384, sha3_512 } from '@noble/hashes/sha3.js';
import { expect } from 'chai';
import fc from 'fast-check';
import { hkdfExpand, hkdfExtract } from '../../src/algorithms/kdf.ts';
import { hashNames, hashOf } from '../../src/index.ts';
import { base64, decryptOne, encryptOne, layoutOf, newEngine, secret, storedVersion } from '../fixtures.ts';

const hashes = {
  'sha2-224': sha224,
  'sha2-256': sha256,
  'sha2-384': sha384,
  'sha2-512': sha512,
  'sha3-224': sha3_224,
  'sha3-256': sha3_256,
  'sha3-384': sha3_384,
  'sha3-512': sha3_512,
};
const base64Of = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
/** Inputs, some of them longer than a block of any hash. */
const messages = fc.uint8Array({ maxLength: 400 });

describe('compared with @noble/hashes', () => {
  it('every hash of the API has an oracle', () => {
    expect(Object.keys(hashes)).to.have.members([...hashNames]);
  });

  for (const [name, oracle] of Object.entries(hashes)) {
    it(`the hash ${name} is the same`, () =>
      fc.assert(
        fc.asyncProperty(messages, async (message) => {
          const { sum } = await hashOf({ input: base64Of(message), algorithm: name });
          expect(sum).to.equal(Buffer.from(oracle(message)).toString('hex'));
        }),
      ));
  }

  for (const [name, oracle] of Object.entries({ ...hashes, sha1 })) {
    for (const type of ['hmac', 'aes256-gcm96']) {
      it(`the HMAC with ${name} under a key of type ${type} is the same`, async () => {
        const { engine, store } = newEngine();
        await engine.createKey('k', { type });
        const { material, hmacSecret } = await storedVersion(store, 'k', 1);
        const key = type === 'hmac' ? material : hmacSecret;
        await fc.assert(
          fc.asyncProperty(messages, async (message) => {
            const reply = await engine.signing.hmac('k', { input: base64Of(message), algorithm: name });
            expect(reply).to.include({ hmac: `svc:v1:${base64Of(hmac(oracle, key, message))}` });
          }),
          { numRuns: 25 },
        );
      });
    }
  }

  it('HKDF-SHA256 is the same, with contexts longer than node:crypto accepts', () => {
    const material = fc.uint8Array({ minLength: 1, maxLength: 64 });
    fc.assert(
      fc.property(material, fc.uint8Array({ maxLength: 3000 }), fc.integer({ min: 1, max: 300 }), (key, info, length) => {
        const salt = info.subarray(0, 100);
        expect(hkdfExpand(hkdfExtract(key), info, length).equals(hkdf(sha256, key, undefined, info, length))).to.equal(true);
        expect(hkdfExpand(hkdfExtract(key, secret(salt)), info, length).equals(hkdf(sha256, key, salt, info, length))).to.equal(
          true,
        );
      }),
    );
  });

  it('the nonce of a convergent encryption is the HMAC of the plaintext under the second part of the derived bytes', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', { derived: true, convergentEncryption: true });
    const { material } = await storedVersion(store, 'k', 1);
    const [context, plaintext] = ['a context', 'a plaintext'];
    const derived = hkdf(sha256, material, undefined, Buffer.from(context), 96);
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: base64(plaintext), context: base64(context) });
    const nonce = hmac(sha256, derived.subarray(32, 64), Buffer.from(plaintext)).subarray(0, 12);
    expect(layoutOf(ciphertext).nonce.toString('hex')).to.equal(Buffer.from(nonce).toString('hex'));
    expect(await decryptOne(engine, 'k', { ciphertext, context: base64(context) })).to.deep.equal({
      plaintext: base64(plaintext),
    });
  });
});
