import { execFileSync } from 'node:child_process';
import { createSecureContext } from 'node:tls';
import { expect } from 'chai';
import { TestAuthority } from '../../cluster/test/test-authority.ts';
import { revocationExpiryMs } from '../src/revocation-lists.ts';

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

  it('is undefined without a list, and for one that names no next update', async () => {
    expect(revocationExpiryMs({})).to.equal(undefined);
    expect(revocationExpiryMs({ crl: [await authority.revocations([authority.cert], null)] })).to.equal(undefined);
  });
});
