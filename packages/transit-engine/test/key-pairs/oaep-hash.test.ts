import { constants, createPublicKey, publicEncrypt } from 'node:crypto';
import { expect } from 'chai';
import { hashNames, type TransitEngine } from '../../src/index.ts';
import { base64, decryptOne, encryptOne, fox, newEngine, refusalOf, rewrapOne } from '../fixtures.ts';

const notDecrypted = 'failed to RSA decrypt the ciphertext: crypto/rsa: decryption error';
const tooLong = 'failed to RSA encrypt the plaintext: crypto/rsa: message too long for RSA key size';
const hashes = ['sha1', ...hashNames];

/** Bytes of the digests, and the names in OpenSSL. */
const digestBytes = (name: string): number => (name === 'sha1' ? 20 : Number(name.split('-')[1]) / 8);
const inOpenssl = (name: string): string => name.replace('sha2-', 'sha');

describe('the hash of RSA-OAEP', () => {
  let engine: TransitEngine;
  before(async () => {
    ({ engine } = newEngine());
    await engine.createKey('rsa', { type: 'rsa-2048' });
    await engine.createKey('aes', {});
  });

  for (const hashAlgorithm of hashes)
    it(`is that of the request, and fills the whole modulus: ${hashAlgorithm}`, async () => {
      const longest = base64('x'.repeat(256 - 2 * digestBytes(hashAlgorithm) - 2));
      for (const plaintext of ['', fox, longest]) {
        const { ciphertext } = await encryptOne(engine, 'rsa', { plaintext, hashAlgorithm });
        expect(await decryptOne(engine, 'rsa', { ciphertext, hashAlgorithm })).to.deep.equal({ plaintext });
      }
      const longer = base64(`${Buffer.from(longest, 'base64')}x`);
      expect((await refusalOf(encryptOne(engine, 'rsa', { plaintext: longer, hashAlgorithm }))).message).to.equal(tooLong);
    });

  it('must be the same to decrypt; another one is refused as a wrong ciphertext is', async () => {
    for (const made of hashes) {
      const { ciphertext } = await encryptOne(engine, 'rsa', { plaintext: fox, hashAlgorithm: made });
      for (const hashAlgorithm of hashes.filter((each) => each !== made))
        expect(await refusalOf(decryptOne(engine, 'rsa', { ciphertext, hashAlgorithm }))).to.deep.equal({
          code: 'invalid_ciphertext',
          message: notDecrypted,
        });
    }
  });

  it('is sha2-256 by default, also if it is empty', async () => {
    for (const [one, other] of [
      [undefined, 'sha2-256'],
      ['', undefined],
      ['sha2-256', ''],
    ] as const) {
      const { ciphertext } = await encryptOne(engine, 'rsa', { plaintext: fox, hashAlgorithm: one });
      expect(await decryptOne(engine, 'rsa', { ciphertext, hashAlgorithm: other })).to.deep.equal({ plaintext: fox });
    }
  });

  it('is also the hash of the mask, as other programs have it', async () => {
    const { versions } = await engine.readKey('rsa');
    const key = createPublicKey(versions[0]?.pair?.publicKey ?? '');
    for (const hashAlgorithm of hashes) {
      const padding = { padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: inOpenssl(hashAlgorithm) };
      const ciphertext = `svc:v1:${publicEncrypt({ key, ...padding }, Buffer.from(fox, 'base64')).toString('base64')}`;
      expect(await decryptOne(engine, 'rsa', { ciphertext, hashAlgorithm })).to.deep.equal({ plaintext: fox });
    }
  });

  it('is chosen for both sides of a rewrap', async () => {
    const { ciphertext } = await encryptOne(engine, 'rsa', { plaintext: fox, hashAlgorithm: 'sha1' });
    const sides = { decryptHashAlgorithm: 'sha1', encryptHashAlgorithm: 'sha3-384' };
    const renewed = await rewrapOne(engine, 'rsa', { ciphertext, ...sides });
    expect(await decryptOne(engine, 'rsa', { ciphertext: renewed.ciphertext, hashAlgorithm: 'sha3-384' })).to.deep.equal({
      plaintext: fox,
    });
    for (const wrong of [{}, { decryptHashAlgorithm: 'sha3-384' }])
      expect((await refusalOf(rewrapOne(engine, 'rsa', { ciphertext, ...wrong }))).message).to.equal(notDecrypted);
  });

  it('is chosen for each item of a batch', async () => {
    const items = ['sha1', 'sha2-512', undefined].map((hashAlgorithm) => ({ plaintext: fox, hashAlgorithm }));
    const reply = await engine.ciphertexts.encrypt('rsa', { mayCreate: false, mayUpdate: true, items });
    if (!('results' in reply)) throw new Error('the request was a batch');
    for (const [at, result] of reply.results.entries()) {
      if ('error' in result) throw new Error(result.error);
      const request = { ciphertext: result.ciphertext, hashAlgorithm: items[at]?.hashAlgorithm };
      expect(await decryptOne(engine, 'rsa', request)).to.deep.equal({ plaintext: fox });
    }
  });

  for (const [name, request, message] of [
    ['rsa', { hashAlgorithm: 'md5' }, "'[0].hash_algorithm' invalid: unknown hash algorithm: md5"],
    ['rsa', { hashAlgorithm: 'SHA2-256' }, "'[0].hash_algorithm' invalid: unknown hash algorithm: SHA2-256"],
    ['rsa', { hashAlgorithm: 'none' }, "'[0].hash_algorithm' invalid: unknown hash algorithm: none"],
    ['rsa', { hashAlgorithm: 'constructor' }, "'[0].hash_algorithm' invalid: unknown hash algorithm: constructor"],
    [
      'rsa',
      { hashAlgorithm: 'sha1', paddingScheme: 'pkcs1v15' },
      "'[0].hash_algorithm' invalid: padding scheme pkcs1v15 uses no hash",
    ],
    ['aes', { hashAlgorithm: 'sha1' }, "'[0].hash_algorithm' invalid: unsupported key type aes256-gcm96 for hash algorithm"],
    ['aes', { hashAlgorithm: 'md5' }, "'[0].hash_algorithm' invalid: unknown hash algorithm: md5"],
  ] as const)
    it(`is refused: ${name} ${JSON.stringify(request)}`, async () => {
      const refused = { code: 'invalid_request', message };
      expect(await refusalOf(encryptOne(engine, name, { plaintext: fox, ...request }))).to.deep.equal(refused);
      expect(await refusalOf(decryptOne(engine, name, { ciphertext: 'svc:v1:AAAA', ...request }))).to.deep.equal(refused);
      const { hashAlgorithm, ...padding } = request;
      const named = (side: 'decrypt' | 'encrypt') => message.replace(/\.(hash_algorithm|padding_scheme)/, `.${side}_$1`);
      for (const side of ['decrypt', 'encrypt'] as const) {
        const asked = {
          [`${side}HashAlgorithm`]: hashAlgorithm,
          ...('paddingScheme' in padding && { [`${side}PaddingScheme`]: padding.paddingScheme }),
        };
        expect((await refusalOf(rewrapOne(engine, name, { ciphertext: 'svc:v1:AAAA', ...asked }))).message).to.equal(named(side));
      }
      const datakey = { kind: 'wrapped', ...request };
      const argument = message.replace("'[0].hash_algorithm' invalid", 'hash_algorithm argument invalid');
      expect((await refusalOf(engine.ciphertexts.datakey(name, datakey))).message).to.equal(argument);
      expect((await refusalOf(engine.ciphertexts.datakeys(name, { ...datakey, count: 2 }))).message).to.equal(argument);
    });

  it('has no effect on other keys if it is the default', async () => {
    const { ciphertext } = await encryptOne(engine, 'aes', { plaintext: fox, hashAlgorithm: 'sha2-256' });
    expect(await decryptOne(engine, 'aes', { ciphertext, hashAlgorithm: '' })).to.deep.equal({ plaintext: fox });
  });
});
