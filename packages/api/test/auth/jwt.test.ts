import { createPublicKey, generateKeyPairSync, type JsonWebKey, sign } from 'node:crypto';
import { expect } from 'chai';
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose';
import { refusal } from '../../../access/test/fixtures.ts';
import { clockOf } from '../../../process/test/test-clock.ts';
import { JwtKeys } from '../../src/auth/jwt/keys.ts';
import type { JwtConfigChange, JwtRoleChange } from '../../src/auth/jwt/logins.ts';
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
  const all = await withMethod('jwt', { file: read, url: async (url) => (await read(url)) ?? '' });
  const { jwt } = all;
  await jwt.configure(await all.mount(), { issuer: 'https://issuer', algorithms: ['ES256'], ...config });
  await jwt.write(await all.mount(), 'ci', { audiences: ['transitd'], userClaim: 'sub', token: { policies: ['a'] }, ...change });
  const good = { iss: 'https://issuer', aud: 'transitd', sub: 'job-7', exp: all.clock.now / 1000 + 600 };
  const signed = (
    claims: object = {},
    { key = pair.privateKey, ...header }: { key?: CryptoKey; kid?: string; alg?: string } = {},
  ) => new SignJWT({ ...good, ...claims }).setProtectedHeader({ alg: 'ES256', ...header }).sign(key);
  const enter = async (token: string, { role = 'CI', address }: { role?: string; address?: string } = {}) =>
    jwt.login(await all.login('auth/m/login', address), role, token);
  return { ...all, jwt, good, signed, enter, fetches: () => fetches };
}

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
    expect(await policies([1, null, ['ops']])).to.deep.equal(['a', 'default']);
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

describe('keys that verify tokens', () => {
  it('may be several without key ids', async () => {
    const { signed, enter } = await withJwt({}, { keys: [await exportSPKI(stranger.publicKey), pem] });
    expect(await refusal(enter(await signed()))).to.equal('none');
    const third = await generateKeyPair('ES256');
    expect(await refusal(enter(await signed({}, { key: third.privateKey })))).to.match(/the token is refused/);
  });

  it('are cached, and fetched again for an unknown key at most every 30 seconds', async () => {
    const set = async (...kids: string[]) =>
      JSON.stringify({ keys: await Promise.all(kids.map((kid) => jwkOf(pair.publicKey, kid))) });
    const sources = new Map([['https://issuer/keys', await set('one')]]);
    const { signed, enter, fetches, clock } = await withJwt({}, { url: 'https://issuer/keys' }, sources);
    const outcome = async (kid: string) => refusal(enter(await signed({}, { kid })));
    expect([await outcome('one'), await outcome('one'), fetches()]).to.deep.equal(['none', 'none', 1]);
    sources.set('https://issuer/keys', await set('one', 'two'));
    expect(await outcome('two')).to.match(/the token is refused/);
    expect(fetches()).to.equal(1);
    clock.now += 30_000;
    expect([await outcome('two'), fetches()]).to.deep.equal(['none', 2]);
    clock.now += 5 * 60_000;
    expect([await outcome('one'), fetches()]).to.deep.equal(['none', 3]);
  });

  it('that cannot be fetched are reported as unavailable and fetched again', async () => {
    const sources = new Map([['https://issuer/keys', 'broken']]);
    const { signed, enter } = await withJwt({}, { url: 'https://issuer/keys' }, sources);
    expect(await refusal(enter(await signed()))).to.match(/^keys_unavailable/);
    sources.set('https://issuer/keys', JSON.stringify({ keys: [await jwkOf(pair.publicKey)] }));
    expect(await refusal(enter(await signed()))).to.equal('none');
  });

  it('that never arrive block at most 32 logins, and none of another source', async () => {
    const arrived = Promise.withResolvers<string>();
    const good = JSON.stringify({ keys: [await jwkOf(pair.publicKey)] });
    const url = (address: string) => (address === 'https://hangs/keys' ? arrived.promise : Promise.resolve(good));
    const keys = new JwtKeys({ sources: { url, file: async () => undefined }, clock: clockOf(() => 0) });
    const outcome = (change: object): Promise<string> =>
      refusal(keys.verify({ keys: [], jwks: '', file: '', url: 'https://hangs/keys', urlCa: '', ...change }, 'x', {}));
    const waiting = Array.from({ length: 32 }, () => outcome({}));
    expect(await outcome({})).to.match(/^busy_logins/);
    for (const other of [{ url: 'https://issuer/keys' }, { url: '', keys: [pem] }, { url: '', jwks: good }])
      expect(await outcome(other)).to.match(/the token is refused/);
    arrived.resolve(good);
    for (const told of await Promise.all(waiting)) expect(told).to.match(/the token is refused/);
    expect(await outcome({})).to.match(/the token is refused/);
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
    ['two sources', { keys: [pem], file: 'x' }, 'exactly one of'],
    ['a text that is not a key', { keys: ['x'] }, 'a public key in PEM'],
    ['http', { url: 'http://issuer/keys' }, 'must be an https URL'],
    ['a file URL', { url: 'file:///etc/passwd' }, 'must be an https URL'],
    ['a private key', { jwks: JSON.stringify({ keys: [privateJwk] }) }, 'public keys only'],
    ['a symmetric key', { jwks: '{"keys":[{"kty":"oct","k":"AAAA"}]}' }, 'public keys only'],
    ['a set with an item that is not a key', { jwks: '{"keys":[1]}' }, 'each item of a key set'],
    ['an empty set', { jwks: '{"keys":[]}' }, '1 to 100 keys'],
    ['a set that is not JSON', { jwks: '{' }, 'a key set must be JSON'],
    ['a set of many values', { jwks: `{"keys":[{"kty":"RSA","x5c":[${'"",'.repeat(10_000)}""]}]}` }, 'more than 6400 values'],
    ['a set of many objects', { jwks: `{"keys":[${'{},'.repeat(1000)}{}]}` }, 'more than 400 arrays and objects'],
    ['a key with many members', { jwks: `{"keys":[{${'"a":0,'.repeat(100)}"kty":"EC"}]}` }, 'more than 64 members'],
    ['an RSA key of 16,384 bits', { jwks: rsaOf(2048, 3) }, 'at most 8192 bits'],
    ['an RSA key with an exponent of 64 bits', { jwks: rsaOf(256, 8) }, 'at most 8192 bits and a public exponent below 2\\^32'],
    ['a PEM key of 16,384 bits', { keys: [pemOf(rsaOf(2048, 3))] }, 'at most 8192 bits'],
    ['no issuer', { keys: [pem], issuer: '' }, 'bound_issuer must be set'],
    ['no algorithm', { keys: [pem], algorithms: [] }, 'jwt_supported_algs must name'],
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
