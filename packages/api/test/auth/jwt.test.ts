import { createPublicKey, generateKeyPairSync, type JsonWebKey, sign } from 'node:crypto';
import { type FetchedKeys, type KeySources, OutsideWaits } from '@transitd/access';
import { expect } from 'chai';
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWTHeaderParameters, SignJWT, UnsecuredJWT } from 'jose';
import { refusal } from '../../../access/test/fixtures.ts';
import { clockOf } from '../../../process/test/test-clock.ts';
import type { JwtConfigChange } from '../../src/auth/jwt/config.ts';
import { type JwtKeySource, JwtKeys } from '../../src/auth/jwt/keys.ts';
import type { JwtRoleChange } from '../../src/auth/jwt/role.ts';
import { withMethod } from './login-setup.ts';

const pair = await generateKeyPair('ES256', { extractable: true });
const stranger = await generateKeyPair('ES256', { extractable: true });
const pem = await exportSPKI(pair.publicKey);
const privateJwk = await exportJWK(pair.privateKey);
const jwkOf = async (key: CryptoKey, kid?: string) => ({ ...(await exportJWK(key)), ...(kid !== undefined && { kid }) });

async function withJwt(
  change: Partial<JwtRoleChange> = {},
  config: JwtConfigChange = { keys: [pem] },
  sources = new Map<string, string>(),
) {
  let fetches = 0;
  const read = async (name: string) => {
    fetches += 1;
    const text = sources.get(name);
    if (text === 'broken') throw new Error('no connection');
    return text;
  };
  const all = await withMethod(
    'jwt',
    sourcesBy((source) => read(source.kind === 'file' ? source.name : addressOf(source))),
  );
  const { jwt } = all;
  await jwt.configure(await all.mount(), { issuer: 'https://issuer', algorithms: ['ES256'], ...config });
  await jwt.write(await all.mount(), 'ci', { audiences: ['transitd'], userClaim: 'sub', token: { policies: ['a'] }, ...change });
  const good = { iss: 'https://issuer', aud: 'transitd', sub: 'job-7', exp: all.clock.now / 1000 + 600 };
  const signed = (
    claims: object = {},
    { key = pair.privateKey, ...header }: { key?: CryptoKey } & Partial<JWTHeaderParameters> = {},
  ) => new SignJWT({ ...good, ...claims }).setProtectedHeader({ alg: 'ES256', ...header }).sign(key);
  const enter = async (token: string, { role = 'CI', address }: { role?: string; address?: string } = {}) =>
    jwt.login(await all.login('auth/m/login', address), await jwt.roleNameOf(await all.mount(), role), token);
  return { ...all, jwt, good, signed, enter, fetches: () => fetches };
}

type Rsa = ReturnType<typeof generateKeyPairSync>;

/** Key sources of which a test gives the texts. */
const sourcesBy = (fetch: KeySources['fetch']): KeySources => ({ fetch, failed: () => undefined });
const addressOf = (source: FetchedKeys): string => ('url' in source ? source.url : source.kind);

describe('a JWT login', () => {
  it('creates a token with the settings of the role', async () => {
    const { signed, enter, who } = await withJwt({ claimMappings: { '/run/branch': 'branch', none: 'none' } });
    const { token, record } = await enter(await signed({ run: { branch: 'main' } }));
    expect(record).to.deep.include({
      policies: ['a', 'default'],
      displayName: 'm-job-7',
      meta: { branch: 'main', role: 'ci' },
    });
    expect(await who(token)).to.include({ root: false });
  });

  for (const [what, claims, name, reason] of [
    ['another issuer', { iss: 'https://other' }, 'iss', 'not the expected one'],
    ['no issuer', { iss: undefined }, 'iss', 'missing'],
    ['another audience', { aud: 'other' }, 'aud', 'not the expected one'],
    ['no audience', { aud: undefined }, 'aud', 'missing'],
    ['no expiry', { exp: undefined }, 'exp', 'missing'],
    ['an expiry that is a text', { exp: 'soon' }, 'exp', 'invalid'],
    ['a past expiry', { exp: 1_699_999_000 }, 'exp', 'not the expected one'],
    ['a future not-before time', { nbf: 1_700_001_000 }, 'nbf', 'not the expected one'],
    ['a future time of issue', { iat: 1_700_001_000 }, 'iat', 'in the future'],
    ['no user', { sub: undefined }, 'sub', 'name a user'],
    ['a user that is not a string', { sub: 7 }, 'sub', 'name a user'],
    ['an empty user', { sub: '' }, 'sub', 'name a user'],
  ] as const)
    it(`is refused with ${what}, and names the claim but none of its values`, async () => {
      const { signed, enter } = await withJwt();
      const text = await refusal(enter(await signed(claims)));
      expect(text).to.match(new RegExp(`^claim_refused: the token is refused: .*its claim "${name}" .*${reason}$`));
      expect(text).to.not.match(/other|soon|1_?[67]00|https/);
    });

  it('is refused for a token of an unknown signer', async () => {
    const { good, signed, enter } = await withJwt();
    const token = await signed();
    const [head, , signature] = token.split('.');
    const forged = Buffer.from(JSON.stringify({ ...good, sub: 'admin' })).toString('base64url');
    // A symmetric algorithm would use the published key as its secret.
    const symmetric = await new SignJWT(good).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(pem));
    for (const bad of [
      await signed({}, { key: stranger.privateKey }),
      new UnsecuredJWT(good).encode(),
      symmetric,
      `${head}.${forged}.${signature}`,
      `${token}x`,
      token.slice(0, -4),
      `${head}..${signature}`,
      'nonsense',
    ])
      expect(await refusal(enter(bad)), bad).to.match(/^invalid_request: the token is refused/);
    expect(await refusal(enter(''))).to.match(/token is missing/);
    expect(await refusal(enter('x'.repeat(20_000)))).to.match(/longer than 16384/);
  });

  it('needs no key id if the keys have none, whatever id the token names', async () => {
    const other = await exportSPKI(stranger.publicKey);
    for (const keys of [[pem], [other, pem]]) {
      const { signed, enter } = await withJwt({}, { keys });
      expect(await refusal(enter(await signed({}, { kid: 'k7' })))).to.equal('none');
    }
    const { signed, enter } = await withJwt({}, { keys: [other] });
    expect(await refusal(enter(await signed({}, { kid: 'k7' })))).to.match(/the token is refused/);
  });

  it('is refused for an algorithm that is not configured', async () => {
    const { signed, enter } = await withJwt({}, { keys: [pem], algorithms: ['RS256'] });
    expect(await refusal(enter(await signed()))).to.match(/the token is refused/);
  });

  for (const { role, claims, passes } of [
    { role: { boundClaims: { ref: ['main', 'dev'] } }, claims: { ref: 'dev' }, passes: true },
    { role: { boundClaims: { ref: ['main'] } }, claims: { ref: 'main2' }, passes: false },
    { role: { boundClaims: { ref: ['main'] } }, claims: {}, passes: false },
    { role: { boundClaims: { ref: ['main*'] } }, claims: { ref: 'main2' }, passes: false },
    { role: { boundClaims: { ref: ['main*'] }, boundClaimsType: 'glob' }, claims: { ref: 'main2' }, passes: true },
    { role: { boundClaims: { ref: ['r:*:main'] }, boundClaimsType: 'glob' }, claims: { ref: 'r:x:main' }, passes: true },
    { role: { boundClaims: { ref: ['r:*:main'] }, boundClaimsType: 'glob' }, claims: { ref: 'r:x:dev' }, passes: false },
    { role: { boundClaims: { ref: ['main'] } }, claims: { ref: ['x', 'main'] }, passes: true },
    { role: { boundClaims: { ok: [true] } }, claims: { ok: 'true' }, passes: false },
    { role: { boundClaims: { ok: [true] } }, claims: { ok: true }, passes: true },
    { role: { boundClaims: { '/a/b': ['x'] } }, claims: { a: { b: 'x' } }, passes: true },
    { role: { boundClaims: { '/a/1': ['y'] } }, claims: { a: ['x', 'y'] }, passes: true },
    { role: { boundClaims: { '/a/length': [2] } }, claims: { a: ['x', 'y'] }, passes: false },
    { role: { boundClaims: { a: ['1'], b: ['2'] } }, claims: { a: '1' }, passes: false },
    { role: { boundClaims: { constructor: ['x'] } }, claims: {}, passes: false },
    { role: { subject: 'job-7' }, claims: {}, passes: true },
    { role: { subject: 'job-8' }, claims: {}, passes: false },
  ] as const)
    it(`${passes ? 'passes' : 'is refused'} with ${JSON.stringify(claims)} for ${JSON.stringify(role)}`, async () => {
      const { signed, enter } = await withJwt(role);
      const outcome = await refusal(enter(await signed(claims)));
      if (passes) expect(outcome).to.equal('none');
      else expect(outcome).to.match(/the token is refused/);
    });

  it("grants the policies of the user's groups", async () => {
    const { signed, enter } = await withJwt({ groupsClaim: 'groups', groupPolicies: { dev: ['b', 'C'], ops: ['d'] } });
    const policies = async (groups: unknown) => (await enter(await signed({ groups }))).record.policies;
    expect(await policies(['dev', 'unknown', 'toString'])).to.deep.equal(['a', 'b', 'c', 'default']);
    expect(await policies('ops')).to.deep.equal(['a', 'd', 'default']);
    expect(await policies([])).to.deep.equal(['a', 'default']);
  });

  for (const [groups, why] of [
    [undefined, 'missing'],
    [null, 'missing'],
    [7, 'not a list of groups'],
    [{ dev: true }, 'not a list of groups'],
    [['dev', 1], 'not a list of groups'],
    [[null], 'not a list of groups'],
    [[['dev']], 'not a list of groups'],
  ] as const)
    it(`is refused if its groups are ${JSON.stringify(groups)}`, async () => {
      const { signed, enter } = await withJwt({ groupsClaim: 'groups', groupPolicies: { dev: ['b'] } });
      const outcome = await refusal(enter(await signed({ groups })));
      expect(outcome).to.equal(`claim_refused: the token is refused: its claim "groups" is ${why}`);
    });

  for (const { role, claims, user } of [
    { role: { userClaim: '/run/by' }, claims: { '/run/by': 'ann', run: { by: 'bob' } }, user: 'ann' },
    { role: { userClaim: '/run/by' }, claims: { run: { by: 'bob' } }, user: undefined },
    { role: { userClaim: '/run/by', userClaimJsonPointer: true }, claims: { run: { by: 'bob' } }, user: 'bob' },
    { role: { userClaim: 'by', userClaimJsonPointer: true }, claims: { by: 'bob' }, user: 'bob' },
    { role: { userClaim: '/run/1', userClaimJsonPointer: true }, claims: { run: ['x', 'bob'] }, user: 'bob' },
    { role: { userClaim: '/run/a~1b', userClaimJsonPointer: true }, claims: { run: { 'a/b': 'bob' } }, user: 'bob' },
    { role: { userClaim: '/constructor/name', userClaimJsonPointer: true }, claims: {}, user: undefined },
  ])
    it(`is that of ${user ?? 'nobody'} with ${JSON.stringify(claims)} for ${JSON.stringify(role)}`, async () => {
      const { signed, enter } = await withJwt(role);
      const entered = enter(await signed(claims));
      if (user === undefined) expect(await refusal(entered)).to.match(/does not name a user$/);
      else expect((await entered).record.displayName).to.equal(`m-${user}`);
    });

  const now = 1_700_000_000;
  for (const { leewayS, claims, passes } of [
    { leewayS: 0, claims: { exp: now - 59 }, passes: true },
    { leewayS: 0, claims: { exp: now - 61 }, passes: false },
    { leewayS: 0, claims: { nbf: now + 59 }, passes: true },
    { leewayS: 0, claims: { nbf: now + 61 }, passes: false },
    { leewayS: 0, claims: { iat: now + 61 }, passes: false },
    { leewayS: -1, claims: { exp: now - 1 }, passes: false },
    { leewayS: -1, claims: { exp: now + 1 }, passes: true },
    { leewayS: -1, claims: { nbf: now + 1 }, passes: false },
    { leewayS: -1, claims: { iat: now + 1 }, passes: false },
    { leewayS: -300, claims: { exp: now - 1 }, passes: false },
    { leewayS: 5, claims: { exp: now - 4 }, passes: true },
    { leewayS: 5, claims: { exp: now - 6 }, passes: false },
  ])
    it(`${passes ? 'passes' : 'is refused'} with ${JSON.stringify(claims)} and a clock_skew_leeway of ${leewayS}`, async () => {
      const { signed, enter } = await withJwt({ leewayS });
      expect(await refusal(enter(await signed(claims)))).to.match(passes ? /^none$/ : /^claim_refused/);
    });

  for (const { maxAgeS, claims, passes } of [
    { maxAgeS: 0, claims: {}, passes: true },
    { maxAgeS: 600, claims: { auth_time: now - 600 }, passes: true },
    { maxAgeS: 600, claims: { auth_time: now - 660 }, passes: true },
    { maxAgeS: 600, claims: { auth_time: now - 661 }, passes: false },
    { maxAgeS: 600, claims: {}, passes: false },
    { maxAgeS: 600, claims: { iat: now }, passes: false },
    { maxAgeS: 600, claims: { auth_time: String(now) }, passes: false },
    { maxAgeS: 600, claims: { auth_time: null }, passes: false },
  ])
    it(`${passes ? 'passes' : 'is refused'} with ${JSON.stringify(claims)} and a max_age of ${maxAgeS}`, async () => {
      const { signed, enter } = await withJwt({ maxAgeS });
      expect(await refusal(enter(await signed(claims)))).to.match(passes ? /^none$/ : /its claim "auth_time"/);
    });

  it('uses the configured role when it names none, and requires an existing role', async () => {
    const { signed, enter } = await withJwt({}, { keys: [pem], defaultRole: 'ci' });
    expect(await refusal(enter(await signed(), { role: '' }))).to.equal('none');
    expect(await refusal(enter(await signed(), { role: 'other' }))).to.equal('invalid_request: unknown role');
  });

  it('lets other work run while the items of a long claim are compared', async () => {
    const values = Array.from({ length: 1000 }, (_, n) => `*-${n}`);
    const { signed, enter } = await withJwt({ boundClaims: { groups: values }, boundClaimsType: 'glob' });
    const token = await signed({ groups: Array(2000).fill('g') });
    const { now } = performance;
    let [looks, turns, isOver] = [0, 0, false];
    const count = (): void => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    performance.now = () => looks++; // a slice has four looks
    setImmediate(count);
    try {
      expect(await refusal(enter(token))).to.contain('does not match the role');
    } finally {
      isOver = true;
      performance.now = now;
    }
    expect(turns).to.be.at.least(2000 / 5);
  });

  it('is refused outside the bound CIDRs of the role', async () => {
    const { signed, enter } = await withJwt({ token: { boundCidrs: ['10.0.0.0/8'] } });
    const forged = await signed({}, { key: stranger.privateKey });
    expect(await refusal(enter(await signed())))
      .to.match(/^invalid_request: the token is refused/)
      .and.equal(await refusal(enter(forged)));
    expect(await refusal(enter(await signed(), { address: '10.0.0.1' }))).to.equal('none');
  });
});

/** Every two sources of keys, each with the error of a configuration with both. */
const pairsOfSources = Object.entries({
  jwt_validation_pubkeys: { keys: [pem] },
  jwks: { jwks: '{"keys":[]}' },
  jwks_file: { file: 'f' },
  jwks_url: { url: 'https://issuer/keys' },
  oidc_discovery_url: { discoveryUrl: 'https://issuer' },
  provider_config: { provider: 'kubernetes' },
} satisfies Record<string, JwtConfigChange>).flatMap(([one, first], at, all) =>
  all
    .slice(at + 1)
    .map(
      ([other, second]) =>
        [`${one} and ${other}`, { ...first, ...second }, `exactly one of .*, not ${one} and ${other}$`] as const,
    ),
);

describe('keys that verify tokens', () => {
  it('may be several without key ids', async () => {
    const { signed, enter } = await withJwt({}, { keys: [await exportSPKI(stranger.publicKey), pem] });
    expect(await refusal(enter(await signed()))).to.equal('none');
    const third = await generateKeyPair('ES256');
    expect(await refusal(enter(await signed({}, { key: third.privateKey })))).to.match(/the token is refused/);
  });

  it('may be several, of which those that are too short verify nothing', async () => {
    const [short, long] = [1024, 2048].map((modulusLength) => generateKeyPairSync('rsa', { modulusLength })) as [Rsa, Rsa];
    const keys = [short, long].map(({ publicKey }) => publicKey.export({ type: 'spki', format: 'pem' }).toString());
    const { good, enter } = await withJwt({}, { keys, algorithms: ['RS256'] });
    const text = [{ alg: 'RS256' }, good].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
    const signedBy = ({ privateKey }: Rsa) => `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`;
    expect(await refusal(enter(signedBy(long)))).to.equal('none');
    expect(await refusal(enter(signedBy(short)))).to.match(/SIGNATURE_VERIFICATION_FAILED/);
  });

  it('are cached, and fetched again for an unknown key at most once a second', async () => {
    const set = async (...kids: string[]) =>
      JSON.stringify({ keys: await Promise.all(kids.map((kid) => jwkOf(pair.publicKey, kid))) });
    const sources = new Map([['https://issuer/keys', await set('one')]]);
    const { signed, enter, fetches, clock } = await withJwt({}, { url: 'https://issuer/keys' }, sources);
    const outcome = async (kid: string) => refusal(enter(await signed({}, { kid })));
    expect([await outcome('one'), await outcome('one'), fetches()]).to.deep.equal(['none', 'none', 1]);
    sources.set('https://issuer/keys', await set('two'));
    expect(await outcome('two')).to.match(/the token is refused/);
    expect(fetches()).to.equal(1);
    clock.now += 1000;
    expect([await outcome('two'), fetches()]).to.deep.equal(['none', 2]);
    expect(await outcome('one'), 'a key that was withdrawn').to.match(/the token is refused/);
    clock.now += 5 * 60_000;
    expect([await outcome('two'), fetches()]).to.deep.equal(['none', 3]);
  });

  it('are not fetched for a token that no key could verify', async () => {
    const sources = new Map([['https://issuer/keys', JSON.stringify({ keys: [await jwkOf(pair.publicKey, 'one')] })]]);
    const { good, signed, enter, fetches, clock } = await withJwt({}, { url: 'https://issuer/keys' }, sources);
    await enter(await signed({}, { kid: 'one' }));
    clock.now += 1000;
    for (const bad of [
      new UnsecuredJWT(good).encode(),
      await new SignJWT(good).setProtectedHeader({ alg: 'HS256', kid: 'two' }).sign(Buffer.from(pem)),
      await signed({}, { kid: 'one', key: stranger.privateKey }),
      'nonsense',
    ])
      expect(await refusal(enter(bad)), bad).to.match(/the token is refused/);
    expect(fetches()).to.equal(1);
  });

  it('are never those that a token itself names or brings', async () => {
    const sources = new Map([['https://issuer/keys', JSON.stringify({ keys: [await jwkOf(pair.publicKey, 'one')] })]]);
    const { signed, enter, fetches } = await withJwt({}, { url: 'https://issuer/keys' }, sources);
    const jwk = await exportJWK(stranger.publicKey);
    for (const header of [{ jwk }, { jku: 'https://stranger/keys' }, { x5u: 'https://stranger/keys' }])
      for (const kid of ['one', 'two'])
        expect(await refusal(enter(await signed({}, { kid, key: stranger.privateKey, ...header })))).to.match(/is refused/);
    expect(fetches()).to.equal(1);
  });

  it('of one issuer verify no token of another', async () => {
    const sources = new Map([
      ['https://a/keys', JSON.stringify({ keys: [await jwkOf(pair.publicKey, 'k')] })],
      ['https://b/keys', JSON.stringify({ keys: [await jwkOf(stranger.publicKey, 'k')] })],
    ]);
    const ofA = await withJwt({}, { url: 'https://a/keys', issuer: 'https://a' }, sources);
    const ofB = await withJwt({}, { url: 'https://b/keys', issuer: 'https://b' }, sources);
    const [byA, byB] = [pair.privateKey, stranger.privateKey];
    expect(await refusal(ofA.enter(await ofA.signed({ iss: 'https://a' }, { kid: 'k', key: byA })))).to.equal('none');
    expect(await refusal(ofA.enter(await ofA.signed({ iss: 'https://a' }, { kid: 'k', key: byB })))).to.match(/is refused/);
    expect(await refusal(ofB.enter(await ofB.signed({ iss: 'https://b' }, { kid: 'k', key: byA })))).to.match(/is refused/);
    expect(await refusal(ofB.enter(await ofB.signed({ iss: 'https://a' }, { kid: 'k', key: byB })))).to.match(/claim "iss"/);
  });

  it('that cannot be fetched are reported as unavailable, and fetched again a second later', async () => {
    const sources = new Map([['cluster', 'broken']]);
    const { signed, enter, fetches, clock } = await withJwt({}, { file: 'cluster' }, sources);
    expect(await refusal(enter(await signed()))).to.match(/^keys_unavailable/);
    sources.set('cluster', JSON.stringify({ keys: [await jwkOf(pair.publicKey)] }));
    expect(await refusal(enter(await signed()))).to.match(/^keys_unavailable/);
    expect(fetches()).to.equal(1);
    clock.now += 1000;
    expect(await refusal(enter(await signed()))).to.equal('none');
  });

  it('are used for an hour while their provider gives none; new ones are not', async () => {
    const sources = new Map([['https://issuer/keys', JSON.stringify({ keys: [await jwkOf(pair.publicKey, 'one')] })]]);
    const { signed, enter, clock } = await withJwt({}, { url: 'https://issuer/keys' }, sources);
    const outcome = async (kid: string) => {
      const exp = clock.now / 1000 + 600;
      return refusal(enter(await signed({ exp }, { kid })));
    };
    expect(await outcome('one')).to.equal('none');
    sources.set('https://issuer/keys', 'broken');
    clock.now += 3_599_000;
    expect(await outcome('one')).to.equal('none');
    expect(await outcome('two')).to.match(/^keys_unavailable/);
    clock.now += 1000;
    expect(await outcome('one')).to.match(/^keys_unavailable/);
    sources.set('https://issuer/keys', JSON.stringify({ keys: [await jwkOf(pair.publicKey, 'two')] }));
    clock.now += 1000;
    expect(await outcome('two')).to.equal('none');
  });

  for (const [source, change, beginning] of [
    ['https://issuer/keys', { url: 'https://issuer/keys' }, 'error checking jwks URL'],
    ['https://issuer', { discoveryUrl: 'https://issuer', issuer: '' }, 'error checking oidc discovery URL'],
    ['kubernetes', { provider: 'kubernetes' }, 'invalid provider_config'],
  ] as const)
    it(`of ${source} are fetched when the method is configured, at once even after a failure`, async () => {
      const sources = new Map([[source, 'broken']]);
      const { jwt, mount, signed, enter, fetches } = await withJwt({}, { keys: [pem] }, sources);
      const config = { issuer: 'https://issuer', ...change };
      const configured = async () => refusal(jwt.configure(await mount(), config));
      expect(await configured()).to.equal(`invalid_request: ${beginning}: no connection`);
      sources.set(source, '{}');
      expect(await configured()).to.equal(`invalid_request: ${beginning}: a key set must have 1 to 100 keys`);
      expect(await refusal(enter(await signed())), 'the former configuration').to.equal('none');
      sources.set(source, JSON.stringify({ keys: [await jwkOf(stranger.publicKey, 'k')] }));
      expect(await configured()).to.equal('none');
      expect(await refusal(enter(await signed())), 'a key of the former configuration').to.match(/is refused/);
      expect(await refusal(enter(await signed({}, { key: stranger.privateKey, kid: 'k' })))).to.equal('none');
      const other = await signed({ iss: 'https://issuer/' }, { key: stranger.privateKey, kid: 'k' });
      expect(await refusal(enter(other))).to.match(/claim "iss"/);
      expect(fetches()).to.equal(3);
    });

  it('that never arrive block at most 16 logins, and none of another source', async () => {
    const arrived = Promise.withResolvers<string>();
    const good = JSON.stringify({ keys: [await jwkOf(pair.publicKey)] });
    const fetch = (source: FetchedKeys) => (addressOf(source) === 'https://hangs/keys' ? arrived.promise : Promise.resolve(good));
    const keys = new JwtKeys({ sources: sourcesBy(fetch), clock: clockOf(() => 0), waits: new OutsideWaits() });
    const outcome = (source: JwtKeySource): Promise<string> => refusal(keys.verify(source, 'x', {}));
    const hanging = { kind: 'url', url: 'https://hangs/keys', ca: '' } as const;
    const waiting = Array.from({ length: 16 }, () => outcome(hanging));
    expect(await outcome(hanging)).to.match(/^busy_logins/);
    const others = [
      { ...hanging, url: 'https://issuer/keys' },
      { kind: 'keys', keys: [pem] },
      { kind: 'jwks', jwks: good },
    ] as const;
    for (const other of others) expect(await outcome(other)).to.match(/the token is refused/);
    arrived.resolve(good);
    for (const told of await Promise.all(waiting)) expect(told).to.match(/the token is refused/);
    expect(await outcome(hanging)).to.match(/the token is refused/);
  });

  it('that are too short give no token', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 });
    const keys = [publicKey.export({ type: 'spki', format: 'pem' }).toString()];
    const { good, enter } = await withJwt({}, { keys, algorithms: ['RS256'] });
    const text = [{ alg: 'RS256' }, good].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
    const signature = sign('sha256', Buffer.from(text), privateKey).toString('base64url');
    expect(await refusal(enter(`${text}.${signature}`))).to.equal('keys_unavailable: a key that verifies tokens cannot be used');
  });

  it('may be in a file that the configuration names', async () => {
    const sources = new Map([['cluster', JSON.stringify({ keys: [await jwkOf(pair.publicKey)] })]]);
    const { signed, enter } = await withJwt({}, { file: 'cluster' }, sources);
    expect(await refusal(enter(await signed()))).to.equal('none');
    const other = await withJwt({}, { file: 'unknown' }, sources);
    expect(await refusal(other.enter(await signed()))).to.match(/^keys_unavailable: .*no key file of that name/);
  });

  for (const [what, change, text] of [
    ['no source', {}, 'exactly one of'],
    ['two sources', { keys: [pem], file: 'x' }, 'exactly one of .* must be set, not jwt_validation_pubkeys and jwks_file$'],
    ...pairsOfSources,
    ['a text that is not a key', { keys: ['x'] }, 'a public key in PEM'],
    ['http', { url: 'http://issuer/keys' }, 'must be an https URL'],
    ['a file URL', { url: 'file:///etc/passwd' }, 'must be an https URL'],
    ['a private key', { jwks: JSON.stringify({ keys: [privateJwk] }) }, 'public keys only'],
    ['a symmetric key', { jwks: '{"keys":[{"kty":"oct","k":"AAAA"}]}' }, 'public keys only'],
    ['a set with an item that is not a key', { jwks: '{"keys":[1]}' }, 'each item of a key set'],
    ['too many keys', { keys: Array.from({ length: 101 }, () => pem) }, 'jwt_validation_pubkeys must have at most 100 keys'],
    ['an empty set', { jwks: '{"keys":[]}' }, '1 to 100 keys'],
    ['a set that is not JSON', { jwks: '{' }, 'a key set must be JSON'],
    ['a set of many values', { jwks: `{"keys":[{"kty":"RSA","x5c":[${'"",'.repeat(10_000)}""]}]}` }, 'more than 6400 values'],
    ['a set of many objects', { jwks: `{"keys":[${'{},'.repeat(1000)}{}]}` }, 'more than 400 arrays and objects'],
    ['a key with many members', { jwks: `{"keys":[{${'"a":0,'.repeat(100)}"kty":"EC"}]}` }, 'more than 64 members'],
    ['an RSA key of 16,384 bits', { jwks: rsaOf(2048, 3) }, 'at most 8192 bits'],
    ['an RSA key with an exponent of 64 bits', { jwks: rsaOf(256, 8) }, 'at most 8192 bits and a public exponent below 2\\^32'],
    ['a PEM key of 16,384 bits', { keys: [pemOf(rsaOf(2048, 3))] }, 'at most 8192 bits'],
    ['no issuer', { keys: [pem], issuer: '' }, 'bound_issuer must be set'],
    ['no issuer for the cluster of the node', { provider: 'kubernetes', issuer: '' }, 'bound_issuer must be set'],
    ['a discovery URL with http', { discoveryUrl: 'http://issuer' }, 'oidc_discovery_url must be an https URL without'],
    ['a discovery URL with a query', { discoveryUrl: 'https://issuer?a' }, 'oidc_discovery_url must be an https URL without'],
    ['a discovery URL with a fragment', { discoveryUrl: 'https://issuer#a' }, 'oidc_discovery_url must be an https URL without'],
    ['a discovery URL with a user', { discoveryUrl: 'https://u@issuer' }, 'oidc_discovery_url must be an https URL without'],
    ['a discovery URL with a password', { discoveryUrl: 'https://:p@issuer' }, 'oidc_discovery_url must be an https URL without'],
    ['a CA without its URL', { keys: [pem], urlCa: 'x' }, 'jwks_ca_pem requires jwks_url'],
    ['a CA for another URL', { discoveryUrl: 'https://issuer', urlCa: 'x' }, 'jwks_ca_pem requires jwks_url'],
    ['a CA of discovery without its URL', { keys: [pem], discoveryCa: 'x' }, 'oidc_discovery_ca_pem requires oidc_discovery_url'],
    ['a CA of discovery for the cluster', { provider: 'kubernetes', discoveryCa: 'x' }, 'oidc_discovery_ca_pem requires'],
    ['a CA that is no certificate', { url: 'https://issuer', urlCa: 'x' }, 'jwks_ca_pem must be certificates in PEM'],
    ['a CA that is a key', { discoveryUrl: 'https://issuer', discoveryCa: pem }, 'oidc_discovery_ca_pem must be certificates'],
    ['a symmetric algorithm', { keys: [pem], algorithms: ['HS256'] }, 'jwt_supported_algs must name'],
    ['the algorithm none', { keys: [pem], algorithms: ['none'] }, 'jwt_supported_algs must name'],
  ] as const)
    it(`are refused with ${what}`, async () => {
      const { jwt, mount } = await withMethod('jwt');
      const settings = { issuer: 'i', algorithms: ['ES256'], ...change };
      expect(await refusal(jwt.configure(await mount(), settings))).to.match(new RegExp(`^invalid_request: .*${text}`));
    });
});

describe('a JWT role', () => {
  for (const [what, change, text] of [
    ['no audience', { audiences: [] }, 'bound_audiences must be set'],
    ['no user claim', { userClaim: '' }, 'user_claim must be set'],
    [
      'a hundred thousand values of a claim',
      { boundClaims: { a: Array(100_000).fill(0) } },
      'bound_claims must have at most 65536',
    ],
    ['much leeway', { leewayS: 301 }, 'clock_skew_leeway is at most'],
    [
      'a number for a glob',
      { boundClaims: { a: ['x', 1] }, boundClaimsType: 'glob' },
      'the values of bound_claims must be strings if bound_claims_type is "glob"',
    ],
    ['root for a group', { groupPolicies: { g: ['root'] } }, 'auth methods cannot create root tokens'],
    ['root', { token: { policies: ['root'] } }, 'auth methods cannot create root tokens'],
  ] as const)
    it(`is refused with ${what}`, async () => {
      const { jwt, mount } = await withMethod('jwt');
      const settings = { audiences: ['a'], userClaim: 'sub', token: {}, ...change };
      expect(await refusal(jwt.write(await mount(), 'r', settings))).to.match(new RegExp(`^invalid_request: .*${text}`));
    });
});

/** Returns a key set with an RSA key whose numbers have this many bytes. */
function rsaOf(modulusBytes: number, exponentBytes: number): string {
  const [n, e] = [modulusBytes, exponentBytes].map((bytes) => Buffer.alloc(bytes, 0xff).toString('base64url'));
  return JSON.stringify({ keys: [{ kty: 'RSA', n, e }] });
}

function pemOf(keySet: string): string {
  const [key] = (JSON.parse(keySet) as { keys: [JsonWebKey] }).keys;
  return createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' }).toString();
}
