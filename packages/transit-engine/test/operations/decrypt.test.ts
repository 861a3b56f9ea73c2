import { expect } from 'chai';
import { aeadTypes, base64, contextOne, decryptOne, encryptOne, fox, newEngine, refusalOf, rewrapOne } from '../fixtures.ts';

const noise = Buffer.alloc(48).toString('base64');

const mistakes = [
  [{}, 'invalid_request', 'missing ciphertext to decrypt'],
  [{ ciphertext: '' }, 'invalid_request', 'missing ciphertext to decrypt'],
  [{ ciphertext: 'abc' }, 'invalid_ciphertext', 'invalid ciphertext: no prefix'],
  [{ ciphertext: 'SVC:v1:AAAA' }, 'invalid_ciphertext', 'invalid ciphertext: no prefix'],
  [{ ciphertext: 'svc:v1' }, 'invalid_ciphertext', 'invalid ciphertext: wrong number of fields'],
  [{ ciphertext: 'svc:vx:AAAA' }, 'invalid_ciphertext', 'invalid ciphertext: version number could not be decoded'],
  [{ ciphertext: 'svc:v4:AAAA' }, 'invalid_ciphertext', 'invalid ciphertext: version is too new'],
  [
    { ciphertext: `svc:v1:${noise}` },
    'key_version_unavailable',
    'ciphertext or signature version is disallowed by policy (too old)',
  ],
  [
    { ciphertext: `svc:v-5:${noise}` },
    'key_version_unavailable',
    'ciphertext or signature version is disallowed by policy (too old)',
  ],
  [{ ciphertext: 'svc:v3:!!' }, 'invalid_ciphertext', 'invalid ciphertext: could not decode base64'],
  [{ ciphertext: 'svc:v3:AAAA' }, 'invalid_ciphertext', 'invalid ciphertext length'],
  [{ ciphertext: `svc:v3:${noise}` }, 'invalid_ciphertext', 'cipher: message authentication failed'],
  [{ ciphertext: `svc:v3:${noise}`, context: '!!' }, 'invalid_request', 'illegal base64 data at input byte 0'],
  [
    { ciphertext: `svc:v3:${noise}`, nonce: base64('123456789012') },
    'invalid_request',
    'provided nonce not allowed for this key',
  ],
] as const;

async function keyOfThreeVersions() {
  const { engine } = newEngine();
  await engine.createKey('k', {});
  await engine.rotateKey('k');
  await engine.rotateKey('k');
  await engine.configureKey('k', { minDecryptionVersion: 2 });
  return engine;
}

for (const operation of ['decrypt', 'rewrap'] as const) {
  describe(operation, () => {
    for (const [request, code, message] of mistakes) {
      it(`refuses ${JSON.stringify(request).slice(0, 60)}: ${message}`, async () => {
        const engine = await keyOfThreeVersions();
        expect(await refusalOf(engine.ciphertexts[operation]('k', request))).to.deep.equal({ code, message });
      });
    }

    it('refuses an unknown key', async () => {
      const { engine } = newEngine();
      expect(await refusalOf(engine.ciphertexts[operation]('k', { ciphertext: 'svc:v1:AAAA' }))).to.deep.equal({
        code: 'key_not_found',
        message: 'encryption key not found',
      });
      expect((await refusalOf(engine.ciphertexts[operation]('k', {}))).message).to.equal('missing ciphertext to decrypt');
    });

    it("refuses another key's ciphertext", async () => {
      const { engine } = newEngine();
      await engine.createKey('a', {});
      await engine.createKey('b', {});
      const { ciphertext } = await encryptOne(engine, 'a', { plaintext: fox });
      expect((await refusalOf(engine.ciphertexts[operation]('b', { ciphertext }))).message).to.equal(
        'cipher: message authentication failed',
      );
    });

    it('refuses another context', async () => {
      const { engine } = newEngine();
      await engine.createKey('k', { derived: true, type: 'chacha20-poly1305' });
      const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox, context: contextOne });
      expect(
        (await refusalOf(engine.ciphertexts[operation]('k', { ciphertext, context: base64('context two') }))).message,
      ).to.equal('chacha20poly1305: message authentication failed');
    });
  });
}

describe('decrypt', () => {
  it('requires the associated data of the encryption; absent and empty are the same', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const associatedData = base64('bound data');
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox, associatedData });
    expect(await decryptOne(engine, 'k', { ciphertext, associatedData })).to.deep.equal({ plaintext: fox });
    for (const wrong of [undefined, '', base64('bound datA')]) {
      expect((await refusalOf(engine.ciphertexts.decrypt('k', { ciphertext, associatedData: wrong }))).message).to.contain(
        'authentication failed',
      );
    }
    expect((await refusalOf(engine.ciphertexts.decrypt('k', { ciphertext, associatedData: '!!' }))).message).to.equal(
      'unable to get associated_data/additional_data from factory[0]: illegal base64 data at input byte 0',
    );
    const unbound = await encryptOne(engine, 'k', { plaintext: fox, associatedData: '' });
    expect(await decryptOne(engine, 'k', { ciphertext: unbound.ciphertext })).to.deep.equal({ plaintext: fox });
  });

  it('refuses a padding scheme, which only RSA keys use', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    expect(
      (await refusalOf(engine.ciphertexts.decrypt('k', { ciphertext: 'svc:v1:AAAA', paddingScheme: 'none' }))).message,
    ).to.equal("'[0].padding_scheme' invalid: unknown padding scheme: none");
  });

  it('decrypts every version from the minimum on', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const made: string[] = [];
    for (let version = 1; version <= 3; version++) {
      made.push((await encryptOne(engine, 'k', { plaintext: base64(`version ${version}`) })).ciphertext);
      await engine.rotateKey('k');
    }
    for (const [index, ciphertext] of made.entries()) {
      expect(await decryptOne(engine, 'k', { ciphertext })).to.deep.equal({ plaintext: base64(`version ${index + 1}`) });
    }
  });

  it('accepts the prefix of Vault', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    expect(await decryptOne(engine, 'k', { ciphertext: ciphertext.replace('svc:', 'vault:') })).to.deep.equal({ plaintext: fox });
  });
});

describe('rewrap', () => {
  it('encrypts under the latest version and does not return the plaintext', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    await engine.rotateKey('k');
    const reply = await rewrapOne(engine, 'k', { ciphertext });
    expect(reply).to.have.all.keys('ciphertext', 'parts', 'keyVersion');
    expect(reply.parts.join('')).to.equal(reply.ciphertext);
    expect(reply.ciphertext).to.match(/^svc:v2:/);
    expect(reply.keyVersion).to.equal(2);
  });

  it('uses a new nonce at the same version', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    expect((await rewrapOne(engine, 'k', { ciphertext })).ciphertext).to.not.equal(ciphertext);
  });

  for (const type of aeadTypes)
    for (const settings of [{}, { derived: true }, { derived: true, convergentEncryption: true }])
      it(`binds the new ciphertext to the same associated data: ${type} ${JSON.stringify(settings)}`, async () => {
        const { engine } = newEngine();
        await engine.createKey('k', { type, ...settings });
        const bound = { associatedData: base64('bound data'), ...('derived' in settings && { context: contextOne }) };
        const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox, ...bound });
        await engine.rotateKey('k');
        const renewed = await rewrapOne(engine, 'k', { ciphertext, ...bound });
        expect(renewed.keyVersion).to.equal(2);
        expect(await decryptOne(engine, 'k', { ciphertext: renewed.ciphertext, ...bound })).to.deep.equal({ plaintext: fox });
        const direct = await encryptOne(engine, 'k', { plaintext: fox, ...bound });
        if ('convergentEncryption' in settings) expect(renewed).to.deep.equal(direct);
        for (const associatedData of [undefined, '', base64('bound datA')])
          for (const request of [{ ciphertext }, { ciphertext: renewed.ciphertext }]) {
            const wrong = { ...request, ...bound, associatedData };
            const refused = await refusalOf(decryptOne(engine, 'k', wrong));
            expect(refused.message).to.contain('message authentication failed');
            expect(await refusalOf(rewrapOne(engine, 'k', wrong))).to.deep.equal(refused);
          }
      });

  it('takes the associated data of each item of a batch, and not that of another', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const items = await Promise.all(
      ['one', 'two', ''].map(async (text) => {
        const associatedData = base64(text);
        return { associatedData, ciphertext: (await encryptOne(engine, 'k', { plaintext: fox, associatedData })).ciphertext };
      }),
    );
    const rewrapped = async (asked: typeof items) => {
      const reply = await engine.ciphertexts.rewrap('k', { items: asked });
      return 'results' in reply ? reply.results : [];
    };
    for (const [at, result] of (await rewrapped(items)).entries()) {
      if ('error' in result) throw new Error(result.error);
      const { associatedData } = items[at] ?? {};
      expect(await decryptOne(engine, 'k', { ciphertext: result.ciphertext, associatedData })).to.deep.equal({ plaintext: fox });
    }
    const exchanged = items.map(({ ciphertext }, at) => ({
      ciphertext,
      associatedData: items[(at + 1) % 3]?.associatedData ?? '',
    }));
    for (const result of await rewrapped(exchanged))
      expect(result).to.deep.equal({ error: 'cipher: message authentication failed', reference: '' });
  });

  it('refuses associated data that is no base64, and on keys that are no AEAD', async () => {
    const { engine } = newEngine();
    await engine.createKey('aes', {});
    await engine.createKey('rsa', { type: 'rsa-2048' });
    for (const [name, associatedData, message] of [
      ['aes', '!!', 'unable to get associated_data/additional_data from factory[0]: illegal base64 data at input byte 0'],
      ['rsa', fox, "'[0].associated_data' provided for non-AEAD cipher suite rsa-2048"],
    ] as const) {
      const { ciphertext } = await encryptOne(engine, name, { plaintext: fox });
      expect((await refusalOf(rewrapOne(engine, name, { ciphertext, associatedData }))).message).to.equal(message);
    }
  });

  for (const [request, message] of [
    [{ keyVersion: 2 }, 'requested version for encryption is higher than the latest key version'],
    [{ keyVersion: -1 }, 'requested version for encryption is negative'],
    [{ decryptPaddingScheme: 'x' }, "'[0].decrypt_padding_scheme' invalid: unknown padding scheme: x"],
    [{ encryptPaddingScheme: 'x' }, "'[0].encrypt_padding_scheme' invalid: unknown padding scheme: x"],
  ] as const) {
    it(`refuses ${JSON.stringify(request)}: ${message}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', {});
      const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
      expect((await refusalOf(engine.ciphertexts.rewrap('k', { ciphertext, ...request }))).message).to.equal(message);
    });
  }
});
