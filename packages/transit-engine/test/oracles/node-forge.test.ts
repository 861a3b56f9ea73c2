// RSA signatures and encryption, certificate requests and certificates, compared with node-forge: JavaScript that shares no code with
// OpenSSL (decision 118). node-forge has no ECDSA: certificate-request.test.ts checks the requests of ECDSA keys with `openssl`.
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { expect } from 'chai';
import forge from 'node-forge';
import type { TransitEngine } from '../../src/index.ts';
import { certificateChain } from '../../src/x509/certificate-chain.ts';
import { certificateRequest } from '../../src/x509/certificate-request.ts';
import { base64, decryptOne, encryptOne, newEngine } from '../fixtures.ts';

const message = 'the quick brown fox';
const input = base64(message);
const digests = {
  sha1: () => forge.md.sha1.create(),
  'sha2-256': () => forge.md.sha256.create(),
  'sha2-384': () => forge.md.sha384.create(),
  'sha2-512': () => forge.md.sha512.create(),
};
type Digest = keyof typeof digests;
const digestOf = (name: Digest): forge.md.MessageDigest => digests[name]().update(message, 'utf8');
const pss = (name: Digest, saltLength: number) =>
  forge.pss.create({ md: digests[name](), mgf: forge.mgf.mgf1.create(digests[name]()), saltLength });
const bytesOf = (text: string): string => Buffer.from(text.slice('svc:v1:'.length), 'base64').toString('latin1');
const textOf = (bytes: string): string => `svc:v1:${Buffer.from(bytes, 'latin1').toString('base64')}`;

describe('compared with node-forge', () => {
  let engine: TransitEngine;
  let privatePem = '';
  let publicKey: forge.pki.rsa.PublicKey;
  let privateKey: forge.pki.rsa.PrivateKey;

  before(async () => {
    ({ engine } = newEngine());
    await engine.createKey('k', { type: 'rsa-2048', exportable: true });
    const { versions } = await engine.transfers.exportKey('k', { exportType: 'signing-key' });
    privatePem = Buffer.from(versions[0]?.material ?? []).toString();
    privateKey = forge.pki.privateKeyFromPem(privatePem);
    publicKey = forge.pki.rsa.setPublicKey(privateKey.n, privateKey.e);
  });

  const signed = async (hash: Digest, settings: Readonly<Record<string, string>>): Promise<string> => {
    const reply = await engine.signing.sign('k', { input, hashAlgorithm: hash, ...settings });
    if ('results' in reply) throw new Error('the request was no batch');
    return reply.signature;
  };

  for (const name of Object.keys(digests) as Digest[]) {
    it(`a PSS signature with ${name} verifies there, and one from there verifies here`, async () => {
      const scheme = pss(name, digests[name]().digestLength);
      const signature = await signed(name, { signatureAlgorithm: 'pss', saltLength: 'hash' });
      expect(publicKey.verify(digestOf(name).digest().bytes(), bytesOf(signature), scheme)).to.equal(true);
      const theirs = textOf(privateKey.sign(digestOf(name), scheme));
      const verified = { input, hashAlgorithm: name, signatureAlgorithm: 'pss', signature: theirs };
      expect(await engine.signing.verify('k', verified)).to.deep.equal({ valid: true });
      expect(await engine.signing.verify('k', { ...verified, input: base64('another message') })).to.deep.equal({ valid: false });
    });

    it(`a PKCS #1 v1.5 signature with ${name} is the same, byte for byte`, async () => {
      expect(await signed(name, { signatureAlgorithm: 'pkcs1v15' })).to.equal(textOf(privateKey.sign(digestOf(name))));
    });
  }

  it('OAEP ciphertexts open in both directions', async () => {
    const scheme = { md: forge.md.sha256.create(), mgf1: { md: forge.md.sha256.create() } };
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: input });
    expect(privateKey.decrypt(bytesOf(ciphertext), 'RSA-OAEP', scheme)).to.equal(message);
    const theirs = textOf(publicKey.encrypt(message, 'RSA-OAEP', scheme));
    expect(await decryptOne(engine, 'k', { ciphertext: theirs })).to.deep.equal({ plaintext: input });
  });

  it('a certificate request has a valid signature, the subject of its template and the key', async () => {
    const template = forge.pki.createCertificationRequest();
    template.publicKey = publicKey;
    template.setSubject([{ name: 'commonName', value: 'a.example' }]);
    template.sign(privateKey, forge.md.sha256.create());
    const made = await certificateRequest(createPrivateKey(privatePem), forge.pki.certificationRequestToPem(template));
    const request = forge.pki.certificationRequestFromPem(made);
    expect(request.verify()).to.equal(true);
    expect(request.subject.getField('CN').value).to.equal('a.example');
    expect(forge.pki.publicKeyToPem(request.publicKey as forge.pki.rsa.PublicKey)).to.equal(forge.pki.publicKeyToPem(publicKey));
    const der = forge.pem.decode(made)[0]?.body ?? '';
    const changed = forge.pki.certificationRequestFromAsn1(forge.asn1.fromDer(der.replace('a.example', 'b.example')), true);
    expect(changed.subject.getField('CN').value).to.equal('b.example');
    expect(changed.verify(), 'a changed subject').to.equal(false);
  });

  it('a chain of certificates from there is accepted, and refused for another key', () => {
    const authority = forge.pki.rsa.generateKeyPair(2048);
    const rootName = [{ name: 'commonName', value: 'root' }];
    const root = certificate({ subject: rootName, issuer: rootName, key: authority.publicKey, ca: true }, authority.privateKey);
    const leafName = [{ name: 'commonName', value: 'leaf' }];
    const leaf = certificate({ subject: leafName, issuer: rootName, key: publicKey, ca: false }, authority.privateKey);
    const key = { keyType: 'rsa-2048', publicKey: createPublicKey(privatePem) };
    expect(certificateChain(leaf + root, key).replaceAll('\r', '')).to.equal((leaf + root).replaceAll('\r', ''));
    const another = { keyType: 'rsa-2048', publicKey: createPublicKey(forge.pki.publicKeyToPem(authority.publicKey)) };
    expect(() => certificateChain(leaf + root, another)).to.throw();
  });
});

interface CertificateFields {
  readonly subject: forge.pki.CertificateField[];
  readonly issuer: forge.pki.CertificateField[];
  readonly key: forge.pki.rsa.PublicKey;
  readonly ca: boolean;
}

/** Returns a certificate as PEM. */
function certificate({ subject, issuer, key, ca }: CertificateFields, signer: forge.pki.rsa.PrivateKey): string {
  const made = forge.pki.createCertificate();
  made.serialNumber = '01';
  made.validity.notBefore = new Date('2020-01-01T00:00:00Z');
  made.validity.notAfter = new Date('2049-01-01T00:00:00Z');
  made.publicKey = key;
  made.setSubject(subject);
  made.setIssuer(issuer);
  made.setExtensions([{ name: 'basicConstraints', cA: ca }]);
  made.sign(signer, forge.md.sha256.create());
  return forge.pki.certificateToPem(made);
}
