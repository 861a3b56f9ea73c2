import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import { Pkcs11Failure } from '../src/failure.ts';
import { publicKeyOf } from '../src/public-key.ts';
import { digestInfo } from '../src/rsa-encoding.ts';
import { curves } from '../src/token-key.ts';

const bytes = (text: string | undefined): Buffer => Buffer.from(text ?? '', 'base64url');

describe('the public key that a token returns', () => {
  for (const [name, { jwk, oid }] of Object.entries(curves)) {
    it(`is decoded on ${name}, with and without an OCTET STRING header`, () => {
      const { publicKey } = generateKeyPairSync('ec', { namedCurve: jwk });
      const { x, y } = publicKey.export({ format: 'jwk' });
      const point = Buffer.concat([Buffer.of(4), bytes(x), bytes(y)]);
      const header = point.length < 128 ? Buffer.of(4, point.length) : Buffer.of(4, 0x81, point.length);
      for (const shown of [point, Buffer.concat([header, point])]) {
        const der = publicKeyOf({ kind: 'ec', parameters: Buffer.from(oid, 'hex'), point: shown });
        expect(createPublicKey({ key: der, format: 'der', type: 'spki' }).equals(publicKey)).to.equal(true);
      }
    });
  }

  it('is decoded for RSA', () => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const { n, e } = publicKey.export({ format: 'jwk' });
    const der = publicKeyOf({ kind: 'rsa', modulus: bytes(n), exponent: bytes(e) });
    expect(createPublicKey({ key: der, format: 'der', type: 'spki' }).equals(publicKey)).to.equal(true);
  });

  for (const { name, parameters, point } of [
    { name: 'on another curve', parameters: '06052b8104000a', point: `04${'01'.repeat(64)}` },
    { name: 'if it is truncated', parameters: curves.P256.oid, point: `04${'01'.repeat(60)}` },
    { name: 'in compressed form', parameters: curves.P256.oid, point: `02${'01'.repeat(32)}` },
    { name: 'if it is not on the curve', parameters: curves.P256.oid, point: `04${'01'.repeat(64)}` },
    { name: 'if it is empty', parameters: '', point: '' },
  ]) {
    it(`is refused ${name}`, () => {
      const read = () =>
        publicKeyOf({ kind: 'ec', parameters: Buffer.from(parameters, 'hex'), point: Buffer.from(point, 'hex') });
      expect(read).to.throw(Pkcs11Failure).with.property('code', 'key_unsuitable');
    });
  }
});

describe('the DigestInfo of PKCS#1 v1.5', () => {
  it('does not exist for an unknown hash', () => {
    expect(() => digestInfo({ hash: 'md5', digest: Buffer.alloc(16) }))
      .to.throw(Pkcs11Failure)
      .with.property('code', 'not_possible');
  });
});
