import { createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { pemOf, readPem } from '../../src/formats/pem.ts';
import { TransitError } from '../../src/values/errors.ts';
import { certificateChain, chainCertificatesMax, chainCharsMax } from '../../src/x509/certificate-chain.ts';
import { Authority } from './certificates.ts';

const root = new Authority('root');
const middle = new Authority('middle');
const stranger = new Authority('stranger');
const middleCertificate = root.certify('middle', middle.keys.publicKey, { ca: true });
const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
const leaf = middle.certify('leaf', publicKey);
const key = { keyType: 'ecdsa-p384', publicKey };

function refusalOf(text: string, of = key): string {
  try {
    certificateChain(text, of);
  } catch (error) {
    if (error instanceof TransitError) return error.message;
    throw error;
  }
  throw new Error('the chain was not refused');
}

describe('a certificate chain', () => {
  it('is returned as given', () => {
    const chain = leaf + middleCertificate + root.certificate;
    expect(certificateChain(chain, key)).to.equal(chain);
  });

  it('may be only the key’s certificate, and need not reach a root', () => {
    expect(certificateChain(leaf, key)).to.equal(leaf);
    expect(certificateChain(leaf + middleCertificate, key)).to.equal(leaf + middleCertificate);
  });

  for (const type of ['rsa', 'ed25519', 'ml-dsa-44', 'ml-dsa-87'] as const) {
    it(`may be for a key of type ${type}`, () => {
      const keys = type === 'rsa' ? generateKeyPairSync('rsa', { modulusLength: 2048 }) : generateKeyPairSync(type as 'ed25519');
      const chain = middle.certify('leaf', keys.publicKey) + middleCertificate;
      expect(certificateChain(chain, { keyType: type, publicKey: keys.publicKey })).to.equal(chain);
    });
  }

  it('may contain explanations before a certificate, other blocks and other line ends', () => {
    const other = pemOf({ label: 'X509 CRL', der: Buffer.from('anything') });
    const text = `subject=CN = a-b-c\r\n${leaf.replaceAll('\n', '\r\n')}\n${other}\ni:CN - root\n${middleCertificate}\n\n`;
    expect(certificateChain(text, key)).to.equal(leaf + middleCertificate);
  });

  const noBlock = 'could not decode a PEM block in the certificate chain';
  const noCertificate = 'provided certificate chain did not contain any valid PEM encoded certificate';
  const broken = (number: number): string =>
    `failed to persist certificate chain: certificate ${number} was not issued by the certificate that follows it`;
  for (const { name, text, message } of [
    { name: 'nothing', text: '', message: noCertificate },
    { name: 'no PEM', text: 'junk', message: noBlock },
    { name: 'nothing but other blocks', text: pemOf({ label: 'PUBLIC KEY', der: Buffer.of(1) }), message: noCertificate },
    { name: 'text behind the last certificate', text: `${leaf}junk`, message: noBlock },
    { name: 'a block that does not end', text: leaf.slice(0, -30), message: noBlock },
    { name: 'a block that ends as another', text: leaf.replace('END CERTIFICATE', 'END X509 CRL'), message: noBlock },
    { name: 'a block that is not base64', text: leaf.replace('MII', 'M*I'), message: noBlock },
    {
      name: 'a block that is no certificate',
      text: pemOf({ label: 'CERTIFICATE', der: Buffer.from('3003020101', 'hex') }),
      message: 'could not parse a certificate in the certificate chain: number 1 is not an X.509 certificate',
    },
    {
      name: 'a byte behind a certificate',
      text:
        leaf + pemOf({ label: 'CERTIFICATE', der: Buffer.concat([new X509Certificate(middleCertificate).raw, Buffer.of(0)]) }),
      message: 'could not parse a certificate in the certificate chain: number 2 is not an X.509 certificate',
    },
    {
      name: 'an authority first',
      text: middleCertificate + root.certificate,
      message: 'failed to persist certificate chain: certificate in the first element is not a valid leaf certificate',
    },
    {
      name: 'a leaf last',
      text: leaf + leaf,
      message: 'failed to persist certificate chain: certificate in the last element is not a valid CA certificate',
    },
    {
      name: 'a leaf between',
      text: leaf + leaf + root.certificate,
      message:
        'failed to persist certificate chain: could not validate if there is only one leaf certificate: every certificate but the first has to be a CA certificate',
    },
    {
      name: 'a leaf for another key of the same kind',
      text: middle.certify('leaf', generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey),
      message: 'failed to persist certificate chain: leaf certificate public key does not match the selected key version',
    },
    {
      name: 'a leaf for a key of another kind',
      text: middle.certify('leaf', generateKeyPairSync('ed25519').publicKey),
      message:
        "failed to persist certificate chain: provided leaf certificate public key algorithm 'ed25519' does not match the transit key type 'ecdsa-p384'",
    },
    { name: 'certificates in another order', text: leaf + root.certificate + middleCertificate, message: broken(1) },
    { name: 'an authority of another name', text: leaf + stranger.certificate, message: broken(1) },
    {
      name: 'the key of its authority under another name',
      text: leaf + new Authority('other', middle.keys).certificate,
      message: broken(1),
    },
    {
      name: 'an authority of the same name with another key',
      text: leaf + middleCertificate + new Authority('root').certificate,
      message: broken(2),
    },
    {
      name: 'too many certificates',
      text: leaf + middleCertificate.repeat(chainCertificatesMax),
      message: 'the certificate chain has more than 16 certificates',
    },
    {
      name: 'too much text',
      text: ' '.repeat(chainCharsMax + 1),
      message: 'the certificate chain is longer than 65536 characters',
    },
  ]) {
    it(`refuses ${name}`, () => expect(refusalOf(text)).to.equal(message));
  }

  it('may have the maximum number of certificates', () => {
    const chain = leaf + middleCertificate + root.certificate.repeat(chainCertificatesMax - 2);
    expect(certificateChain(chain, key)).to.equal(chain);
  });

  it('is refused with a modified byte anywhere in the signed part of a certificate', () => {
    const { raw } = new X509Certificate(leaf);
    fc.assert(
      fc.property(fc.nat(raw.length - 1), fc.integer({ min: 1, max: 255 }), (at, mask) => {
        const der = Buffer.from(raw);
        der[at] = (der[at] ?? 0) ^ mask;
        expect(() => certificateChain(pemOf({ label: 'CERTIFICATE', der }) + middleCertificate, key)).to.throw(TransitError);
      }),
      { numRuns: 300 },
    );
  });
});

describe('PEM', () => {
  it('is decoded to the encoded blocks', () => {
    const blocks = fc.array(fc.record({ label: fc.constantFrom('A', 'CERTIFICATE', 'X509 CRL'), bytes: fc.uint8Array() }));
    fc.assert(
      fc.property(blocks, (all) => {
        const text = all.map(({ label, bytes }) => pemOf({ label, der: Buffer.from(bytes) })).join('');
        const read = readPem(text)?.map(({ label, der }) => ({ label, bytes: Uint8Array.from(der) }));
        expect(read).to.deep.equal(all);
      }),
    );
  });

  it('is decoded or refused for any text', () => {
    const piece = fc.constantFrom('-----BEGIN ', '-----END ', 'CERTIFICATE', '-----', '\n', 'AAAA', '=', ' ', '-');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        readPem(pieces.join(''));
      }),
      { numRuns: 1000 },
    );
  });

  it('agrees with node:crypto', () => {
    const pem = publicKey.export({ format: 'pem', type: 'spki' }).toString();
    const [block] = readPem(pem) ?? [];
    expect(block && pemOf(block)).to.equal(pem);
    expect(createPublicKey(pem).equals(publicKey)).to.equal(true);
  });

  for (const [what, n, e] of [
    ['a modulus of 16,384 bits', 2048, 3],
    ['an exponent of 64 bits', 256, 8],
  ] as const)
    it(`is refused if an issuer has an RSA key with ${what}, before a signature is verified`, () => {
      const numbers = { n: Buffer.alloc(n, 0xff).toString('base64url'), e: Buffer.alloc(e, 0xff).toString('base64url') };
      const large = createPublicKey({ key: { kty: 'RSA', ...numbers }, format: 'jwk' });
      expect(refusalOf(leaf + root.certify('middle', large, { ca: true }))).to.equal(
        'failed to persist certificate chain: certificate 2 has a key that is not supported: RSA of at most 8192 bits, or a named curve',
      );
    });

  it('is refused if an issuer has a DSA key, whose parameters may be of any size', () => {
    const { publicKey: dsa } = generateKeyPairSync('dsa', { modulusLength: 1024, divisorLength: 160 });
    expect(refusalOf(leaf + root.certify('middle', dsa, { ca: true }))).to.contain(
      'certificate 2 has a key that is not supported',
    );
  });
});
