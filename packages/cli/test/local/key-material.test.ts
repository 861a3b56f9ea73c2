import { generateKeyPairSync } from 'node:crypto';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { isEncrypted, materialFrom } from '../../src/local/key-material.ts';

const ec = generateKeyPairSync('ec', { namedCurve: 'P-384' });
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pkcs8 = ec.privateKey.export({ type: 'pkcs8', format: 'der' });
const encrypted = ec.privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret words' });

describe('key material from a file', () => {
  for (const [form, content] of [
    ['PEM, PKCS#8', ec.privateKey.export({ type: 'pkcs8', format: 'pem' })],
    ['PEM, SEC1', ec.privateKey.export({ type: 'sec1', format: 'pem' })],
    ['PEM after other text', `Bag Attributes\n${ec.privateKey.export({ type: 'pkcs8', format: 'pem' })}`],
  ] as const)
    it(`is read as ${form}`, () => {
      expect(materialFrom(Buffer.from(content), {})).to.deep.equal({ kind: 'private', type: 'ecdsa-p384', bytes: pkcs8 });
    });

  it('is read as DER, in every form of private and public keys', () => {
    const rsaPkcs8 = rsa.privateKey.export({ type: 'pkcs8', format: 'der' });
    for (const der of [rsaPkcs8, rsa.privateKey.export({ type: 'pkcs1', format: 'der' })])
      expect(materialFrom(der, { type: 'rsa-2048' })).to.deep.equal({ kind: 'private', type: 'rsa-2048', bytes: rsaPkcs8 });
    expect(materialFrom(ec.privateKey.export({ type: 'sec1', format: 'der' }), { encoding: 'der' })).to.include({
      kind: 'private',
    });
    const spki = rsa.publicKey.export({ type: 'spki', format: 'der' });
    expect(materialFrom(spki, { encoding: 'der' })).to.include({ kind: 'public', type: 'rsa-2048' });
  });

  it('is read as a public key', () => {
    const pem = ec.publicKey.export({ type: 'spki', format: 'pem' }).toString();
    expect(materialFrom(Buffer.from(pem), {})).to.deep.equal({ kind: 'public', type: 'ecdsa-p384', pem });
  });

  it('is decrypted with a passphrase', () => {
    expect(isEncrypted(Buffer.from(encrypted))).to.equal(true);
    expect(isEncrypted(pkcs8)).to.equal(false);
    expect(materialFrom(Buffer.from(encrypted), { passphrase: 'secret words' })).to.deep.include({ bytes: pkcs8 });
  });

  it('is read as the bytes of a symmetric key, also in base64', () => {
    const bytes = Buffer.alloc(32, 7);
    expect(materialFrom(bytes, {})).to.deep.equal({ kind: 'private', type: 'aes256-gcm96', bytes });
    const text = Buffer.from(`${bytes.toString('base64')}\n`);
    expect(materialFrom(text, { encoding: 'base64', type: 'hmac' })).to.deep.equal({ kind: 'private', type: 'hmac', bytes });
  });

  for (const [why, content, options, says] of [
    ['another type', encrypted, { type: 'ecdsa-p256', passphrase: 'secret words' }, /is ecdsa-p384, not ecdsa-p256/],
    ['a wrong passphrase', encrypted, { passphrase: 'wrong words' }, /cannot be read with this passphrase/],
    ['a broken PEM', '-----BEGIN PRIVATE KEY-----\nMC4C\n-----END PRIVATE KEY-----\n', {}, /cannot be read/],
    ['no PEM', 'MC4C', { encoding: 'pem' }, /no PEM block/],
    ['no base64', 'a b-c', { encoding: 'base64' }, /not base64/],
    ['raw bytes for a key pair', 'x', { type: 'ed25519', encoding: 'raw' }, /as PEM or DER/],
    [
      'an unsupported curve',
      generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
      {},
      /not supported/,
    ],
  ] as const)
    it(`is refused for ${why}, without quoting it`, () => {
      expect(() => materialFrom(Buffer.from(content), options))
        .to.throw(StartError, says)
        .with.property('message')
        .that.does.not.match(/MC4C|words/);
    });
});
