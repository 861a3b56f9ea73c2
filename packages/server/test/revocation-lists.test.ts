import { execFileSync } from 'node:child_process';
import { createSecureContext } from 'node:tls';
import { revocationExpiryMs } from '@transitd/configuration';
import { expect } from 'chai';
import { TestAuthority } from '../../cluster/test/test-authority.ts';

/** Returns a sequence of ASN.1, whose length has two bytes. */
function sequence(...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const header = Buffer.from([0x30, 0x82, 0, 0]);
  header.writeUInt16BE(content.length, 2);
  return Buffer.concat([header, content]);
}

const utcTime = (text: string): Buffer => Buffer.concat([Buffer.from([0x17, text.length]), Buffer.from(text)]);
const part = Buffer.concat([Buffer.from('3131302f06035504030c28', 'hex'), Buffer.from('é'.repeat(20))]);
const name = sequence(part, part, part);
/** A name whose length is indefinite. */
const endedName = Buffer.concat([Buffer.from([0x30, 0x80]), name.subarray(4), Buffer.from([0, 0])]);

/** Returns a list without a version and a signature, in PEM. */
function listOf({ issuer = name, nextUpdate = '310101000000Z' }): string {
  const algorithm = sequence(Buffer.from('06082a8648ce3d040302', 'hex'));
  const signed = sequence(algorithm, issuer, utcTime('200101000000Z'), utcTime(nextUpdate));
  const list = sequence(signed, algorithm, Buffer.from([3, 1, 0]));
  return `-----BEGIN X509 CRL-----\n${list.toString('base64')}\n-----END X509 CRL-----\n`;
}

describe('the expiry of revocation lists', () => {
  let authority: TestAuthority;
  before(async () => {
    authority = await TestAuthority.make();
  });

  for (const [what, end] of [
    ['of this century', '2031-02-03T04:05:06Z'],
    ['in the past', '1999-12-31T23:59:59Z'],
    ['of a year without a short form', '2060-01-02T03:04:05Z'],
  ] as const)
    it(`is the time of the next update: one ${what}`, async () => {
      const crl = [await authority.revocations([authority.cert], new Date(end))];
      createSecureContext({ crl });
      expect(revocationExpiryMs({ crl })).to.equal(Date.parse(end));
      const shown = execFileSync('openssl', ['crl', '-noout', '-nextupdate'], { input: crl[0] });
      expect(Date.parse(String(shown).replace('nextUpdate=', ''))).to.equal(Date.parse(end));
    });

  it('is that of the first list to expire', async () => {
    const [early, late] = [new Date('2031-01-01T00:00:00Z'), new Date('2032-01-01T00:00:00Z')];
    const lists = [await authority.revocations([], late), await authority.revocations([], early)];
    expect(revocationExpiryMs({ crl: lists })).to.equal(early.getTime());
    expect(revocationExpiryMs({ crl: lists.slice(0, 1) })).to.equal(late.getTime());
  });

  for (const [what, list] of [
    ['of an issuer of indefinite length', listOf({ issuer: endedName })],
    ['until a time with a zone', listOf({ nextUpdate: '3101010000+00' })],
  ] as const)
    it(`is that of the other lists where OpenSSL accepts one that is not DER: one ${what}`, () => {
      createSecureContext({ crl: list });
      expect(revocationExpiryMs({ crl: list })).to.equal(undefined);
      expect(revocationExpiryMs({ crl: [list, listOf({})] })).to.equal(Date.parse('2031-01-01T00:00:00Z'));
    });

  it('is undefined without a list, and for one that names no next update', async () => {
    expect(revocationExpiryMs({})).to.equal(undefined);
    expect(revocationExpiryMs({ crl: [await authority.revocations([authority.cert], null)] })).to.equal(undefined);
  });
});
