import { createHash, createPublicKey, verify } from 'node:crypto';
import { p256, p384, p521 } from '@noble/curves/nist.js';
import { expect } from 'chai';
import type { SignRequest, TransitEngine, VerifyRequest } from '../../src/index.ts';
import { base64, contextOne, fox, newEngine, refusalOf } from '../fixtures.ts';

const digest = (hash: string, text = fox): string => createHash(hash).update(Buffer.from(text, 'base64')).digest('base64');

async function signOne(engine: TransitEngine, name: string, request: SignRequest) {
  const reply = await engine.signing.sign(name, request);
  if ('results' in reply) throw new Error('unexpected result of a batch');
  return reply;
}

const verifies = async (engine: TransitEngine, name: string, request: VerifyRequest): Promise<boolean> => {
  const reply = await engine.signing.verify(name, request);
  if ('results' in reply) throw new Error('unexpected result of a batch');
  return reply.valid;
};

const signingTypes = ['ed25519', 'ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521', 'rsa-2048', 'rsa-3072', 'rsa-4096'];
const hashes = ['sha1', 'sha2-224', 'sha2-256', 'sha2-384', 'sha2-512', 'sha3-224', 'sha3-256', 'sha3-384', 'sha3-512'];
const tooSmall = 'prehashed input is not a digest of this hash_algorithm: it stands for too small a number';
const openssl = (hash: string): string => hash.replace('sha2-', 'sha');

describe('signatures', () => {
  let engine: TransitEngine;
  before(async () => {
    ({ engine } = newEngine());
    for (const type of signingTypes) await engine.createKey(type, { type });
    await engine.createKey('derived', { type: 'ed25519', derived: true });
    await engine.createKey('aes', { type: 'aes256-gcm96' });
  });
  after(() => engine.close());

  for (const type of signingTypes) {
    for (const marshalingAlgorithm of ['asn1', 'jws']) {
      it(`of ${type} as ${marshalingAlgorithm} are valid for their message only`, async () => {
        const { signature, keyVersion } = await signOne(engine, type, { input: fox, marshalingAlgorithm });
        expect(keyVersion).to.equal(1);
        expect(signature).to.match(marshalingAlgorithm === 'jws' ? /^svc:v1:[\w-]+$/ : /^svc:v1:[A-Za-z0-9+/]+=*$/);
        expect(await verifies(engine, type, { input: fox, signature, marshalingAlgorithm })).to.equal(true);
        expect(await verifies(engine, type, { input: base64('another'), signature, marshalingAlgorithm })).to.equal(false);
      });
    }

    it(`of ${type} of more than a megabyte cover all of it`, async () => {
      const input = Buffer.alloc(1024 * 1024 + 1, 7);
      const { signature } = await signOne(engine, type, { input: input.toString('base64') });
      expect(await verifies(engine, type, { input: input.toString('base64'), signature })).to.equal(true);
      input[input.length - 1] = 8;
      expect(await verifies(engine, type, { input: input.toString('base64'), signature })).to.equal(false);
    });
  }

  for (const type of ['ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521']) {
    for (const hashAlgorithm of hashes) {
      it(`of ${type} with ${hashAlgorithm} are interchangeable for a message and its digest`, async () => {
        const input = digest(openssl(hashAlgorithm));
        for (const marshalingAlgorithm of ['asn1', 'jws']) {
          const options = { hashAlgorithm, marshalingAlgorithm };
          const overMessage = await signOne(engine, type, { ...options, input: fox });
          const overDigest = await signOne(engine, type, { ...options, input, prehashed: true });
          expect(await verifies(engine, type, { ...options, ...overMessage, input, prehashed: true })).to.equal(true);
          expect(await verifies(engine, type, { ...options, ...overDigest, input: fox })).to.equal(true);
          const other = hashAlgorithm === 'sha3-256' ? 'sha2-256' : 'sha3-256';
          expect(await verifies(engine, type, { ...options, ...overMessage, input: fox, hashAlgorithm: other })).to.equal(false);
        }
      });
    }
  }

  for (const type of ['rsa-2048', 'rsa-3072', 'rsa-4096']) {
    for (const signatureAlgorithm of ['pss', 'pkcs1v15']) {
      for (const hashAlgorithm of hashes) {
        it(`of ${type} with ${signatureAlgorithm} and ${hashAlgorithm} are interchangeable for a message and its digest`, async () => {
          const options = { hashAlgorithm, signatureAlgorithm };
          const input = digest(openssl(hashAlgorithm));
          const overMessage = await signOne(engine, type, { ...options, input: fox });
          const overDigest = await signOne(engine, type, { ...options, input, prehashed: true });
          expect(await verifies(engine, type, { ...options, ...overMessage, input, prehashed: true })).to.equal(true);
          expect(await verifies(engine, type, { ...options, ...overDigest, input: fox })).to.equal(true);
          expect(await verifies(engine, type, { ...options, ...overDigest, input: base64('another') })).to.equal(false);
          const other = hashAlgorithm === 'sha3-256' ? 'sha2-256' : 'sha3-256';
          expect(await verifies(engine, type, { ...options, ...overMessage, input: fox, hashAlgorithm: other })).to.equal(false);
        });
      }
    }

    it(`of ${type} without a hash sign the input as it is`, async () => {
      const none = { hashAlgorithm: 'none', prehashed: true, signatureAlgorithm: 'pkcs1v15' };
      const { signature } = await signOne(engine, type, { ...none, input: fox });
      expect(await verifies(engine, type, { ...none, input: fox, signature })).to.equal(true);
      expect(await verifies(engine, type, { ...none, input: base64('another'), signature })).to.equal(false);
      const tooLong = Buffer.alloc(Number(type.slice(4)) / 8 - 10).toString('base64');
      expect((await refusalOf(signOne(engine, type, { ...none, input: tooLong }))).message).to.contain('too long');
    });
  }

  for (const { saltLength, verifiedWith, valid } of [
    { saltLength: 'hash', verifiedWith: '32', valid: true },
    { saltLength: 'HASH', verifiedWith: '-1', valid: true },
    { saltLength: '20', verifiedWith: 'auto', valid: true },
    { saltLength: '20', verifiedWith: '0', valid: true },
    { saltLength: '20', verifiedWith: 'hash', valid: false },
    { saltLength: '1', verifiedWith: '1', valid: true },
    { saltLength: '222', verifiedWith: '222', valid: true },
    { saltLength: 'auto', verifiedWith: '222', valid: true },
    { saltLength: 'auto', verifiedWith: 'hash', valid: false },
  ]) {
    for (const prehashed of [false, true]) {
      const over = prehashed ? 'a digest' : 'a message';
      it(`of PSS for ${over} with salt ${saltLength} are ${valid ? 'valid' : 'invalid'} with salt ${verifiedWith}`, async () => {
        const input = prehashed ? digest('sha256') : fox;
        const { signature } = await signOne(engine, 'rsa-2048', { input, prehashed, saltLength });
        expect(await verifies(engine, 'rsa-2048', { input, prehashed, signature, saltLength: verifiedWith })).to.equal(valid);
        expect(await verifies(engine, 'rsa-2048', { input: fox, signature, saltLength: verifiedWith })).to.equal(valid);
      });
    }
  }

  it('of Ed25519, Ed25519ctx and Ed25519ph are each invalid in the other two schemes', async () => {
    const signatureContext = base64('context');
    const kinds = [
      { input: digest('sha512') },
      { input: digest('sha512'), signatureContext },
      { input: digest('sha512'), hashAlgorithm: 'sha2-512', prehashed: true },
      { input: digest('sha512'), hashAlgorithm: 'sha2-512', prehashed: true, signatureContext },
    ];
    for (const [index, kind] of kinds.entries()) {
      const { signature } = await signOne(engine, 'ed25519', kind);
      for (const [other, asked] of kinds.entries()) {
        expect(await verifies(engine, 'ed25519', { ...asked, signature }), `${index} as ${other}`).to.equal(index === other);
      }
    }
  });

  it('of a derived key depend on the context, and the answer shows its public key', async () => {
    const { signature, publicKey = '' } = await signOne(engine, 'derived', { input: fox, context: contextOne });
    expect(await verifies(engine, 'derived', { input: fox, context: contextOne, signature })).to.equal(true);
    expect(await verifies(engine, 'derived', { input: fox, context: base64('two'), signature })).to.equal(false);
    const [version] = (await engine.readKey('derived', { context: contextOne })).versions;
    expect(version?.pair?.publicKey).to.equal(publicKey);
    const x = Buffer.from(publicKey, 'base64').toString('base64url');
    const handle = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    expect(verify(null, Buffer.from(fox, 'base64'), handle, Buffer.from(signature.slice(7), 'base64'))).to.equal(true);
  });

  it('of one batch use one version, and show the public key of each context', async () => {
    const reply = await engine.signing.sign('derived', {
      items: [
        { input: fox, context: contextOne, reference: 'a' },
        { input: fox },
        { context: contextOne },
        { input: '%', context: contextOne },
      ],
    });
    if (!('results' in reply)) throw new Error('a batch was expected');
    const [first, ...others] = reply.results;
    expect(reply.outcome).to.equal('some_failed');
    expect(first).to.include({ reference: 'a', keyVersion: 1 }).and.have.property('publicKey');
    expect(others.map((each) => ('error' in each ? each.error.slice(0, 36) : ''))).to.deep.equal([
      "missing 'context' for key derivation",
      'missing input',
      'unable to decode input as base64: il',
    ]);
  });

  for (const [type, { Point }] of [
    ['ecdsa-p256', p256],
    ['ecdsa-p384', p384],
    ['ecdsa-p521', p521],
  ] as const) {
    it(`of ${type} over a SHA-1 digest need the hash name sha1, however the digest is written`, async () => {
      const sha1 = createHash('sha1').update(Buffer.from(fox, 'base64')).digest();
      const { BYTES, ORDER } = Point.Fn;
      const lengths = [28, 32, 48, 64];
      const padded = lengths.map((bytes) => Buffer.concat([Buffer.alloc(bytes - 20), sha1]));
      // ECDSA ignores what follows the bits of the order, and takes the number before it modulo the order.
      const cut = lengths
        .filter((bytes) => bytes >= BYTES)
        .map((bytes) => Buffer.concat([Buffer.alloc(BYTES - 20), sha1, Buffer.alloc(bytes - BYTES, 7)]));
      const added = (ORDER + BigInt(`0x${sha1.toString('hex')}`)).toString(16);
      const inOtherForms = [...padded, ...cut, ...(added.length === 2 * BYTES && BYTES <= 64 ? [Buffer.from(added, 'hex')] : [])];
      for (const digest of inOtherForms) {
        const request = { input: digest.toString('base64'), prehashed: true };
        for (const hashAlgorithm of ['sha2-224', 'sha2-256', 'sha2-512', 'sha3-256']) {
          const refused = await refusalOf(engine.signing.sign(type, { ...request, hashAlgorithm }));
          expect(refused.message, digest.toString('hex')).to.equal(tooSmall);
        }
        const { signature } = await signOne(engine, type, { input: fox, hashAlgorithm: 'sha1' });
        expect((await refusalOf(engine.signing.verify(type, { ...request, signature }))).message).to.equal(tooSmall);
      }
    });

    it(`of ${type} over zeros are neither made nor verified: anybody can make them`, async () => {
      const zeros = (bytes: number): string => Buffer.alloc(bytes).toString('base64');
      for (const request of [
        { input: zeros(20), hashAlgorithm: 'sha1' },
        { input: zeros(32), hashAlgorithm: 'sha2-256' },
        { input: zeros(64), hashAlgorithm: 'sha2-512' },
      ])
        expect((await refusalOf(engine.signing.sign(type, { ...request, prehashed: true }))).message).to.equal(tooSmall);
    });
  }

  for (const [name, request, message] of [
    ['rsa-2048', { hashAlgorithm: 'md5' }, 'invalid hash algorithm "md5"'],
    ['ed25519', { hashAlgorithm: 'SHA2-256' }, 'invalid hash algorithm "SHA2-256"'],
    ['rsa-2048', { marshalingAlgorithm: 'xml' }, 'invalid marshaling type "xml"'],
    ['rsa-2048', { saltLength: 'x' }, "salt length neither 'auto', 'hash', nor an int: x"],
    ['rsa-2048', { saltLength: '-2' }, 'salt length is invalid: -2'],
    ['rsa-2048', { saltLength: '223' }, 'requested salt length 223 is invalid'],
    ['rsa-2048', { signatureAlgorithm: 'x931' }, 'unsupported rsa signature algorithm x931'],
    ['ed25519', { hashAlgorithm: 'none' }, 'hash_algorithm=none requires both prehashed=true and signature_algorithm=pkcs1v15'],
    [
      'rsa-2048',
      { hashAlgorithm: 'none', prehashed: true },
      'hash_algorithm=none requires both prehashed=true and signature_algorithm=pkcs1v15',
    ],
    ['rsa-2048', { prehashed: true }, 'crypto/rsa: input must be hashed with given hash'],
    ['rsa-2048', { prehashed: true, signatureAlgorithm: 'pkcs1v15' }, 'crypto/rsa: input must be hashed with given hash'],
    ['ecdsa-p256', { prehashed: true }, 'prehashed input has the wrong length for a digest'],
    ['ecdsa-p256', { prehashed: true, input: digest('sha1') }, 'prehashed input has the wrong length for a digest'],
    ['ecdsa-p256', { prehashed: true, input: fox, hashAlgorithm: 'sha1' }, 'prehashed input has the wrong length for a digest'],
    ['ecdsa-p256', { prehashed: true, input: '' }, 'prehashed input has the wrong length for a digest'],
    ['ecdsa-p256', { signatureContext: 'AAAA' }, 'signature_context is for ed25519 keys'],
    ['rsa-2048', { signatureContext: 'AAAA' }, 'signature_context is for ed25519 keys'],
    ['ed25519', { signatureContext: '%' }, 'failed to base64-decode signature_context'],
    [
      'ed25519',
      { signatureContext: Buffer.alloc(256).toString('base64') },
      'signature_context must not be longer than 255 bytes',
    ],
    [
      'ed25519',
      { hashAlgorithm: 'sha2-512' },
      'ed25519 takes prehashed input with hash_algorithm sha2-512 (Ed25519ph), and neither of the two alone',
    ],
    [
      'ed25519',
      { prehashed: true },
      'ed25519 takes prehashed input with hash_algorithm sha2-512 (Ed25519ph), and neither of the two alone',
    ],
    ['ed25519', { prehashed: true, hashAlgorithm: 'sha2-512' }, 'prehashed input for sha2-512 must be 64 bytes'],
    ['ed25519', { input: '%' }, 'unable to decode input as base64: illegal base64 data at input byte 0'],
    ['ed25519', { input: undefined }, 'missing input'],
    ['aes', { input: undefined }, 'key type aes256-gcm96 does not support signing'],
    ['derived', { context: '%' }, 'failed to base64-decode context'],
    ['aes', {}, 'key type aes256-gcm96 does not support signing'],
    ['ed25519', { keyVersion: -1 }, 'requested version for signing is negative'],
    ['ed25519', { keyVersion: 2 }, 'requested version for signing is higher than the latest key version'],
    ['missing', {}, 'signing key not found'],
  ] as const satisfies readonly (readonly [string, SignRequest, string])[]) {
    it(`of ${name} are refused for ${JSON.stringify(request).slice(0, 70)}: ${message.slice(0, 60)}`, async () => {
      expect((await refusalOf(engine.signing.sign(name, { input: fox, ...request }))).message).to.equal(message);
    });
  }

  it('are neither made nor verified without an input; an empty input is one', async () => {
    const { signature } = await signOne(engine, 'ed25519', { input: '' });
    expect(await verifies(engine, 'ed25519', { input: '', signature })).to.equal(true);
    expect((await refusalOf(engine.signing.verify('ed25519', { signature }))).message).to.equal('missing input');
  });

  for (const [name, signature, message] of [
    ['ed25519', '', 'invalid signature: no prefix'],
    ['ed25519', 'AAAA', 'invalid signature: no prefix'],
    ['ed25519', 'svc:v1', 'invalid signature: wrong number of fields'],
    ['ed25519', 'svc:vx:AAAA', 'invalid signature: version number could not be decoded'],
    ['ed25519', 'svc:v2:AAAA', 'invalid signature: version is too new'],
    ['ed25519', 'svc:v0:AAAA', 'ciphertext or signature version is disallowed by policy (too old)'],
    ['ed25519', 'svc:v1:A', 'invalid base64 signature value'],
    ['ecdsa-p256', 'svc:v1:AAAA', 'supplied signature is invalid'],
    ['ecdsa-p256', `svc:v1:MIIBBgIBAQIB${'A'.repeat(348)}`, 'supplied signature is invalid'],
    ['ecdsa-p256', 'svc:v1:MAkCAQECAQECAQE=', 'supplied signature is invalid'],
    ['ecdsa-p256', `svc:v1:MAYCAQECAQEF${'A'.repeat(404)}`, 'supplied signature contains extra data'],
    ['ecdsa-p256', 'svc:v1:MAYCAQECAQEA', 'supplied signature contains extra data'],
    ['ecdsa-p256', 'svc:v1:MAYCAQECAQEFAA==', 'supplied signature contains extra data'],
    ['aes', 'svc:v1:AAAA', 'key type aes256-gcm96 does not support verification'],
    ['missing', 'svc:v1:AAAA', 'signature verification key not found'],
  ] as const) {
    it(`of ${name} are refused as ${signature.slice(0, 30)}: ${message}`, async () => {
      expect((await refusalOf(engine.signing.verify(name, { input: fox, signature }))).message).to.equal(message);
    });
  }

  for (const name of signingTypes) {
    for (const prehashed of [false, true]) {
      it(`of ${name} are invalid, not refused, at any other length${prehashed ? ', over a digest too' : ''}`, async () => {
        const input = digest(name === 'ed25519' ? 'sha512' : 'sha256');
        const asked = {
          input,
          prehashed,
          marshalingAlgorithm: 'jws',
          ...(name === 'ed25519' && prehashed && { hashAlgorithm: 'sha2-512' }),
        };
        const { signature } = await signOne(engine, name, asked);
        const bytes = Buffer.from(signature.slice(7), 'base64url');
        for (const other of [
          bytes.subarray(1),
          bytes.subarray(0, -1),
          Buffer.concat([bytes, Buffer.alloc(1)]),
          Buffer.alloc(0),
        ]) {
          const changed = `svc:v1:${other.toString('base64url')}`;
          expect(await verifies(engine, name, { ...asked, signature: changed }), `${other.length}`).to.equal(false);
        }
      });
    }
  }

  it('of older versions are valid until the minimum rises; new ones use the requested version', async () => {
    await engine.createKey('rotated', { type: 'ecdsa-p256' });
    await engine.rotateKey('rotated');
    const old = await signOne(engine, 'rotated', { input: fox, keyVersion: 1 });
    const latest = await signOne(engine, 'rotated', { input: fox });
    expect([old.keyVersion, latest.keyVersion]).to.deep.equal([1, 2]);
    expect(await verifies(engine, 'rotated', { input: fox, signature: old.signature })).to.equal(true);
    expect(await verifies(engine, 'rotated', { input: fox, signature: old.signature.replace('v1', 'v2') })).to.equal(false);
    await engine.configureKey('rotated', { minDecryptionVersion: 2, minEncryptionVersion: 2 });
    expect((await refusalOf(engine.signing.verify('rotated', { input: fox, ...old }))).message).to.contain('too old');
    expect((await refusalOf(engine.signing.sign('rotated', { input: fox, keyVersion: 1 }))).message).to.contain(
      'less than the minimum',
    );
  });
});
