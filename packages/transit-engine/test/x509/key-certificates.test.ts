import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { derTag, encodeDer, parseDer, parseDerSequence } from '../../src/formats/der.ts';
import { readPem } from '../../src/formats/pem.ts';
import type { TransitEngine } from '../../src/index.ts';
import { newEngine, refusalOf } from '../fixtures.ts';
import { Authority } from './certificates.ts';

const authority = new Authority('authority');

async function pairOf(engine: TransitEngine, name: string, version = 1) {
  const pair = (await engine.readKey(name)).versions.find((each) => each.version === version)?.pair;
  if (pair === undefined) throw new Error('no key pair');
  return pair;
}
/** A chain of the version's own certificate and its authority's. */
async function chainFor(engine: TransitEngine, name: string, version = 1): Promise<string> {
  return authority.certify(name, createPublicKey((await pairOf(engine, name, version)).publicKey)) + authority.certificate;
}
/** The public key that a request is for, as PEM. */
function keyIn(request: string): string {
  const [block] = readPem(request) ?? [];
  const parts = parseDerSequence(parseDer(block?.der ?? Buffer.of())?.content ?? Buffer.of()) ?? [];
  const spki = parseDerSequence(parts[0]?.content ?? Buffer.of())?.[2];
  if (spki === undefined) throw new Error('not a request');
  const der = encodeDer(derTag.sequence, spki.content);
  return createPublicKey({ key: der, format: 'der', type: 'spki' }).export({ format: 'pem', type: 'spki' }).toString();
}

describe('requests for certificates', () => {
  it('are for the latest version by default, or for the requested one', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'ecdsa-p256' });
    await engine.rotateKey('k');
    for (const [asked, version] of [
      [undefined, 2],
      ['', 2],
      ['latest', 2],
      ['2', 2],
      ['1', 1],
    ] as const) {
      const answer = await engine.certificates.request('k', { version: asked });
      expect(answer).to.include({ name: 'k', type: 'ecdsa-p256', version });
      expect(keyIn(answer.csr)).to.equal((await pairOf(engine, 'k', version)).publicKey);
    }
  });

  it('are signed by keys of type ml-dsa too', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'ml-dsa', parameterSet: '44' });
    const { csr, type } = await engine.certificates.request('k', {});
    expect(type).to.equal('ml-dsa');
    expect(createPublicKey(keyIn(csr)).asymmetricKeyType).to.equal('ml-dsa-44');
  });

  for (const [asked, message] of [
    ['0', 'no such key version'],
    ['1', 'no such key version'],
    ['3', 'no such key version'],
    ['-1', 'no such key version'],
    ['999999999999999', 'no such key version'],
    ['v2', 'invalid key version'],
    ['1.5', 'invalid key version'],
    ['LATEST', 'invalid key version'],
    ['9'.repeat(16), 'invalid key version'],
  ] as const) {
    it(`are refused, as is a chain, for version ${asked}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', { type: 'ecdsa-p256' });
      await engine.rotateKey('k');
      await engine.configureKey('k', { minDecryptionVersion: 2 });
      expect((await refusalOf(engine.certificates.request('k', { version: asked }))).message).to.equal(message);
      expect((await refusalOf(engine.certificates.setChain('k', { version: asked }))).message).to.equal(message);
    });
  }

  it('are not signed by a version that may not sign, while its chain is stored', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'ecdsa-p256' });
    await engine.rotateKey('k');
    await engine.configureKey('k', { minEncryptionVersion: 2 });
    expect(await refusalOf(engine.certificates.request('k', { version: '1' }))).to.deep.equal({
      code: 'key_version_unavailable',
      message: 'requested version for signing is less than the minimum encryption key version',
    });
    expect((await engine.certificates.request('k', { version: '2' })).version).to.equal(2);
    expect((await engine.certificates.setChain('k', { version: '1', chain: await chainFor(engine, 'k', 1) })).version).to.equal(
      1,
    );
  });

  for (const { request, message } of [
    { request: {}, message: "key type 'aes256-gcm96' does not support signing" },
    { request: { type: 'hmac' }, message: "key type 'hmac' does not support signing" },
    { request: { type: 'ed25519', derived: true }, message: 'operation not supported for keys with derivation enabled' },
    {
      request: { type: 'hybrid', parameterSet: '44', hybridKeyTypePqc: 'ml-dsa', hybridKeyTypeEc: 'ed25519' },
      message: "there are no certificates for keys of type 'hybrid'",
    },
  ]) {
    it(`are refused for ${JSON.stringify(request)}`, async () => {
      const { engine } = newEngine();
      await engine.createKey('k', request);
      expect(await refusalOf(engine.certificates.request('k', {}))).to.deep.equal({ code: 'invalid_request', message });
      expect(await refusalOf(engine.certificates.setChain('k', {}))).to.deep.equal({ code: 'invalid_request', message });
    });
  }

  it('are refused without a private half, while a chain is stored', async () => {
    const { engine } = newEngine();
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const pem = publicKey.export({ format: 'pem', type: 'spki' }).toString();
    await engine.transfers.importKey('k', { type: 'rsa-2048', publicKey: pem });
    expect((await refusalOf(engine.certificates.request('k', {}))).message).to.equal(
      'could not create the csr: private key not imported for key version selected',
    );
    const chain = await chainFor(engine, 'k');
    expect((await engine.certificates.setChain('k', { chain })).chain).to.equal(chain);
  });

  it('are refused for an unknown key', async () => {
    const { engine } = newEngine();
    const missing = { code: 'key_not_found', message: "key with provided name 'k' not found" };
    expect(await refusalOf(engine.certificates.request('k', {}))).to.deep.equal(missing);
    expect(await refusalOf(engine.certificates.setChain('k', { chain: 'x' }))).to.deep.equal(missing);
  });
});

describe('certificate chains of a key', () => {
  it('are shown and exported with their version, and replaced', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'ecdsa-p384' });
    await engine.rotateKey('k');
    const [first, second] = [await chainFor(engine, 'k', 1), await chainFor(engine, 'k', 2)];
    expect(await engine.certificates.setChain('k', { version: '1', chain: first })).to.include({ version: 1, chain: first });
    expect((await pairOf(engine, 'k', 1)).certificateChain).to.equal(first);
    expect((await pairOf(engine, 'k', 2)).certificateChain).to.equal('');
    expect((await refusalOf(engine.transfers.exportKey('k', { exportType: 'certificate-chain' }))).message).to.equal(
      'selected key version does not have a certificate chain imported',
    );
    await engine.certificates.setChain('k', { chain: second });
    const { versions } = await engine.transfers.exportKey('k', { exportType: 'certificate-chain' });
    expect(versions.map(({ material }) => Buffer.from(material).toString())).to.deep.equal([first, second]);
    const another = await chainFor(engine, 'k', 2);
    await engine.certificates.setChain('k', { version: 'latest', chain: another });
    expect((await pairOf(engine, 'k', 2)).certificateChain).to.equal(another);
  });

  it('change nothing else: the key signs as before, also from other caches', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'ecdsa-p256' });
    const request = { input: Buffer.from('x').toString('base64') };
    const before = await engine.signing.sign('k', request);
    await engine.certificates.setChain('k', { chain: await chainFor(engine, 'k') });
    if (!('signature' in before)) throw new Error('the request was no batch');
    expect(await engine.signing.verify('k', { ...request, signature: before.signature })).to.deep.equal({ valid: true });
    expect(await engine.signing.sign('k', request)).to.have.property('keyVersion', 1);
  });

  it('are restored from a backup', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'ecdsa-p256', exportable: true, allowPlaintextBackup: true });
    const chain = await chainFor(engine, 'k');
    await engine.certificates.setChain('k', { chain });
    const backup = (await engine.transfers.backupKey('k')).toString('base64');
    await engine.transfers.restoreKey({ backup, name: 'copy' });
    expect((await pairOf(engine, 'copy')).certificateChain).to.equal(chain);
  });

  it('belong to the requested version', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'ecdsa-p256' });
    await engine.rotateKey('k');
    const chain = await chainFor(engine, 'k', 1);
    expect((await refusalOf(engine.certificates.setChain('k', { chain }))).message).to.equal(
      'failed to persist certificate chain: leaf certificate public key does not match the selected key version',
    );
    expect((await pairOf(engine, 'k', 2)).certificateChain).to.equal('');
  });

  it('can be set during a rotation, and neither change is lost', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'ecdsa-p256' });
    const chain = await chainFor(engine, 'k');
    await Promise.all([engine.rotateKey('k'), engine.certificates.setChain('k', { version: '1', chain }), engine.rotateKey('k')]);
    expect((await engine.readKey('k')).latestVersion).to.equal(3);
    expect((await pairOf(engine, 'k', 1)).certificateChain).to.equal(chain);
  });
});
