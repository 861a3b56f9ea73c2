import { expect } from 'chai';
import {
  type ClientCertificate,
  clientCertificateBytesMax,
  clientCertificateIn,
  clientCertificateText,
  clientCertificateTextMax,
  clientChainMax,
  clientChainsMax,
  isCertificate,
} from '../src/index.ts';

const hash = (n: number): string => n.toString(16).padStart(64, '0');
const certificate: ClientCertificate = {
  sha256: hash(1),
  expiresMs: 1_700_000_000_000,
  der: Buffer.from('30030101ff', 'hex'),
  chains: [
    [hash(1), hash(2)],
    [hash(1), hash(3), hash(4)],
  ],
};

describe('the text of a client certificate', () => {
  it('is read again as the same certificate', () => {
    expect(clientCertificateIn(clientCertificateText(certificate))).to.deep.equal(certificate);
  });

  it('is within its limit for the largest certificate with the most and longest chains, and fits into a header', () => {
    const chain = Array.from({ length: clientChainMax }, (_, i) => hash(i));
    const largest = clientCertificateText({
      ...certificate,
      expiresMs: 253_402_300_799_000,
      der: Buffer.alloc(clientCertificateBytesMax, 255),
      chains: Array.from({ length: clientChainsMax }, () => chain),
    });
    expect(largest.length).to.be.at.most(clientCertificateTextMax - 1024);
    expect(largest).to.match(/^[\w.,-]+$/);
  });

  for (const text of [
    '',
    '.',
    '..',
    '1700000000000',
    '1700000000000.MAMBAf8',
    '1700000000000.MAMBAf8.',
    '1700000000000.MAMBAf8.,aa',
  ])
    it(`has no certificate without a chain: ${JSON.stringify(text)}`, () => {
      expect(clientCertificateIn(text)).to.equal(undefined);
    });

  it('is that of a token only with its SHA-256, and before its end', () => {
    const { sha256, expiresMs } = certificate;
    expect(isCertificate(sha256, certificate, expiresMs - 1)).to.equal(true);
    expect(isCertificate(sha256, certificate, expiresMs)).to.equal(false);
    expect(isCertificate(hash(2), certificate, 0)).to.equal(false);
    expect(isCertificate(sha256, undefined, 0)).to.equal(false);
    const torn = clientCertificateIn(clientCertificateText(certificate).replace(/^\d+/, 'x'));
    expect(isCertificate(sha256, torn, 0), 'an end that is no number').to.equal(false);
  });
});
