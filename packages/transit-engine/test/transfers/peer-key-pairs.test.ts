import { generateKeyPairSync, type JsonWebKey, type KeyObject, sign } from 'node:crypto';
import { expect } from 'chai';
import { everything, fox, newEngine, refusalOf } from '../fixtures.ts';

const input = Buffer.from(fox, 'base64');
const time = '2024-05-01T01:02:03.123456789Z';
const certificate = Buffer.from('a certificate').toString('base64');

/** A number that is written to JSON with all its digits, as the peers do. */
const digits = (base64url = ''): string => `@${BigInt(`0x0${Buffer.from(base64url, 'base64url').toString('hex')}`)}@`;
const raw = ({ x = '' }: JsonWebKey): string => Buffer.from(x, 'base64url').toString('base64');

/** base64 of a peer's backup with one version. */
function backupWith(type: number, version: object, policy: object = {}): string {
  const settings = { name: 'old', kdf: 1, exportable: true, min_decryption_version: 1, latest_version: 1, type, ...policy };
  const entry = {
    key: null,
    hmac_key: Buffer.alloc(32, 9).toString('base64'),
    time,
    ec_x: null,
    ec_y: null,
    ec_d: null,
    ...version,
  };
  const json = JSON.stringify({ policy: { ...settings, keys: { '1': entry } }, archived_keys: { keys: [{}, entry] } });
  return Buffer.from(json.replace(/"@(\d+)@"/g, '$1')).toString('base64');
}

interface Kind {
  readonly type: string;
  readonly number: number;
  readonly pair: { readonly privateKey: KeyObject; readonly publicKey: KeyObject };
  /** The version's fields, with or without the private half. */
  fields(jwk: JsonWebKey, whole: boolean): object;
}

const ecFields = ({ x, y, d }: JsonWebKey, whole: boolean) => ({
  ec_x: digits(x),
  ec_y: digits(y),
  ec_d: whole ? digits(d) : null,
  rsa_key: null,
});

const rsaFields = ({ n, d, p, q, dp, dq, qi }: JsonWebKey, whole: boolean) => {
  const publicKey = { N: digits(n), E: 65537 };
  const Precomputed = { Dp: digits(dp), Dq: digits(dq), Qinv: digits(qi), CRTValues: [] };
  return whole
    ? { rsa_key: { ...publicKey, D: digits(d), Primes: [digits(p), digits(q)], Precomputed } }
    : { rsa_key: null, rsa_public_key: publicKey };
};

const edFields = (jwk: JsonWebKey, whole: boolean) => ({
  public_key: raw(jwk),
  key: whole
    ? Buffer.concat([Buffer.from(jwk.d ?? '', 'base64url'), Buffer.from(jwk.x ?? '', 'base64url')]).toString('base64')
    : '',
});

const kinds: readonly Kind[] = [
  { type: 'ecdsa-p256', number: 1, pair: generateKeyPairSync('ec', { namedCurve: 'P-256' }), fields: ecFields },
  { type: 'ed25519', number: 2, pair: generateKeyPairSync('ed25519'), fields: edFields },
  { type: 'rsa-2048', number: 3, pair: generateKeyPairSync('rsa', { modulusLength: 2048 }), fields: rsaFields },
  { type: 'rsa-4096', number: 4, pair: generateKeyPairSync('rsa', { modulusLength: 4096 }), fields: rsaFields },
  { type: 'ecdsa-p384', number: 6, pair: generateKeyPairSync('ec', { namedCurve: 'P-384' }), fields: ecFields },
  { type: 'ecdsa-p521', number: 7, pair: generateKeyPairSync('ec', { namedCurve: 'P-521' }), fields: ecFields },
  { type: 'rsa-3072', number: 9, pair: generateKeyPairSync('rsa', { modulusLength: 3072 }), fields: rsaFields },
];

describe('the backup of a peer', () => {
  for (const { type, number, pair, fields } of kinds) {
    const jwk = pair.privateKey.export({ format: 'jwk' });
    const asked = { input: fox, signatureAlgorithm: 'pkcs1v15' };
    const hash = type === 'ed25519' ? null : 'sha256';
    const signature = `vault:v1:${sign(hash, input, pair.privateKey).toString('base64')}`;

    it(`restores a key pair of type ${type}, which verifies old signatures and makes new ones`, async () => {
      const { engine } = newEngine();
      await engine.transfers.restoreKey({ backup: backupWith(number, fields(jwk, true)) });
      expect(await engine.signing.verify('old', { ...asked, signature })).to.deep.equal({ valid: true });
      const own = await engine.signing.sign('old', asked);
      if ('results' in own) throw new Error('the request was no batch');
      expect(await engine.signing.verify('old', { ...asked, signature: own.signature })).to.deep.equal({ valid: true });
      const [version] = (await engine.readKey('old')).versions;
      const publicText = type === 'ed25519' ? raw(jwk) : pair.publicKey.export({ type: 'spki', format: 'pem' });
      expect(version?.pair?.publicKey).to.equal(publicText);
      expect(version?.createdMs).to.equal(Date.parse('2024-05-01T01:02:03.123Z'));
    });

    it(`restores a public half of type ${type} without its private half: the key verifies and does not sign`, async () => {
      const { engine } = newEngine();
      await engine.transfers.restoreKey({ backup: backupWith(number, fields(jwk, false), { Imported: true }) });
      expect(await engine.signing.verify('old', { ...asked, signature })).to.deep.equal({ valid: true });
      expect((await refusalOf(engine.signing.sign('old', asked))).message).to.contain('does not contain a private part');
    });
  }

  for (const [because, number, fields, name] of [
    ['a number in quotes that is longer than any of a key pair', 1, { ...ecFields({}, true), ec_x: '9'.repeat(1301) }, 'ec_x'],
    ['a list of more primes than two', 3, { rsa_key: { N: 5, E: 3, Primes: [3, 5, '9'.repeat(1301)] } }, 'Primes'],
  ] as const) {
    it(`is refused for ${because} before the conversion, which would block the event loop`, async () => {
      const { engine } = newEngine();
      const refusal = await refusalOf(engine.transfers.restoreKey({ backup: backupWith(number, fields) }));
      expect(refusal.message).to.contain(`its member ${name} has the wrong type`);
    });
  }

  it('restores certificates unchanged', async () => {
    const { engine } = newEngine();
    const [kind] = kinds;
    const fields = kind?.fields(kind.pair.privateKey.export({ format: 'jwk' }), true);
    await engine.transfers.restoreKey({ backup: backupWith(1, { ...fields, certificate_chain: [certificate, certificate] }) });
    const one = `-----BEGIN CERTIFICATE-----\n${certificate}\n-----END CERTIFICATE-----\n`;
    const [exported] = (await engine.transfers.exportKey('old', { exportType: 'certificate-chain' })).versions;
    expect(Buffer.from(exported?.material ?? []).toString()).to.equal(one + one);
  });

  const [p256, ed25519, rsa] = kinds.map(({ pair, fields }) => fields(pair.privateKey.export({ format: 'jwk' }), true));
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' });
  const { rsa_key: rsaKey } = Object(rsa);
  for (const [because, number, fields, policy] of [
    ["a number that is not the point's", 1, { ...p256, ec_d: digits(other.d) }, {}],
    ['a point off its curve', 1, { ...p256, ec_x: 5, ec_d: null }, {}],
    ['a point without a coordinate', 1, { ...p256, ec_y: null }, {}],
    ['a point of a longer curve', 1, { ...p256, ec_x: `@${'9'.repeat(90)}@` }, {}],
    ['a number below zero', 1, { ...p256, ec_d: -5 }, {}],
    ['a number that is text', 1, { ...p256, ec_d: 'x' }, {}],
    [
      'a public half of another key',
      2,
      { ...ed25519, public_key: raw(generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' })) },
      {},
    ],
    ['a derived key with a public half alone', 2, { ...ed25519, key: '' }, { derived: true }],
    ['three primes', 3, { rsa_key: { ...rsaKey, Primes: [...rsaKey.Primes, 3] } }, {}],
    ['primes of another key', 3, { rsa_key: { ...rsaKey, Primes: [3, 5] } }, {}],
    ['nothing computed before', 3, { rsa_key: { ...rsaKey, Precomputed: {} } }, {}],
    ['another size', 4, rsa, {}],
    ['a certificate on a symmetric key', 0, { key: Buffer.alloc(32).toString('base64'), certificate_chain: [certificate] }, {}],
    ['a certificate that is a number', 1, { ...p256, certificate_chain: [5] }, {}],
  ] as const) {
    it(`is refused, and nothing written, for ${because}`, async () => {
      const { engine, store } = newEngine();
      const backup = backupWith(number, fields ?? {}, policy);
      expect((await refusalOf(engine.transfers.restoreKey({ backup }))).code).to.equal('invalid_request');
      expect(await everything(store)).to.deep.equal({});
    });
  }
});
