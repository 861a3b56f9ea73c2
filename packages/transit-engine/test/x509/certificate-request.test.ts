import { execFileSync } from 'node:child_process';
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, verify } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { derTag, encodeDer, parseDer, parseDerSequence } from '../../src/formats/der.ts';
import { pemOf, readPem } from '../../src/formats/pem.ts';
import { TransitError } from '../../src/values/errors.ts';
import { certificateRequest, templateCharsMax } from '../../src/x509/certificate-request.ts';
import { recordedRequests } from './recorded-requests.ts';

const kinds: Readonly<Record<string, () => KeyObject>> = {
  'rsa-2048': () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
  'ecdsa-p256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  'ecdsa-p384': () => generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
  'ecdsa-p521': () => generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey,
  ed25519: () => generateKeyPairSync('ed25519').privateKey,
  'ml-dsa-65': () => generateKeyPairSync('ml-dsa-65').privateKey,
};
const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

/** Returns the output of `openssl` for a request whose signature it has verified. */
function opensslOn(request: string, ...args: readonly string[]): string {
  return execFileSync('openssl', ['req', '-verify', '-noout', ...args], {
    input: request,
    stdio: ['pipe', 'pipe', 'pipe'],
  }).toString();
}

/** Returns a template that `openssl` makes for a new key. */
function opensslTemplate(subject: string, ...args: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-csr-'));
  try {
    const keyFile = join(folder, 'key.pem');
    writeFileSync(keyFile, generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }));
    return execFileSync('openssl', ['req', '-new', '-batch', '-key', keyFile, '-subj', subject, ...args]).toString();
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function refusalOf(template: string): Promise<string> {
  try {
    await certificateRequest(key, template);
  } catch (error) {
    if (error instanceof TransitError) return error.message;
    throw error;
  }
  throw new Error('the template was not refused');
}

/** Returns the DER bytes of a PEM text with one block. */
function derOf(pem: string): Buffer {
  const [block] = readPem(pem) ?? [];
  if (block === undefined) throw new Error('no PEM');
  return block.der;
}

describe('a certificate request', () => {
  for (const [kind, newKey] of Object.entries(kinds)) {
    it(`of a key of type ${kind} is for its public half and signed by it`, async () => {
      const privateKey = newKey();
      const pem = await certificateRequest(privateKey);
      expect(pem).to.match(/^-----BEGIN CERTIFICATE REQUEST-----\n(?:[\w+/=]{1,64}\n)+-----END CERTIFICATE REQUEST-----\n$/);
      const [unsigned, , signature] = parseDerSequence(parseDer(derOf(pem))?.content ?? Buffer.of()) ?? [];
      const spki = parseDerSequence(unsigned?.content ?? Buffer.of())?.[2];
      if (!unsigned || !signature || !spki) throw new Error('not a request');
      const der = encodeDer(spki.tag, spki.content);
      const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' });
      expect(publicKey.equals(createPublicKey(privateKey))).to.equal(true);
      const hash = { 'ecdsa-p256': 'sha256', 'ecdsa-p384': 'sha384', 'ecdsa-p521': 'sha512', 'rsa-2048': 'sha256' }[kind] ?? null;
      const message = encodeDer(unsigned.tag, unsigned.content);
      expect(verify(hash, message, publicKey, signature.content.subarray(1))).to.equal(true);
    });
  }

  for (const [kind, newKey] of Object.entries(kinds).filter(([name]) => name !== 'ml-dsa-65')) {
    it(`of a key of type ${kind} is accepted by openssl, with an empty subject`, async () => {
      expect(opensslOn(await certificateRequest(newKey()), '-subject').trim()).to.equal('subject=');
    });
  }

  it('takes the subject and the extensions of its template', async () => {
    const template = opensslTemplate(
      '/C=CH/O=Müller & Söhne/CN=a.example',
      '-addext',
      'subjectAltName=DNS:a.example,DNS:b.example',
      '-utf8',
    );
    const text = opensslOn(await certificateRequest(key, template), '-text', '-nameopt', 'utf8,sep_multiline,-esc_msb');
    expect(text).to.include('O=Müller & Söhne').and.include('CN=a.example');
    expect(text).to.include('DNS:a.example, DNS:b.example');
    expect(text).to.include('ecdsa-with-SHA256').and.not.include('ED25519');
  });

  it('does not check the signature of its template', async () => {
    const der = derOf(opensslTemplate('/CN=a.example'));
    der[der.length - 1] = (der.at(-1) ?? 0) ^ 1;
    const request = await certificateRequest(key, pemOf({ label: 'NEW CERTIFICATE REQUEST', der }));
    expect(opensslOn(request, '-subject')).to.include('a.example');
  });

  it('can be a template; only key and signature differ', async () => {
    const template = opensslTemplate('/CN=a.example', '-addext', 'basicConstraints=CA:FALSE');
    const once = await certificateRequest(key, template);
    const again = await certificateRequest(key, once);
    const parts = [once, again].map((pem) => parseDerSequence(parseDer(derOf(pem))?.content ?? Buffer.of())?.[0]?.content);
    expect(parts[0]).to.deep.equal(parts[1]);
  });

  for (const { name, key: pem, template, request } of recordedRequests) {
    it(`has the recorded bytes for the ${name}`, async () =>
      expect(await certificateRequest(createPrivateKey(pem), template)).to.equal(request));
  }

  const notPem = 'could not decode PEM CSR';
  const notRequest = 'could not parse the CSR: it is not a PKCS #10 certificate request';
  const { sequence, integer, bitString, objectIdentifier } = derTag;
  const [set, zero] = [0x31, encodeDer(integer, Buffer.of(0))];
  const [empty, algorithm] = [encodeDer(sequence), encodeDer(sequence, encodeDer(objectIdentifier, Buffer.of(1)))];
  const signature = encodeDer(bitString, Buffer.of(0));
  const pemFrom = (...parts: readonly Uint8Array[]): string =>
    pemOf({ label: 'CERTIFICATE REQUEST', der: encodeDer(sequence, ...parts) });
  const withInfo = (...info: readonly Uint8Array[]): string => pemFrom(encodeDer(sequence, ...info), algorithm, signature);
  it('accepts the smallest template, whose attributes may be missing', async () => {
    const smallestKey = encodeDer(sequence, algorithm, signature);
    for (const attributes of [[], [encodeDer(derTag.explicit)]])
      expect(opensslOn(await certificateRequest(key, withInfo(zero, empty, smallestKey, ...attributes)))).to.be.a('string');
  });

  for (const { name, template, message } of [
    { name: 'no PEM', template: 'junk', message: notPem },
    { name: 'white space', template: ' \n', message: notPem },
    {
      name: 'a certificate',
      template: pemOf({ label: 'CERTIFICATE', der: derOf(withInfo(zero, empty, algorithm)) }),
      message: notPem,
    },
    { name: 'too long', template: 'x'.repeat(templateCharsMax + 1), message: 'the CSR template is longer than 65536 characters' },
    { name: 'not DER', template: pemOf({ label: 'CERTIFICATE REQUEST', der: Buffer.from('3080') }), message: notRequest },
    {
      name: 'without a signature',
      template: pemFrom(encodeDer(sequence, zero, empty, algorithm), algorithm),
      message: notRequest,
    },
    {
      name: 'with more than a signature',
      template: pemFrom(encodeDer(sequence, zero, empty, algorithm), algorithm, signature, signature),
      message: notRequest,
    },
    { name: 'without a key', template: withInfo(zero, empty), message: notRequest },
    { name: 'with a subject that is a set', template: withInfo(zero, encodeDer(set), algorithm), message: notRequest },
    {
      name: 'with a subject of other things than types and values',
      template: withInfo(zero, encodeDer(sequence, encodeDer(set, encodeDer(sequence, zero, zero))), algorithm),
      message: notRequest,
    },
    {
      name: 'with attributes of another tag',
      template: withInfo(zero, empty, algorithm, encodeDer(set)),
      message: notRequest,
    },
    {
      name: 'with an attribute without values',
      template: withInfo(zero, empty, algorithm, encodeDer(derTag.explicit, algorithm)),
      message: notRequest,
    },
    {
      name: 'with an attribute whose value is not DER',
      template: withInfo(
        zero,
        empty,
        algorithm,
        encodeDer(
          derTag.explicit,
          encodeDer(sequence, encodeDer(objectIdentifier, Buffer.of(1)), encodeDer(set, Buffer.of(0x30, 5))),
        ),
      ),
      message: notRequest,
    },
    {
      name: 'with a length that is BER in its subject',
      template: withInfo(zero, Buffer.from('308110310e300c06035504030c0561626364', 'hex'), algorithm),
      message: notRequest,
    },
    { name: 'with a key that is an algorithm alone', template: withInfo(zero, empty, algorithm), message: notRequest },
    {
      name: 'nested without end',
      template: withInfo(
        zero,
        empty,
        Array.from({ length: 40 }).reduce<Buffer>((inner) => encodeDer(sequence, inner), empty),
      ),
      message: notRequest,
    },
  ]) {
    it(`refuses a template that is ${name}`, async () => expect(await refusalOf(template)).to.equal(message));
  }

  it('is refused or well-formed for a template with modified bytes', async () => {
    const der = derOf(opensslTemplate('/CN=a.example', '-addext', 'subjectAltName=DNS:a.example'));
    await fc.assert(
      fc.asyncProperty(fc.nat(der.length - 1), fc.integer({ min: 1, max: 255 }), async (at, mask) => {
        const altered = Buffer.from(der);
        altered[at] = (altered[at] ?? 0) ^ mask;
        const request = await certificateRequest(key, pemOf({ label: 'CERTIFICATE REQUEST', der: altered })).catch(
          (error: unknown) => {
            if (!(error instanceof TransitError)) throw error;
          },
        );
        if (request !== undefined) expect(parseDerSequence(parseDer(derOf(request))?.content ?? Buffer.of())).to.have.lengthOf(3);
      }),
      { numRuns: 300 },
    );
  });
});
