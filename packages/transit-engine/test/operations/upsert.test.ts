import { memoryStore, type Store, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { TransitEngine } from '../../src/index.ts';
import { anything, base64, contextOne, decryptOne, encryptOne, everything, fox, newEngine, refusalOf } from '../fixtures.ts';

const createOnly = { mayCreate: true, mayUpdate: false };
const updateOnly = { mayCreate: false, mayUpdate: true };
const neither = { mayCreate: false, mayUpdate: false };

describe('encrypting with an unknown key', () => {
  it('creates a key with default settings, if the caller may create it', async () => {
    const { engine } = newEngine();
    const { ciphertext, keyVersion } = await encryptOne(engine, 'k', { plaintext: fox, ...createOnly });
    expect(keyVersion).to.equal(1);
    expect(await engine.readKey('k')).to.include({
      type: 'aes256-gcm96',
      derived: false,
      exportable: false,
      deletionAllowed: false,
    });
    expect(await decryptOne(engine, 'k', { ciphertext })).to.deep.equal({ plaintext: fox });
  });

  it('creates a derived key if, and only if, a context is given', async () => {
    const { engine } = newEngine();
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox, context: contextOne });
    expect(await engine.readKey('k')).to.include({ derived: true, convergentEncryption: false });
    expect(await decryptOne(engine, 'k', { ciphertext, context: contextOne })).to.deep.equal({ plaintext: fox });
    await encryptOne(engine, 'empty', { plaintext: fox, context: '' });
    expect(await engine.readKey('empty')).to.include({ derived: false });
  });

  it('takes type and convergence from the request', async () => {
    const { engine } = newEngine();
    await encryptOne(engine, 'x', { plaintext: fox, type: 'chacha20-poly1305' });
    expect(await engine.readKey('x')).to.include({ type: 'chacha20-poly1305' });
    const request = { plaintext: fox, context: contextOne, convergentEncryption: true };
    const first = await encryptOne(engine, 'c', request);
    expect(await engine.readKey('c')).to.include({ convergentEncryption: true });
    expect(await encryptOne(engine, 'c', request)).to.deep.equal(first);
  });

  it('creates one key for a batch, also if some items fail', async () => {
    const { engine } = newEngine();
    const reply = await engine.ciphertexts.encrypt('k', { ...anything, items: [{ plaintext: '!!' }, { plaintext: fox }] });
    expect(reply).to.have.property('outcome', 'some_failed');
    expect(await engine.readKey('k')).to.include({ derived: false, latestVersion: 1 });
    await engine.ciphertexts.encrypt('d', { ...anything, items: [{ plaintext: fox, context: contextOne }] });
    expect(await engine.readKey('d')).to.include({ derived: true });
  });

  it('creates no key if every item fails', async () => {
    const { engine, store } = newEngine();
    const reply = await engine.ciphertexts.encrypt('k', { ...anything, items: [{ plaintext: '!!' }, { plaintext: '??' }] });
    expect(reply).to.have.property('outcome', 'all_failed');
    expect(await everything(store)).to.deep.equal({});
  });

  for (const [request, message] of [
    [{}, 'missing plaintext to encrypt'],
    [{ plaintext: '!!' }, 'illegal base64 data at input byte 0'],
    [{ plaintext: fox, context: '!!' }, 'illegal base64 data at input byte 0'],
    [
      { plaintext: fox, associatedData: '!!' },
      'unable to get associated_data/additional_data from factory[0]: illegal base64 data at input byte 0',
    ],
    [{ plaintext: fox, keyVersion: 2 }, 'requested version for encryption is higher than the latest key version'],
    [{ plaintext: fox, keyVersion: -1 }, 'requested version for encryption is negative'],
    [{ plaintext: fox, type: 'ecdsa-p999' }, 'unknown key type ecdsa-p999'],
    [{ plaintext: fox, type: '' }, 'unknown key type '],
    [
      { plaintext: fox, convergentEncryption: true },
      'convergent encryption requires derivation to be enabled, so context is required',
    ],
    [
      { plaintext: fox, context: contextOne, convergentEncryption: true, nonce: base64('123456789012') },
      'provided nonce not allowed for this key',
    ],
    [
      { items: [{ plaintext: fox, context: contextOne }, { plaintext: fox }] },
      'context should be set either in all the request blocks or in none',
    ],
  ] as const) {
    it(`creates no key if refused: ${JSON.stringify(request).slice(0, 70)}`, async () => {
      const { engine, store } = newEngine();
      expect((await refusalOf(engine.ciphertexts.encrypt('k', { ...anything, ...request }))).message).to.equal(message);
      expect(await everything(store)).to.deep.equal({});
      expect(await engine.keyExists('k')).to.equal(false);
    });
  }

  it('refuses an invalid key name', async () => {
    const { engine } = newEngine();
    expect(await refusalOf(engine.ciphertexts.encrypt('a/b', { ...anything, plaintext: fox }))).to.include({
      code: 'invalid_request',
    });
  });
});

describe('the capabilities of a caller who encrypts', () => {
  const denied = { code: 'permission_denied', message: 'permission denied' };
  const notFound = { code: 'key_not_found', message: 'encryption key not found' };
  for (const { caller, may, allowed, disabled, existing } of [
    { caller: 'create only', may: createOnly, allowed: 'key made', disabled: notFound, existing: denied },
    { caller: 'update only', may: updateOnly, allowed: denied, disabled: denied, existing: 'encrypted' },
    { caller: 'both', may: anything, allowed: 'key made', disabled: notFound, existing: 'encrypted' },
    { caller: 'neither', may: neither, allowed: denied, disabled: denied, existing: denied },
  ]) {
    const outcome = async (engine: TransitEngine, word: string) => {
      try {
        await engine.ciphertexts.encrypt('k', { ...may, plaintext: fox });
        return word;
      } catch {
        return refusalOf(engine.ciphertexts.encrypt('k', { ...may, plaintext: fox }));
      }
    };

    it(`${caller}: unknown key, known key, and upsert disabled`, async () => {
      const { engine } = newEngine();
      expect(await outcome(engine, 'key made')).to.deep.equal(allowed);
      const off = newEngine().engine;
      await off.writeKeysConfig({ disableUpsert: true });
      expect(await outcome(off, 'key made')).to.deep.equal(disabled);
      const known = newEngine().engine;
      await known.createKey('k', {});
      expect(await outcome(known, 'encrypted')).to.deep.equal(existing);
    });
  }

  it('apply to the existing key when another request creates it first', async () => {
    const { engine } = newEngine();
    const requests = [createOnly, createOnly].map((may) => engine.ciphertexts.encrypt('k', { ...may, plaintext: fox }));
    const [first, second] = await Promise.allSettled(requests);
    expect(first?.status).to.equal('fulfilled');
    expect(second?.status === 'rejected' && second.reason).to.include(denied);
    expect((await engine.readKey('k')).latestVersion).to.equal(1);
  });
});

describe('a key created by an encryption', () => {
  it('is created once by concurrent requests, and decrypts all of their ciphertexts', async () => {
    const { engine, store } = newEngine();
    const made = await Promise.all(Array.from({ length: 20 }, () => encryptOne(engine, 'k', { plaintext: fox })));
    expect(Object.keys(await everything(store))).to.have.lengthOf(2);
    for (const { ciphertext } of made) expect(await decryptOne(engine, 'k', { ciphertext })).to.deep.equal({ plaintext: fox });
  });

  it('is the key of another node that created it first', async () => {
    const inner = memoryStore();
    const other = newEngine({ store: inner }).engine;
    let overtaken = false;
    const store: Store = {
      ...inner,
      commit: async (transaction) => {
        if (!overtaken) {
          overtaken = true;
          await other.createKey('k', { type: 'chacha20-poly1305' });
        }
        return inner.commit(transaction);
      },
    };
    const { engine } = newEngine({ store });
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    expect(await decryptOne(other, 'k', { ciphertext })).to.deep.equal({ plaintext: fox });
    expect(await engine.readKey('k')).to.include({ type: 'chacha20-poly1305', latestVersion: 1 });
  });

  it('gives no ciphertext if it could not be stored', async () => {
    const inner = memoryStore();
    const failure = new StoreError('outcome_unknown', 'it may still take effect');
    let commits = 0;
    const store: Store = {
      ...inner,
      commit: async () => {
        commits += 1;
        throw failure;
      },
    };
    const { engine } = newEngine({ store });
    const [result] = await Promise.allSettled([encryptOne(engine, 'k', { plaintext: fox })]);
    expect(result?.status === 'rejected' && result.reason).to.equal(failure);
    expect(commits, 'what may have happened is not proposed again').to.equal(1);
  });
});
