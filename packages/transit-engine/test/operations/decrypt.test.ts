import { expect } from 'chai';
import { base64, contextOne, decryptOne, encryptOne, fox, newEngine, refusalOf, rewrapOne } from '../fixtures.ts';

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
    expect(reply).to.have.all.keys('ciphertext', 'keyVersion');
    expect(reply.ciphertext).to.match(/^svc:v2:/);
    expect(reply.keyVersion).to.equal(2);
  });

  it('uses a new nonce at the same version', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    expect((await rewrapOne(engine, 'k', { ciphertext })).ciphertext).to.not.equal(ciphertext);
  });

  it('refuses ciphertexts with associated data', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox, associatedData: base64('x') });
    expect((await refusalOf(engine.ciphertexts.rewrap('k', { ciphertext }))).message).to.contain('authentication failed');
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
