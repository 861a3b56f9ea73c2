import { expect } from 'chai';
import { initialAccess } from '../../src/index.ts';

const bytes = (value: Uint8Array | null | undefined): Buffer => Buffer.from(value ?? []);

describe('initialAccess', () => {
  it('makes a different token of s. and 24 characters each time', () => {
    const made = Array.from({ length: 50 }, () => initialAccess({ now: 0 }).rootToken);
    for (const token of made) expect(token).to.match(/^s\.[0-9A-Za-z]{24}$/);
    expect(new Set(made).size).to.equal(50);
  });

  it('uses every base62 character about equally often', () => {
    const counts = new Map<string, number>();
    for (let round = 0; round < 500; round += 1)
      for (const character of initialAccess({ now: 0 }).rootToken.slice(2))
        counts.set(character, (counts.get(character) ?? 0) + 1);
    expect(counts.size).to.equal(62);
    const expected = (500 * 24) / 62; // 193; seven standard deviations are 97
    for (const [character, count] of counts) expect(count, character).to.be.within(expected - 97, expected + 97);
  });

  it('writes a random key, the token and its accessor, with neither of the two in a path', () => {
    const { rootToken, writes } = initialAccess({ now: 1234 });
    expect(writes.map(({ path }) => path.replace(/[0-9a-f]{64}$/, '<hmac>'))).to.deep.equal([
      'access/token-key',
      'access/token/<hmac>',
      'access/accessor/<hmac>',
    ]);
    expect(bytes(writes[0]?.value)).to.have.lengthOf(33);
    const record = JSON.parse(bytes(writes[1]?.value).toString());
    expect(record).to.deep.include({ format: 1, policies: ['root'], displayName: 'root', createdMs: 1234, expiresMs: 0 });
    const paths = JSON.stringify(writes.map(({ path }) => path));
    expect(paths + JSON.stringify(record)).not.to.include(rootToken.slice(2));
    expect(paths).not.to.include(record.accessor);
  });

  it('hashes one token to a different path each time, since the key differs', () => {
    const paths = [1, 2].map(() => initialAccess({ now: 0, rootToken: 'dev' }).writes[1]?.path);
    expect(paths[0]).not.to.equal(paths[1]);
  });

  it('accepts a chosen token', () => {
    expect(initialAccess({ now: 0, rootToken: 'dev-root' }).rootToken).to.equal('dev-root');
  });

  for (const rootToken of ['', 'a\nb', 'x'.repeat(1025)])
    it(`refuses the chosen token ${JSON.stringify(rootToken.slice(0, 5))} of ${rootToken.length} characters`, () => {
      expect(() => initialAccess({ now: 0, rootToken }))
        .to.throw()
        .with.property('code', 'invalid_token');
    });
});
