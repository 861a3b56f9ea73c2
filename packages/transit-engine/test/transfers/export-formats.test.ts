import { createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { expect } from 'chai';
import { exportFormats, type TransitEngine } from '../../src/index.ts';
import { newEngine, refusalOf } from '../fixtures.ts';

/** Returns the exported texts by version, as the API shows them. */
async function texts(engine: TransitEngine, name: string, exportType: string, format?: string): Promise<readonly string[]> {
  const { versions } = await engine.transfers.exportKey(name, { exportType, format });
  return versions.map(({ form, material }) => Buffer.from(material).toString(form === 'base64' ? 'base64' : 'utf8'));
}

async function only(engine: TransitEngine, name: string, exportType: string, format?: string): Promise<string> {
  const [text, ...more] = await texts(engine, name, exportType, format);
  expect(more).to.deep.equal([]);
  return text ?? '';
}

const der = (text: string): Buffer => Buffer.from(text, 'base64');
const readers: Readonly<Record<string, (text: string) => KeyObject>> = {
  der: (text) => createPrivateKey({ key: der(text), format: 'der', type: 'pkcs8' }),
  pem: (text) => createPrivateKey(text),
  jwk: (text) => createPrivateKey({ key: JSON.parse(text) as JsonWebKey, format: 'jwk' }),
};
const publicReaders: typeof readers = {
  der: (text) => createPublicKey({ key: der(text), format: 'der', type: 'spki' }),
  pem: (text) => createPublicKey(text),
  jwk: (text) => createPublicKey({ key: JSON.parse(text) as JsonWebKey, format: 'jwk' }),
};
const spki = (key: KeyObject): string => createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64');
const spkiOfPublic = (key: KeyObject): string => key.export({ type: 'spki', format: 'der' }).toString('base64');

const pairs: readonly (readonly [name: string, request: object, kty: string])[] = [
  ['rsa-2048', { type: 'rsa-2048' }, 'RSA'],
  ['ecdsa-p256', { type: 'ecdsa-p256' }, 'EC'],
  ['ecdsa-p384', { type: 'ecdsa-p384' }, 'EC'],
  ['ecdsa-p521', { type: 'ecdsa-p521' }, 'EC'],
  ['ed25519', { type: 'ed25519' }, 'OKP'],
  ['ml-dsa', { type: 'ml-dsa', parameterSet: '44' }, 'AKP'],
];

describe('an exported key pair', () => {
  for (const [name, request, kty] of pairs) {
    it(`is the same key in each format: ${name}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', { ...request, exportable: true });
      const known = publicReaders['der']?.(await only(engine, 'k', 'public-key', 'der')) ?? expect.fail();
      for (const format of ['der', 'pem', 'jwk']) {
        const secret = readers[format]?.(await only(engine, 'k', 'signing-key', format)) ?? expect.fail(format);
        expect(spki(secret), format).to.equal(spkiOfPublic(known));
        const shown = publicReaders[format]?.(await only(engine, 'k', 'public-key', format)) ?? expect.fail(format);
        expect(spkiOfPublic(shown), format).to.equal(spkiOfPublic(known));
      }
      const privateJwk = JSON.parse(await only(engine, 'k', 'signing-key', 'jwk'));
      const publicJwk = JSON.parse(await only(engine, 'k', 'public-key', 'jwk'));
      expect([privateJwk.kty, publicJwk.kty]).to.deep.equal([kty, kty]);
      expect(publicJwk).to.not.have.any.keys('d', 'p', 'q', 'dp', 'dq', 'qi', 'priv');
      expect(await only(engine, 'k', 'signing-key', 'pem')).to.match(/^-----BEGIN PRIVATE KEY-----\n/);
      expect(await only(engine, 'k', 'public-key', 'pem')).to.match(/^-----BEGIN PUBLIC KEY-----\n/);
    });

    it(`has its usual format without one, or with an empty one: ${name}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', { ...request, exportable: true });
      for (const exportType of ['signing-key', 'public-key']) {
        const usual = await texts(engine, 'k', exportType);
        expect(await texts(engine, 'k', exportType, '')).to.deep.equal(usual);
        if (kty === 'OKP' || kty === 'AKP') expect(await texts(engine, 'k', exportType, 'raw')).to.deep.equal(usual);
      }
    });
  }

  it('is empty in each format if only the public half is known', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'rsa-2048', exportable: true });
    const publicKey = await only(engine, 'k', 'public-key');
    await engine.transfers.importKey('p', { type: 'rsa-2048', publicKey, exportable: true });
    for (const format of ['', 'der', 'pem', 'jwk']) expect(await only(engine, 'p', 'encryption-key', format)).to.equal('');
    expect(await only(engine, 'p', 'public-key', 'jwk')).to.equal(await only(engine, 'k', 'public-key', 'jwk'));
  });

  it('is exported with all its versions', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'ecdsa-p256', exportable: true });
    await engine.rotateKey('k');
    const jwks = (await texts(engine, 'k', 'signing-key', 'jwk')).map((text) => JSON.parse(text));
    expect(jwks.map(({ kty, crv }) => [kty, crv])).to.deep.equal([
      ['EC', 'P-256'],
      ['EC', 'P-256'],
    ]);
    expect(jwks[0].d).to.not.equal(jwks[1].d);
  });
});

describe('an exported symmetric key', () => {
  for (const [type, exportType] of [
    ['aes128-gcm96', 'encryption-key'],
    ['aes256-gcm96', 'encryption-key'],
    ['aes256-gcm96', 'hmac-key'],
    ['chacha20-poly1305', 'encryption-key'],
    ['hmac', 'hmac-key'],
    ['aes128-cmac', 'cmac-key'],
    ['rsa-2048', 'hmac-key'],
  ] as const)
    it(`is bytes, or a JSON Web Key of type oct: ${exportType} of ${type}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', { type, exportable: true });
      const raw = await only(engine, 'k', exportType, 'raw');
      expect(await only(engine, 'k', exportType)).to.equal(raw);
      const jwk = JSON.parse(await only(engine, 'k', exportType, 'jwk'));
      expect(jwk).to.deep.equal({ kty: 'oct', k: Buffer.from(raw, 'base64').toString('base64url') });
      const formats = `${exportType} of key type ${type} has no format`;
      for (const format of ['der', 'pem'])
        expect(await refusalOf(engine.transfers.exportKey('k', { exportType, format }))).to.deep.equal({
          code: 'invalid_request',
          message: `${formats} ${format}: use raw or jwk`,
        });
    });
});

describe('the format of an export', () => {
  for (const [type, exportType, format, message] of [
    ['aes256-gcm96', 'encryption-key', 'PEM', 'invalid format: PEM'],
    ['aes256-gcm96', 'encryption-key', 'usual', 'invalid format: usual'],
    ['aes256-gcm96', 'encryption-key', 'constructor', 'invalid format: constructor'],
    ['aes256-gcm96', 'bogus-key', 'x', 'invalid export type: bogus-key'],
    ['rsa-2048', 'encryption-key', 'raw', 'encryption-key of key type rsa-2048 has no format raw: use der or pem or jwk'],
    ['rsa-2048', 'public-key', 'raw', 'public-key of key type rsa-2048 has no format raw: use der or pem or jwk'],
    ['ecdsa-p256', 'signing-key', 'raw', 'signing-key of key type ecdsa-p256 has no format raw: use der or pem or jwk'],
    ['ecdsa-p256', 'certificate-chain', 'der', 'certificate-chain of key type ecdsa-p256 has no format der: use pem'],
    ['aes256-gcm96', 'public-key', 'jwk', 'unknown key type aes256-gcm96 for export type public-key'],
    ['ed25519', 'encryption-key', 'jwk', 'encryption not supported for the key'],
  ] as const)
    it(`is refused: ${exportType} ${type} ${format}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', { type, exportable: true });
      expect((await refusalOf(engine.transfers.exportKey('k', { exportType, format }))).message).to.equal(message);
    });

  it('of a hybrid key is raw', async () => {
    const { engine } = newEngine();
    const hybrid = { type: 'hybrid', parameterSet: '44', hybridKeyTypePqc: 'ml-dsa', hybridKeyTypeEc: 'ed25519' };
    await engine.createKey('k', { ...hybrid, exportable: true });
    for (const exportType of ['signing-key', 'public-key']) {
      expect(await texts(engine, 'k', exportType, 'raw')).to.deep.equal(await texts(engine, 'k', exportType));
      expect((await refusalOf(engine.transfers.exportKey('k', { exportType, format: 'jwk' }))).message).to.contain('use raw');
    }
  });

  it('does not make a key exportable', async () => {
    const { engine } = newEngine();
    for (const type of ['aes256-gcm96', 'rsa-2048']) await engine.createKey(type, { type });
    for (const [name, exportType] of [
      ['aes256-gcm96', 'encryption-key'],
      ['aes256-gcm96', 'hmac-key'],
      ['rsa-2048', 'encryption-key'],
      ['rsa-2048', 'signing-key'],
      ['rsa-2048', 'hmac-key'],
    ] as const)
      for (const format of ['', ...exportFormats])
        expect((await refusalOf(engine.transfers.exportKey(name, { exportType, format }))).message).to.equal(
          'private key material is not exportable',
        );
    expect(JSON.parse(await only(engine, 'rsa-2048', 'public-key', 'jwk'))).to.have.all.keys('kty', 'n', 'e');
  });
});
