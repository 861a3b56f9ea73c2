import { createPublicKey, generateKeyPairSync, randomBytes, verify } from 'node:crypto';
import { expect } from 'chai';
import type { CreateKeyRequest, SignRequest, TransitEngine, VerifyRequest } from '../../src/index.ts';
import { managedBytesMax } from '../../src/managed/managed-cipher.ts';
import { TransitError } from '../../src/values/errors.ts';
import { anything, base64, decryptOne, encryptOne, fox, newEngine, refusalOf, rewrapOne } from '../fixtures.ts';
import { type MemoryKey, MemoryManagedKeys, newId } from './memory-managed-keys.ts';

const message = Buffer.from('the quick brown fox');
const nonce = Buffer.alloc(12, 5).toString('base64');
const managed = (managedKeyName: string): CreateKeyRequest => ({ type: 'managed_key', managedKeyName });

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });

function setup() {
  const system = new MemoryManagedKeys();
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const add = (key: Omit<MemoryKey, 'id'>): string => {
    const id = newId();
    system.keys.push({ id, ...key });
    return id;
  };
  const ids = {
    ec: add({ name: 'ec', algorithm: 'ecdsa', privateKey, publicKey }),
    rsa: add({ name: 'rsa', algorithm: 'rsa-pkcs1v15', ...rsa }),
    aes: add({ name: 'aes', algorithm: 'aes-gcm', secret: randomBytes(32) }),
    aes2: add({ name: 'aes2', algorithm: 'aes-gcm', secret: randomBytes(32) }),
  };
  return { ...newEngine({ managedKeys: system }), system, ids, add, publicKey, rsa };
}
async function sign(engine: TransitEngine, name: string, request: SignRequest = {}): Promise<string> {
  const reply = await engine.signing.sign(name, { input: fox, ...request });
  if ('results' in reply) throw new Error('the request was no batch');
  return reply.signature;
}
async function holds(engine: TransitEngine, name: string, signature: string, request: VerifyRequest = {}): Promise<boolean> {
  const reply = await engine.signing.verify(name, { input: fox, signature, ...request });
  if ('results' in reply) throw new Error('the request was no batch');
  return reply.valid;
}
const payloadOf = (text: string): Buffer => Buffer.from(text.split(':')[2] ?? '', 'base64');

describe('keys of type managed_key', () => {
  it('reference a key of another system by name or id', async () => {
    const { engine, ids, publicKey } = setup();
    await engine.createKey('n', managed('ec'));
    await engine.createKey('i', { type: 'managed_key', managedKeyId: ids.ec });
    for (const name of ['n', 'i']) {
      const { type, versions, supportsSigning } = await engine.readKey(name);
      expect([type, supportsSigning]).to.deep.equal(['managed_key', true]);
      expect(versions[0]?.pair?.name).to.equal(ids.ec);
      expect(createPublicKey(versions[0]?.pair?.publicKey ?? '').equals(publicKey)).to.equal(true);
    }
    await engine.createKey('a', managed('aes'));
    expect((await engine.readKey('a')).versions[0]?.pair).to.include({ name: ids.aes, publicKey: '' });
  });

  for (const { request, message: refusal } of [
    { request: {}, message: 'one of managed_key_name or managed_key_id is required' },
    { request: { managedKeyName: '', managedKeyId: '' }, message: 'one of managed_key_name or managed_key_id is required' },
    { request: { managedKeyName: 'unknown' }, message: 'managed key unknown not found' },
    {
      request: { managedKeyName: 'ec', autoRotatePeriodS: 3600 },
      message: 'auto_rotate_period cannot be used with managed keys: their rotation names a key',
    },
    {
      request: { managedKeyName: 'aes', derived: true },
      message: 'key derivation and convergent encryption not supported for keys of type managed_key',
    },
  ] satisfies { request: CreateKeyRequest; message: string }[]) {
    it(`are refused with ${JSON.stringify(request)}, and leave nothing behind`, async () => {
      const { engine } = setup();
      expect((await refusalOf(engine.createKey('k', { type: 'managed_key', ...request }))).message).to.equal(refusal);
      expect((await refusalOf(engine.readKey('k'))).code).to.equal('not_found');
    });
  }

  it('are refused without managed keys on the node, and cannot be created by an encryption', async () => {
    const { engine } = newEngine();
    expect((await refusalOf(engine.createKey('k', managed('ec')))).message).to.equal('there are no managed keys on this node');
    const upsert = encryptOne(setup().engine, 'k', { plaintext: fox, type: 'managed_key' });
    expect((await refusalOf(upsert)).message).to.equal('one of managed_key_name or managed_key_id is required');
  });

  it('are created once: a second creation returns the existing key without calling the other system', async () => {
    const { engine } = setup();
    await engine.createKey('k', managed('ec'));
    expect((await engine.createKey('k', managed('unknown'))).key.type).to.equal('managed_key');
  });

  it('rotate to a named key; older versions keep theirs', async () => {
    const { engine, ids, add } = setup();
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const second = add({ name: 'second', algorithm: 'ecdsa', ...other });
    await engine.createKey('k', managed('ec'));
    const first = await sign(engine, 'k');
    expect((await refusalOf(engine.rotateKey('k'))).message).to.equal('one of managed_key_name or managed_key_id is required');
    const { key } = await engine.rotateKey('k', { managedKeyId: second });
    expect(key.versions.map(({ pair }) => pair?.name)).to.deep.equal([ids.ec, second]);
    const latest = await sign(engine, 'k');
    expect([first.slice(0, 7), latest.slice(0, 7)]).to.deep.equal(['svc:v1:', 'svc:v2:']);
    expect([await holds(engine, 'k', first), await holds(engine, 'k', latest)]).to.deep.equal([true, true]);
    expect(verify('sha256', message, other.publicKey, payloadOf(latest))).to.equal(true);
  });

  describe('signatures', () => {
    it('are valid for node:crypto, as DER and as r ‖ s', async () => {
      const { engine, publicKey, system } = setup();
      await engine.createKey('k', managed('ec'));
      const asn1 = await sign(engine, 'k');
      expect(verify('sha256', message, publicKey, payloadOf(asn1))).to.equal(true);
      const jws = await sign(engine, 'k', { marshalingAlgorithm: 'jws', hashAlgorithm: 'sha2-384' });
      const raw = Buffer.from(jws.split(':')[2] ?? '', 'base64url');
      expect(verify('sha384', message, { key: publicKey, dsaEncoding: 'ieee-p1363' }, raw)).to.equal(true);
      expect(await holds(engine, 'k', jws, { marshalingAlgorithm: 'jws', hashAlgorithm: 'sha2-384' })).to.equal(true);
      expect(await holds(engine, 'k', asn1, { input: base64('jumps') })).to.equal(false);
      expect(system.calls.map(({ hash }) => hash)).to.deep.equal(['sha256', 'sha384']);
    });

    it('can be made for digests', async () => {
      const { engine, publicKey, system } = setup();
      await engine.createKey('k', managed('ec'));
      const { createHash } = await import('node:crypto');
      const input = createHash('sha256').update(message).digest('base64');
      const signature = await sign(engine, 'k', { input, prehashed: true });
      expect(verify('sha256', message, publicKey, payloadOf(signature))).to.equal(true);
      expect(await holds(engine, 'k', signature, { input, prehashed: true })).to.equal(true);
      expect((await refusalOf(sign(engine, 'k', { input: fox, prehashed: true }))).message).to.equal(
        'prehashed input has the wrong length for a digest',
      );
      const sha1 = createHash('sha1').update(message).digest();
      const padded = Buffer.concat([Buffer.alloc(12), sha1]).toString('base64');
      expect((await refusalOf(sign(engine, 'k', { input: padded, prehashed: true }))).message).to.equal(
        'prehashed input is not a digest of this hash_algorithm: it stands for too small a number',
      );
      expect(system.calls.length).to.equal(1);
    });

    it('follow the mechanism of the key, not the request', async () => {
      const { engine, system } = setup();
      await engine.createKey('k', managed('rsa'));
      const input = Buffer.from('any bytes').toString('base64');
      const raw = { input, prehashed: true, hashAlgorithm: 'none', signatureAlgorithm: 'pkcs1v15' };
      const signature = await sign(engine, 'k', raw);
      expect(await holds(engine, 'k', signature, raw)).to.equal(true);
      expect(system.calls).to.deep.equal([{ name: 'rsa', hash: null, saltBytes: 0 }]);
    });

    it('of a key other than the version’s are never returned', async () => {
      const { engine, system, ids } = setup();
      await engine.createKey('k', managed('ec'));
      const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const at = system.keys.findIndex(({ id }) => id === ids.ec);
      system.keys[at] = { id: ids.ec, name: 'ec', algorithm: 'ecdsa', ...other };
      expect(await refusalOf(sign(engine, 'k'))).to.deep.equal({
        code: 'managed_key_unavailable',
        message: 'managed key ec is not the one that this version was made with',
      });
    });

    it('require a key that supports signing and permits it', async () => {
      const { engine, add } = setup();
      const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      add({ name: 'verifies', algorithm: 'ecdsa', usages: ['verify'], ...pair });
      await engine.createKey('v', managed('verifies'));
      expect((await refusalOf(sign(engine, 'v'))).message).to.equal('managed key verifies may not be used to sign');
      await engine.createKey('a', managed('aes'));
      expect((await refusalOf(sign(engine, 'a'))).message).to.equal('managed key aes does not support signing');
    });
  });

  describe('encryption', () => {
    it('uses a random vector, which the ciphertext contains', async () => {
      const { engine, system } = setup();
      await engine.createKey('k', managed('aes'));
      const bound = { associatedData: base64('bound') };
      const [one, other] = [
        await encryptOne(engine, 'k', { plaintext: fox, ...bound }),
        await encryptOne(engine, 'k', { plaintext: fox, ...bound }),
      ];
      expect(one.ciphertext).not.to.equal(other.ciphertext);
      expect(payloadOf(one.ciphertext)).to.have.lengthOf(12 + message.length + 16);
      expect(payloadOf(one.ciphertext).subarray(0, 12).toString('hex')).to.equal(system.calls[0]?.iv);
      expect((await decryptOne(engine, 'k', { ciphertext: one.ciphertext, ...bound })).plaintext).to.equal(fox);
      const wrong = decryptOne(engine, 'k', { ciphertext: one.ciphertext, associatedData: base64('else') });
      expect((await refusalOf(wrong)).code).to.equal('invalid_ciphertext');
    });

    it('uses the vector of the caller, which the ciphertext omits', async () => {
      const { engine, system } = setup();
      await engine.createKey('k', managed('aes'));
      const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox, nonce });
      expect(payloadOf(ciphertext)).to.have.lengthOf(message.length + 16);
      expect(system.calls[0]?.iv).to.equal('05'.repeat(12));
      expect((await decryptOne(engine, 'k', { ciphertext, nonce })).plaintext).to.equal(fox);
      expect((await refusalOf(decryptOne(engine, 'k', { ciphertext }))).code).to.equal('invalid_ciphertext');
      for (const bytes of [8, 11, 13, 16]) {
        const request = encryptOne(engine, 'k', { plaintext: fox, nonce: Buffer.alloc(bytes).toString('base64') });
        expect((await refusalOf(request)).message).to.equal('base64-decoded nonce must be 12 bytes long');
      }
    });

    it('rewraps from one key to another, and encrypts data keys', async () => {
      const { engine } = setup();
      await engine.createKey('k', managed('aes'));
      const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
      await engine.rotateKey('k', { managedKeyName: 'aes2' });
      const rewrapped = await rewrapOne(engine, 'k', { ciphertext });
      expect(rewrapped.ciphertext.slice(0, 7)).to.equal('svc:v2:');
      expect((await decryptOne(engine, 'k', { ciphertext: rewrapped.ciphertext })).plaintext).to.equal(fox);
      expect((await decryptOne(engine, 'k', { ciphertext })).plaintext).to.equal(fox);
      const datakey = await engine.ciphertexts.datakey('k', { kind: 'plaintext' });
      expect((await decryptOne(engine, 'k', { ciphertext: datakey.ciphertext })).plaintext).to.equal(datakey.plaintext);
    });

    it('is refused with signing keys and with a padding scheme', async () => {
      const { engine } = setup();
      await engine.createKey('k', managed('ec'));
      expect((await refusalOf(encryptOne(engine, 'k', { plaintext: fox }))).message).to.equal(
        'managed key ec may not be used to encrypt',
      );
      await engine.createKey('a', managed('aes'));
      expect((await refusalOf(encryptOne(engine, 'a', { plaintext: fox, paddingScheme: 'oaep' }))).message).to.equal(
        "'[0].padding_scheme' invalid: unsupported key type managed_key for padding scheme",
      );
    });

    it('refuses inputs that are too long, and ciphertexts without a vector', async () => {
      const { engine, system } = setup();
      await engine.createKey('k', managed('aes'));
      const large = Buffer.alloc(managedBytesMax + 1).toString('base64');
      const refusal = 'managed keys take at most 1048576 bytes at a time';
      expect((await refusalOf(encryptOne(engine, 'k', { plaintext: large }))).message).to.equal(refusal);
      expect((await refusalOf(decryptOne(engine, 'k', { ciphertext: `svc:v1:${large}` }))).message).to.equal(refusal);
      const short = `svc:v1:${Buffer.alloc(11).toString('base64')}`;
      expect((await refusalOf(decryptOne(engine, 'k', { ciphertext: short }))).code).to.equal('invalid_ciphertext');
      expect(system.calls).to.deep.equal([]);
    });
  });

  it('cannot be used when the mount may no longer use the key of the other system', async () => {
    const { engine, system, ids } = setup();
    await engine.createKey('k', managed('aes'));
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    system.keys.splice(
      system.keys.findIndex(({ id }) => id === ids.aes),
      1,
    );
    expect((await refusalOf(decryptOne(engine, 'k', { ciphertext }))).message).to.equal(`managed key ${ids.aes} not found`);
    expect((await refusalOf(encryptOne(engine, 'k', { plaintext: fox }))).message).to.equal(`managed key ${ids.aes} not found`);
  });

  it('end a batch when the other system does not answer, because each item would wait', async () => {
    const { engine, system } = setup();
    await engine.createKey('k', managed('aes'));
    let asked = 0;
    system.find = async () => {
      asked += 1;
      throw new TransitError('managed_key_unavailable', 'managed key aes: the token did not answer in time');
    };
    const request = { ...anything, items: [{ plaintext: fox }, { plaintext: fox }, { plaintext: fox }] };
    expect((await refusalOf(engine.ciphertexts.encrypt('k', request))).code).to.equal('managed_key_unavailable');
    expect(asked).to.equal(1);
  });

  it('have a separate HMAC secret, and show their public key', async () => {
    const { engine, publicKey } = setup();
    await engine.createKey('k', { ...managed('ec'), exportable: true });
    const { versions } = await engine.transfers.exportKey('k', { exportType: 'public-key' });
    expect(createPublicKey(Buffer.from(versions[0]?.material ?? [])).equals(publicKey)).to.equal(true);
    expect((await engine.transfers.exportKey('k', { exportType: 'hmac-key' })).versions[0]?.material).to.have.lengthOf(32);
    for (const exportType of ['encryption-key', 'signing-key', 'certificate-chain']) {
      expect((await refusalOf(engine.transfers.exportKey('k', { exportType }))).code).to.equal('invalid_request');
    }
    const hmac = await engine.signing.hmac('k', { input: fox });
    expect('hmac' in hmac && hmac.hmac.startsWith('svc:v1:')).to.equal(true);
  });

  it('reference the same key after backup and restore', async () => {
    const { engine, ids } = setup();
    await engine.createKey('k', { ...managed('ec'), exportable: true, allowPlaintextBackup: true });
    const signature = await sign(engine, 'k');
    const backup = (await engine.transfers.backupKey('k')).toString('base64');
    await engine.transfers.restoreKey({ backup, name: 'copy' });
    expect((await engine.readKey('copy')).versions[0]?.pair?.name).to.equal(ids.ec);
    expect(await holds(engine, 'copy', signature)).to.equal(true);
    expect(await holds(engine, 'k', await sign(engine, 'copy'))).to.equal(true);
  });

  it('have no automatic rotation, no certificates, no import and no export', async () => {
    const { engine } = setup();
    await engine.createKey('k', { ...managed('ec'), exportable: true });
    await engine.createKey('d', { type: 'rsa-2048' });
    expect((await refusalOf(engine.transfers.wrapForTransfer('k', { destination: 'd' }))).message).to.equal(
      'keys of type managed_key cannot be wrapped',
    );
    expect((await refusalOf(engine.configureKey('k', { autoRotatePeriodS: 3600 }))).message).to.equal(
      'auto_rotate_period cannot be used with managed keys: their rotation names a key',
    );
    expect((await refusalOf(engine.certificates.request('k', {}))).message).to.equal(
      "there are no certificates for keys of type 'managed_key'",
    );
    expect((await refusalOf(engine.transfers.importKey('i', { type: 'managed_key', ciphertext: 'AAAA' }))).message).to.equal(
      'keys of type managed_key cannot be imported',
    );
  });
});
