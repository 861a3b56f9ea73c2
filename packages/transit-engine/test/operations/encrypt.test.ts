import { createDecipheriv, hkdfSync } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import {
  aeadOf,
  aeadTypes,
  base64,
  contextOne,
  decryptOne,
  encryptOne,
  fox,
  layoutOf,
  newEngine,
  refusalOf,
  rewrapOne,
  storedVersion,
} from '../fixtures.ts';

const missingContext =
  "missing 'context' for key derivation; the key was created using a derived key, which means additional, per-request information must be included in order to perform operations with the key";

/** Decrypts a ciphertext with node:crypto and the raw key. */
function openByHand(type: string, key: Uint8Array, ciphertext: string, associatedData: string): string {
  const { nonce, sealed, tag } = layoutOf(ciphertext);
  const { cipher } = aeadOf(type);
  const decipher =
    cipher === 'chacha20-poly1305'
      ? createDecipheriv(cipher, key, nonce, { authTagLength: 16 })
      : createDecipheriv(cipher, key, nonce, { authTagLength: 16 });
  decipher.setAAD(Buffer.from(associatedData, 'base64'), { plaintextLength: sealed.length });
  decipher.setAuthTag(tag);
  return Buffer.concat([decipher.update(sealed), decipher.final()]).toString('base64');
}

describe('encrypt', () => {
  for (const type of aeadTypes) {
    it(`${type}: the payload is nonce, ciphertext, tag under the raw key`, async () => {
      const { engine, store } = newEngine();
      await engine.createKey('k', { type });
      const associatedData = base64('bound data');
      const { ciphertext, keyVersion } = await encryptOne(engine, 'k', { plaintext: fox, associatedData });
      expect(ciphertext).to.match(/^svc:v1:[A-Za-z0-9+/]+=*$/);
      expect(keyVersion).to.equal(1);
      expect(Buffer.from(ciphertext.slice(7), 'base64')).to.have.lengthOf(19 + 28);
      const { material } = await storedVersion(store, 'k', 1);
      expect(openByHand(type, material, ciphertext, associatedData)).to.equal(fox);
    });

    it(`${type}: a derived key uses HKDF-SHA256 of the context`, async () => {
      const { engine, store } = newEngine();
      await engine.createKey('k', { type, derived: true });
      const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox, context: contextOne });
      const { material } = await storedVersion(store, 'k', 1);
      const key = Buffer.from(hkdfSync('sha256', material, '', 'context one', material.length));
      expect(openByHand(type, key, ciphertext, '')).to.equal(fox);
    });
  }

  it('returns a different ciphertext each time, also on derived keys', async () => {
    const { engine } = newEngine();
    await engine.createKey('plain', {});
    await engine.createKey('derived', { derived: true });
    const seen = new Set<string>();
    for (let i = 0; i < 100; i++) {
      seen.add((await encryptOne(engine, 'plain', { plaintext: fox })).ciphertext);
      seen.add((await encryptOne(engine, 'derived', { plaintext: fox, context: contextOne })).ciphertext);
    }
    expect(seen.size).to.equal(200);
  });

  for (const length of [0, 1, 32, 100_000])
    it(`returns a ciphertext of ${length} bytes also in its two parts`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', {});
      await engine.rotateKey('k');
      const plaintext = Buffer.alloc(length, 7).toString('base64');
      const { ciphertext, parts } = await encryptOne(engine, 'k', { plaintext });
      expect(parts.join('')).to.equal(ciphertext);
      expect(parts[0]).to.equal('svc:v2:');
      expect(await decryptOne(engine, 'k', { ciphertext })).to.deep.equal({ plaintext });
      const rewrapped = await rewrapOne(engine, 'k', { ciphertext });
      expect(await decryptOne(engine, 'k', { ciphertext: rewrapped.parts.join('') })).to.deep.equal({ plaintext });
    });

  it('accepts an empty plaintext', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: '' });
    expect(Buffer.from(ciphertext.slice(7), 'base64')).to.have.lengthOf(28);
    expect(await decryptOne(engine, 'k', { ciphertext })).to.deep.equal({ plaintext: '' });
  });

  for (const [request, message] of [
    [{}, 'missing plaintext to encrypt'],
    [{ plaintext: 'not base64!' }, 'illegal base64 data at input byte 3'],
    [{ plaintext: 'aGVsbG8' }, 'illegal base64 data at input byte 4'],
    [{ plaintext: fox, context: '!!' }, 'illegal base64 data at input byte 0'],
    [{ plaintext: fox, nonce: '!!' }, 'illegal base64 data at input byte 0'],
    [{ plaintext: fox, nonce: base64('123456789012') }, 'provided nonce not allowed for this key'],
    [
      { plaintext: fox, associatedData: '!!' },
      'unable to get associated_data/additional_data from factory[0]: illegal base64 data at input byte 0',
    ],
    [{ plaintext: fox, paddingScheme: 'none' }, "'[0].padding_scheme' invalid: unknown padding scheme: none"],
    [{ plaintext: fox, paddingScheme: 'OAEP' }, "'[0].padding_scheme' invalid: unknown padding scheme: OAEP"],
    [
      { plaintext: fox, paddingScheme: 'oaep' },
      "'[0].padding_scheme' invalid: unsupported key type aes256-gcm96 for padding scheme",
    ],
    [{ plaintext: fox, keyVersion: -1 }, 'requested version for encryption is negative'],
    [{ plaintext: fox, keyVersion: 4 }, 'requested version for encryption is higher than the latest key version'],
  ] as const) {
    it(`refuses ${JSON.stringify(request)}: ${message}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', {});
      await engine.rotateKey('k');
      await engine.rotateKey('k');
      expect((await refusalOf(encryptOne(engine, 'k', request))).message).to.equal(message);
    });
  }

  it('accepts min_encryption_version and refuses versions below it', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    await engine.rotateKey('k');
    await engine.configureKey('k', { minEncryptionVersion: 2 });
    expect(await refusalOf(encryptOne(engine, 'k', { plaintext: fox, keyVersion: 1 }))).to.deep.equal({
      code: 'key_version_unavailable',
      message: 'requested version for encryption is less than the minimum encryption key version',
    });
    expect(await encryptOne(engine, 'k', { plaintext: fox, keyVersion: 2 })).to.include({ keyVersion: 2 });
  });

  it('refuses a version that could not be decrypted again', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    await engine.rotateKey('k');
    await engine.configureKey('k', { minDecryptionVersion: 2 });
    expect((await refusalOf(encryptOne(engine, 'k', { plaintext: fox, keyVersion: 1 }))).message).to.equal('no such key version');
  });

  it('ignores a valid context on a key that is not derived', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox, context: contextOne });
    expect(await decryptOne(engine, 'k', { ciphertext })).to.deep.equal({ plaintext: fox });
  });

  it('requires a context on a derived key, not empty before or after decoding', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { derived: true });
    for (const context of [undefined, '', '\r\n']) {
      expect((await refusalOf(encryptOne(engine, 'k', { plaintext: fox, context }))).message).to.equal(missingContext);
    }
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox, context: contextOne });
    expect((await refusalOf(engine.ciphertexts.decrypt('k', { ciphertext }))).message).to.equal(missingContext);
  });

  it('accepts a context of any length', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { derived: true });
    const context = base64('c'.repeat(100_000));
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox, context });
    expect(await decryptOne(engine, 'k', { ciphertext, context })).to.deep.equal({ plaintext: fox });
  });
});

describe('a round trip', () => {
  const bytes = fc.uint8Array({ maxLength: 100 }).map((array) => Buffer.from(array).toString('base64'));
  const context = fc.uint8Array({ minLength: 1, maxLength: 40 }).map((array) => Buffer.from(array).toString('base64'));

  it('returns any plaintext, for any type, derivation, associated data and version', async () => {
    const { engine } = newEngine();
    const keys = aeadTypes.flatMap((type) => [
      { name: `${type}-plain`, type },
      { name: `${type}-derived`, type, derived: true },
      { name: `${type}-convergent`, type, derived: true, convergentEncryption: true },
    ]);
    for (const { name, ...settings } of keys) {
      await engine.createKey(name, settings);
      await engine.rotateKey(name);
      await engine.rotateKey(name);
    }
    const request = fc.record({ plaintext: bytes, associatedData: bytes, context, keyVersion: fc.nat(3) });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...keys), request, async ({ name }, { plaintext, ...rest }) => {
        const { ciphertext, keyVersion } = await encryptOne(engine, name, { plaintext, ...rest });
        expect(keyVersion).to.equal(rest.keyVersion === 0 ? 3 : rest.keyVersion);
        expect(await decryptOne(engine, name, { ciphertext, ...rest })).to.deep.equal({ plaintext });
      }),
    );
  });

  it('through rewrap returns the plaintext, at any version', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { derived: true });
    await engine.rotateKey('k');
    await fc.assert(
      fc.asyncProperty(bytes, context, fc.nat(2), fc.nat(2), async (plaintext, info, from, to) => {
        const { ciphertext } = await encryptOne(engine, 'k', { plaintext, context: info, keyVersion: from });
        const rewrapped = await rewrapOne(engine, 'k', { ciphertext, context: info, keyVersion: to });
        expect(rewrapped.keyVersion).to.equal(to === 0 ? 2 : to);
        expect(rewrapped.ciphertext).to.not.equal(ciphertext);
        expect(await decryptOne(engine, 'k', { ciphertext: rewrapped.ciphertext, context: info })).to.deep.equal({ plaintext });
      }),
    );
  });

  it('is refused when any byte of the payload was changed', async () => {
    const { engine } = newEngine();
    for (const type of aeadTypes) {
      await engine.createKey(type, { type });
      const { ciphertext } = await encryptOne(engine, type, { plaintext: fox });
      const payload = Buffer.from(ciphertext.slice(7), 'base64');
      for (let at = 0; at < payload.length; at++) {
        const changed = Buffer.from(payload);
        changed.writeUInt8(changed.readUInt8(at) ^ (1 << (at % 8)), at);
        const refusal = await refusalOf(engine.ciphertexts.decrypt(type, { ciphertext: `svc:v1:${changed.toString('base64')}` }));
        expect(refusal, `byte ${at}`).to.deep.equal({
          code: 'invalid_ciphertext',
          message: aeadOf(type).authenticationFailure,
        });
      }
    }
  });
});

describe('convergent encryption', () => {
  const convergent = { derived: true, convergentEncryption: true };
  const bytes = fc.uint8Array({ maxLength: 20 }).map((array) => Buffer.from(array).toString('base64'));
  const context = fc.uint8Array({ minLength: 1, maxLength: 20 }).map((array) => Buffer.from(array).toString('base64'));

  it('is a function of plaintext, context, associated data and version', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', convergent);
    await engine.rotateKey('k');
    const request = fc.record({ plaintext: bytes, context, associatedData: bytes, keyVersion: fc.integer({ min: 1, max: 2 }) });
    await fc.assert(
      fc.asyncProperty(request, request, async (a, b) => {
        const [first, second, again] = [
          await encryptOne(engine, 'k', a),
          await encryptOne(engine, 'k', b),
          await encryptOne(engine, 'k', a),
        ];
        expect(again).to.deep.equal(first);
        expect(first.ciphertext === second.ciphertext).to.equal(JSON.stringify(a) === JSON.stringify(b));
      }),
    );
  });

  it('never uses one nonce for two different pairs of plaintext and associated data', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', convergent);
    const pair = fc.record({ plaintext: fc.constantFrom('', fox), associatedData: bytes });
    await fc.assert(
      fc.asyncProperty(pair, pair, async (a, b) => {
        fc.pre(JSON.stringify(a) !== JSON.stringify(b));
        const one = await encryptOne(engine, 'k', { ...a, context: contextOne });
        const other = await encryptOne(engine, 'k', { ...b, context: contextOne });
        expect(layoutOf(one.ciphertext).nonce.equals(layoutOf(other.ciphertext).nonce)).to.equal(false);
      }),
    );
  });

  it('is unchanged by a rewrap at the same version', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', convergent);
    const made = await encryptOne(engine, 'k', { plaintext: fox, context: contextOne });
    expect(await rewrapOne(engine, 'k', { ciphertext: made.ciphertext, context: contextOne })).to.deep.equal(made);
  });
});
