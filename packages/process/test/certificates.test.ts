import { expect } from 'chai';
import { TestAuthority } from '../../cluster/test/test-authority.ts';
import { certificatesIn } from '../src/certificates.ts';

describe('the certificates of a PEM text', () => {
  let one: string;
  let other: string;
  before(async () => {
    [one, other] = [(await TestAuthority.make()).cert, (await TestAuthority.make()).cert];
  });
  const labelled = (label: string): string => one.replaceAll('CERTIFICATE', label);

  it('are all of them, also with text around them and under the older label', () => {
    const found = certificatesIn(`subject=a comment\n${one}\n# another\n${labelled('X509 CERTIFICATE')}${other}`);
    expect(found.map(String)).to.deep.equal([one, one, other].map((pem) => String(certificatesIn(pem)[0])));
  });

  for (const [what, pem, says] of [
    ['no certificate', () => 'no PEM', 'it has no certificate'],
    ['nothing', () => '', 'it has no certificate'],
    ['a certificate with trust settings of OpenSSL', () => one + labelled('TRUSTED CERTIFICATE'), 'TRUSTED CERTIFICATE'],
    ['a revocation list too', () => one + labelled('X509 CRL'), 'X509 CRL'],
    ['a private key too', () => one + labelled('PRIVATE KEY'), 'PRIVATE KEY'],
    ['a certificate without an end', () => one + other.slice(0, -30), ''],
    ['a certificate that ends as something else', () => one + other.replace('END CERTIFICATE', 'END X509 CRL'), ''],
    ['a certificate that cannot be read', () => `${one}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`, ''],
  ] as const)
    it(`are refused as a whole with ${what}`, () => {
      expect(() => certificatesIn(pem())).to.throw(Error, says);
    });
});
