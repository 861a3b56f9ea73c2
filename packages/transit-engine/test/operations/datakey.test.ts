import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { hashOf } from '../../src/index.ts';
import { base64, contextOne, decryptOne, fox, layoutOf, newEngine, refusalOf } from '../fixtures.ts';

describe('datakey', () => {
  for (const bits of [undefined, 128, 256, 512]) {
    it(`of ${bits ?? 'default'} bits is decrypted by the key, and returned in plaintext only on request`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', {});
      const made = await engine.ciphertexts.datakey('k', { kind: 'plaintext', bits });
      expect(Buffer.from(made.plaintext ?? '', 'base64')).to.have.lengthOf((bits ?? 256) / 8);
      expect(await decryptOne(engine, 'k', { ciphertext: made.ciphertext })).to.deep.equal({ plaintext: made.plaintext });
      const wrapped = await engine.ciphertexts.datakey('k', { kind: 'wrapped', bits });
      expect(wrapped).to.have.all.keys('ciphertext', 'parts', 'keyVersion');
      expect(wrapped.parts.join('')).to.equal(wrapped.ciphertext);
      const { plaintext } = await decryptOne(engine, 'k', { ciphertext: wrapped.ciphertext });
      expect(plaintext).to.not.equal(made.plaintext);
    });
  }

  it('accepts a context, associated data and a version', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { derived: true });
    await engine.rotateKey('k');
    const request = { kind: 'plaintext', context: contextOne, associatedData: fox, keyVersion: 1 };
    const { ciphertext, plaintext, keyVersion } = await engine.ciphertexts.datakey('k', request);
    expect(keyVersion).to.equal(1);
    expect(await decryptOne(engine, 'k', { ciphertext, context: contextOne, associatedData: fox })).to.deep.equal({ plaintext });
    expect((await refusalOf(engine.ciphertexts.decrypt('k', { ciphertext, context: contextOne }))).code).to.equal(
      'invalid_ciphertext',
    );
  });

  for (const [request, message] of [
    [{ kind: 'bogus' }, "Invalid path, must be 'plaintext' or 'wrapped'"],
    [{ kind: 'wrapped', bits: 64 }, 'invalid bit length'],
    [{ kind: 'wrapped', bits: 0 }, 'invalid bit length'],
    [{ kind: 'wrapped', context: '!!' }, 'failed to base64-decode context'],
    [{ kind: 'wrapped', nonce: '!!' }, 'failed to base64-decode nonce'],
    [{ kind: 'wrapped', nonce: base64('123456789012') }, 'provided nonce not allowed for this key'],
    [{ kind: 'wrapped', paddingScheme: 'x' }, 'padding_scheme argument invalid: unknown padding scheme: x'],
    [{ kind: 'wrapped', keyVersion: 2 }, 'requested version for encryption is higher than the latest key version'],
  ] as const) {
    it(`refuses ${JSON.stringify(request)}: ${message}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', {});
      expect((await refusalOf(engine.ciphertexts.datakey('k', request))).message).to.equal(message);
    });
  }

  it('does not create a key', async () => {
    const { engine } = newEngine();
    expect((await refusalOf(engine.ciphertexts.datakey('k', { kind: 'wrapped' }))).message).to.equal('encryption key not found');
    expect(await engine.keyExists('k')).to.equal(false);
  });
});

describe('datakeys', () => {
  for (const [count, bits] of [
    [1, undefined],
    [2, 128],
    [1000, 512],
  ] as const)
    it(`are ${count} different keys of ${bits ?? 'default'} bits, each encrypted by itself`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', {});
      await engine.rotateKey('k');
      const { keyPairs, keyVersion } = await engine.ciphertexts.datakeys('k', { kind: 'plaintext', count, bits });
      expect([keyPairs.length, keyVersion]).to.deep.equal([count, 2]);
      expect(new Set(keyPairs.map(({ plaintext }) => plaintext)).size).to.equal(count);
      expect(new Set(keyPairs.map(({ ciphertext }) => layoutOf(ciphertext).nonce.toString('hex'))).size).to.equal(count);
      for (const { ciphertext, plaintext = '' } of keyPairs) {
        expect(Buffer.from(plaintext, 'base64')).to.have.lengthOf((bits ?? 256) / 8);
        expect(await decryptOne(engine, 'k', { ciphertext })).to.deep.equal({ plaintext });
      }
    });

  it('are returned without plaintexts unless the request asks for them', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', {});
    const { keyPairs } = await engine.ciphertexts.datakeys('k', { kind: 'wrapped', count: 3 });
    for (const pair of keyPairs) expect(pair).to.not.have.property('plaintext');
  });

  it('accept a context, associated data and a version', async () => {
    const { engine } = newEngine();
    for (const [name, convergentEncryption] of [
      ['d', false],
      ['c', true],
    ] as const) {
      await engine.createKey(name, { derived: true, convergentEncryption });
      await engine.rotateKey(name);
      const bound = { context: contextOne, associatedData: fox };
      const { keyPairs, keyVersion } = await engine.ciphertexts.datakeys(name, {
        kind: 'plaintext',
        count: 2,
        keyVersion: 1,
        ...bound,
      });
      expect(keyVersion).to.equal(1);
      for (const { ciphertext, plaintext } of keyPairs) {
        expect(await decryptOne(engine, name, { ciphertext, ...bound })).to.deep.equal({ plaintext });
        expect((await refusalOf(decryptOne(engine, name, { ciphertext, context: contextOne }))).code).to.equal(
          'invalid_ciphertext',
        );
      }
    }
  });

  const wrongCount = 'count must be a number from 1 to 1000';
  for (const [request, message] of [
    [{ kind: 'bogus', count: 1 }, "Invalid path, must be 'plaintext' or 'wrapped'"],
    [{ kind: 'wrapped' }, wrongCount],
    [{ kind: 'wrapped', count: 0 }, wrongCount],
    [{ kind: 'wrapped', count: -1 }, wrongCount],
    [{ kind: 'wrapped', count: 1001 }, wrongCount],
    [{ kind: 'wrapped', count: 2, bits: 64 }, 'invalid bit length'],
    [{ kind: 'wrapped', count: 2, bits: 0 }, 'invalid bit length'],
    [{ kind: 'wrapped', count: 2, context: '!!' }, 'failed to base64-decode context'],
    [{ kind: 'wrapped', count: 2, paddingScheme: 'x' }, 'padding_scheme argument invalid: unknown padding scheme: x'],
    [{ kind: 'wrapped', count: 2, keyVersion: 2 }, 'requested version for encryption is higher than the latest key version'],
  ] as const)
    it(`refuse ${JSON.stringify(request)}: ${message}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', {});
      expect((await refusalOf(engine.ciphertexts.datakeys('k', request))).message).to.equal(message);
    });

  it('do not create a key', async () => {
    const { engine } = newEngine();
    const refused = await refusalOf(engine.ciphertexts.datakeys('k', { kind: 'wrapped', count: 2 }));
    expect(refused).to.deep.equal({ code: 'key_not_found', message: 'encryption key not found' });
  });

  it('leave time to other requests, and end when the engine is closed', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'rsa-4096' });
    let turns = 0;
    const count = setInterval(() => {
      turns += 1;
      if (turns === 2) engine.close();
    }, 0);
    const made = engine.ciphertexts.datakeys('k', { kind: 'wrapped', count: 1000 });
    const ended = await made.catch((error: unknown) => error);
    clearInterval(count);
    expect(ended).to.include({ code: 'sealed' });
  });
});

describe('hash', () => {
  it('supports every algorithm, and defaults to sha2-256 in hex', async () => {
    expect(await hashOf({ input: base64('abc') })).to.deep.equal({
      sum: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    });
    for (const [algorithm, name] of ['224', '256', '384', '512'].flatMap(
      (bits) =>
        [
          [`sha2-${bits}`, `sha${bits}`],
          [`sha3-${bits}`, `sha3-${bits}`],
        ] as const,
    )) {
      const input = Buffer.alloc(2_500_000, 1);
      const sum = createHash(name).update(input).digest('base64');
      expect(await hashOf({ input: input.toString('base64'), algorithm, format: 'base64' })).to.deep.equal({ sum });
    }
  });

  for (const [request, message] of [
    [{}, 'input missing'],
    [{ input: '!!' }, 'unable to decode input as base64: illegal base64 data at input byte 0'],
    [{ input: '', format: 'x' }, 'unsupported encoding format "x"; must be "hex" or "base64"'],
    [{ input: '', algorithm: 'md5' }, 'unsupported algorithm md5'],
    [{ input: '', algorithm: 'sha1' }, 'unsupported algorithm sha1'],
  ] as const) {
    it(`refuses ${JSON.stringify(request)}`, async () => {
      expect((await refusalOf(hashOf(request))).message).to.equal(message);
    });
  }
});
