// @live
import { execFileSync } from 'node:child_process';
import { createHmac, createPrivateKey } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import forge from 'node-forge';
import { isEncrypted, materialFrom } from '../../src/local/key-material.ts';
import { bytesMax, isPkcs12, iterationsMax } from '../../src/local/pkcs12.ts';

describe('a PKCS#12 file', () => {
  let folder: string;
  let pkcs8: Buffer;
  const at = (name: string): string => join(folder, name);
  /** Makes a file with OpenSSL. */
  const made = (name: string, ...options: readonly string[]): Buffer => {
    execFileSync('openssl', ['pkcs12', '-export', '-out', at(name), '-passout', 'pass:the words', ...options], { stdio: 'pipe' });
    return readFileSync(at(name));
  };
  const refusal = (bytes: Buffer, passphrase = 'the words'): string => {
    try {
      expect(materialFrom(bytes, { encoding: 'pkcs12', passphrase })).to.deep.include({ bytes: pkcs8 });
    } catch (error) {
      expect(error).to.be.instanceOf(StartError);
      return (error as Error).message;
    }
    return 'accepted';
  };
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-pkcs12-'));
    const request = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=x', '-days', '9'];
    execFileSync('openssl', [...request, '-keyout', at('key'), '-out', at('certificate')], { stdio: 'pipe' });
    pkcs8 = createPrivateKey(readFileSync(at('key'))).export({ type: 'pkcs8', format: 'der' });
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('gives its private key, with certificates or without, under new and old ciphers', () => {
    const both = ['-inkey', at('key'), '-in', at('certificate')];
    for (const [name, ...options] of [
      ['new', ...both],
      ['old', ...both, '-legacy'],
      ['key-alone', '-inkey', at('key'), '-nocerts'],
      ['key-unencrypted', ...both, '-keypbe', 'NONE'],
      ['aes-128', ...both, '-keypbe', 'AES-128-CBC', '-certpbe', 'AES-128-CBC', '-macalg', 'sha512'],
      ['many-iterations', ...both, '-iter', '100000'],
      ['one-iteration', ...both, '-noiter', '-nomaciter'],
      ['chain', ...both, '-certfile', at('certificate'), '-name', 'a name'],
    ] as const) {
      const content = made(name, ...options);
      expect(isEncrypted(content), name).to.equal(true);
      expect(materialFrom(content, { passphrase: 'the words' }), name).to.deep.equal({
        kind: 'private',
        type: 'rsa-2048',
        bytes: pkcs8,
      });
    }
  });

  it('opens with a passphrase in any script', () => {
    const [passphrase, both] = [
      'pässwörd 密码',
      ['-inkey', at('key'), '-in', at('certificate'), '-passout', 'pass:pässwörd 密码'],
    ];
    for (const [name, ...options] of [
      ['utf8', ...both],
      ['utf8-old', ...both, '-legacy'],
    ] as const)
      expect(materialFrom(made(name, ...options), { passphrase }), name).to.deep.include({ bytes: pkcs8 });
  });

  it('is refused with a wrong passphrase, changed, without a MAC, without a key, and cut off', () => {
    const both = ['-inkey', at('key'), '-in', at('certificate')];
    const content = made('good', ...both);
    expect(refusal(content, 'other words')).to.match(/does not open with this passphrase/);
    expect(refusal(content, '')).to.match(/does not open with this passphrase/);
    const macStart = content.length - 100;
    for (let place = 0; place < content.length; place += 41) {
      const changed = Buffer.from(content);
      changed[place] = (changed[place] ?? 0) ^ 1;
      // The description of the MAC itself has bytes without effect.
      if (refusal(changed) === 'accepted') expect(place, 'a changed byte').to.be.above(macStart);
    }
    expect(refusal(made('no-mac', ...both, '-nomac'))).to.match(/has no MAC/);
    expect(refusal(made('no-key', '-nokeys', '-in', at('certificate')))).to.match(/has 0 private keys/);
    expect(refusal(content.subarray(0, -1))).not.to.equal('accepted');
    expect(refusal(Buffer.alloc(0))).not.to.equal('accepted');
  });

  it('that cannot be read is refused with the command that converts it, and nothing of its content', () => {
    const both = ['-inkey', at('key'), '-in', at('certificate')];
    for (const [name, content, reason] of [
      ['no MAC', made('no-mac', ...both, '-nomac'), /has no MAC/],
      ['another cipher', made('camellia', ...both, '-keypbe', 'CAMELLIA-256-CBC'), /cipher that is not supported/],
      ['another MAC', made('sha3', ...both, '-macalg', 'sha3-256'), /has a MAC that is not supported/],
      [
        'scrypt',
        withMac(infosIn(made('scrypt', ...both)), 1, (der) =>
          der.replaceAll('\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0c', '\x2b\x06\x01\x04\x01\xda\x47\x04\x0b'),
        ),
        /cipher that is not supported/,
      ],
      ['no key', made('no-key', '-nokeys', '-in', at('certificate')), /has 0 private keys/],
      ['a large file', Buffer.concat([made('large', ...both), Buffer.alloc(bytesMax)]), /larger than 1048576 bytes/],
    ] as const)
      expect(refusal(content), name).to.match(reason).and.include('openssl pkcs12 -in FILE -nocerts -out key.pem');
  });

  it('is refused before a derivation with more iterations than the limit, for its MAC and for its key', () => {
    // Both numbers are 100,000 in this file: an integer of three bytes, once for the key and once for the MAC.
    const content = made('iterations', '-inkey', at('key'), '-nocerts', '-iter', '100000');
    const [many, tooMany] = [Buffer.from('02030186a0', 'hex'), Buffer.from('02037fffff', 'hex')];
    const [ofKey, ofMac] = [content.indexOf(many), content.lastIndexOf(many)];
    expect(ofKey).to.be.below(ofMac);
    for (const place of [ofKey, ofMac]) {
      const changed = Buffer.from(content);
      tooMany.copy(changed, place);
      expect(refusal(place === ofKey ? withMac(infosIn(changed)) : changed)).to.match(/asks for more than 1000000 iterations/);
    }
    expect(refusal(withMac(infosIn(content))), 'the same, unchanged').to.equal('accepted');
    expect(refusal(withMac(infosIn(content), iterationsMax + 1))).to.match(/asks for more than 1000000 iterations/);
    expect(refusal(withMac(infosIn(content), 0))).to.match(/or for none/);
  });

  it('is refused with a second key, also in a part of its own', () => {
    const infos = infosIn(made('one', '-inkey', at('key'), '-nocerts'));
    expect(refusal(withMac([...infos, ...infos]))).to.match(/has 2 private keys/);
    expect(refusal(withMac([]))).to.match(/has 0 private keys/);
  });

  it('of a kind that has limits of its own keeps its kind', () => {
    execFileSync('openssl', ['genpkey', '-algorithm', 'rsa-pss', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', at('pss')], {
      stdio: 'pipe',
    });
    expect(refusal(made('pss.p12', '-inkey', at('pss'), '-nocerts'))).to.match(/kind rsa-pss/);
  });

  it('is not mistaken for other material', () => {
    expect(isPkcs12(pkcs8)).to.equal(false);
    expect(isPkcs12(Buffer.alloc(32, 0x30))).to.equal(false);
    expect(isPkcs12(Buffer.from('3080020103', 'hex')), 'indefinite length').to.equal(false);
    expect(isPkcs12(Buffer.alloc(0))).to.equal(false);
  });
});

type Asn1 = forge.asn1.Asn1;
const { SEQUENCE, OCTETSTRING, INTEGER, OID, NULL } = forge.asn1.Type;
const element = (type: forge.asn1.Type, value: string | Asn1[]): Asn1 =>
  forge.asn1.create(forge.asn1.Class.UNIVERSAL, type, typeof value !== 'string', value);
const der = (of: Asn1): string => forge.asn1.toDer(of).getBytes();
const partsOf = (of: Asn1 | undefined): Asn1[] => (Array.isArray(of?.value) ? of.value : []);

/** Returns the parts of the content of a file (ContentInfo). */
function infosIn(file: Buffer): Asn1[] {
  const [, safe] = partsOf(forge.asn1.fromDer(file.toString('latin1')));
  const [octets] = partsOf(partsOf(safe)[1]);
  return partsOf(forge.asn1.fromDer(String(octets?.value)));
}

/** Makes a file of these parts with a valid MAC under the passphrase of this test, except with iterations that are refused. */
function withMac(infos: Asn1[], iterations = 1, change = (bytes: string): string => bytes): Buffer {
  const contents = change(der(element(SEQUENCE, infos)));
  const count = iterations > 0 && iterations <= iterationsMax ? iterations : 1;
  const [salt, md] = ['12345678', forge.md.sha256.create()];
  const key = forge.pkcs12.generateKey('the words', forge.util.createBuffer(salt), 3, count, 32, md);
  const mac = createHmac('sha256', Buffer.from(key.getBytes(), 'latin1')).update(contents, 'latin1').digest().toString('latin1');
  const oid = (name: string): Asn1 => element(OID, forge.asn1.oidToDer(forge.pki.oids[name] ?? '').getBytes());
  const integer = (value: number): Asn1 => element(INTEGER, forge.asn1.integerToDer(value).getBytes());
  const value = forge.asn1.create(forge.asn1.Class.CONTEXT_SPECIFIC, 0, true, [element(OCTETSTRING, contents)]);
  const digest = element(SEQUENCE, [element(SEQUENCE, [oid('sha256'), element(NULL, '')]), element(OCTETSTRING, mac)]);
  const macData = element(SEQUENCE, [digest, element(OCTETSTRING, salt), integer(iterations)]);
  return Buffer.from(der(element(SEQUENCE, [integer(3), element(SEQUENCE, [oid('data'), value]), macData])), 'latin1');
}
