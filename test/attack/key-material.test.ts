// @live
// Attacks with weak key material and with misleading fields of key operations, against a live node.
import { constants, createCipheriv, createPublicKey, generateKeyPairSync, publicEncrypt, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';

/** Returns the members of a JWK (RFC 7518 §6.3). */
type Numbers = Readonly<Record<'n' | 'e' | 'd' | 'p' | 'q' | 'dp' | 'dq' | 'qi', string>>;

const big = (base64url: string): bigint => BigInt(`0x${Buffer.from(base64url, 'base64url').toString('hex')}`);
const text = (number: bigint): string => {
  const digits = number.toString(16);
  return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex').toString('base64url');
};
const jwk = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' }) as Numbers;
const [n, d, p] = [big(jwk.n), big(jwk.d), big(jwk.p)];

/** Encodes tag, length and content in DER (X.690). */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const size = content.length;
  const length = size < 128 ? Buffer.of(size) : size < 256 ? Buffer.of(0x81, size) : Buffer.of(0x82, size >> 8, size & 0xff);
  return Buffer.concat([Buffer.of(tag), length, content]);
}
const integer = (base64url: string): Buffer => {
  const bytes = Buffer.from(base64url, 'base64url');
  return der(2, (bytes[0] ?? 0x80) >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes);
};
const algorithm = Buffer.from('300d06092a864886f70d0101010500', 'hex');

function pkcs8({ n, e, d, p, q, dp, dq, qi }: Numbers): Buffer {
  const numbers = [n, e, d, p, q, dp, dq, qi].map(integer);
  return der(0x30, der(2, Buffer.of(0)), algorithm, der(4, der(0x30, der(2, Buffer.of(0)), ...numbers)));
}
const publicPem = (modulus: bigint): string => {
  const spki = der(0x30, algorithm, der(3, Buffer.of(0), der(0x30, integer(text(modulus)), integer(jwk.e))));
  return `-----BEGIN PUBLIC KEY-----\n${spki.toString('base64')}\n-----END PUBLIC KEY-----\n`;
};

/** Wraps material for an import: RSA-OAEP of an AES key, and AES key wrap with padding (RFC 5649). */
function wrapped(wrappingPem: string, material: Buffer): string {
  const ephemeral = randomBytes(32);
  const key = createPublicKey(wrappingPem);
  const outer = publicEncrypt({ key, oaepHash: 'sha256', padding: constants.RSA_PKCS1_OAEP_PADDING }, ephemeral);
  const cipher = createCipheriv('id-aes256-wrap-pad', ephemeral, Buffer.from('a65959a6', 'hex'));
  return Buffer.concat([outer, cipher.update(material), cipher.final()]).toString('base64');
}

describe('weak RSA keys', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  let wrappingPem: string;
  before(async () => {
    server = await bench.start({ dataDir: bench.folder() });
    wrappingPem = (await server.call('GET', 'transit/wrapping_key')).string('data.public_key');
  });
  after(() => bench.clean());
  const imported = async (key: Numbers, path = 'transit/keys/bad/import') =>
    server.call('POST', path, { type: 'rsa-2048', ciphertext: wrapped(wrappingPem, pkcs8(key)) });

  const degenerate: Readonly<Record<string, Numbers>> = {
    'n = p²': { ...jwk, n: text(p * p), q: jwk.p, dq: jwk.dp, qi: 'AQ' },
    'q = 1': { ...jwk, p: jwk.n, q: 'AQ', dp: jwk.d, dq: 'AA', qi: 'AQ' },
    'a factor of 65,521': { ...jwk, n: text((n / 65_521n) * 65_521n), p: text(n / 65_521n), q: text(65_521n) },
    'another private exponent': { ...jwk, d: text(d - 2n) },
    'wrong CRT exponents': { ...jwk, dp: jwk.dq, dq: jwk.dp },
    'a wrong CRT coefficient': { ...jwk, qi: text(big(jwk.qi) ^ 2n) },
    'primes in the wrong places': { ...jwk, p: jwk.q, q: jwk.p },
  };
  it('are distinguished from a sound key, which is imported', async () => {
    expect((await imported(jwk, 'transit/keys/good/import')).status).to.equal(204);
  });

  for (const [what, key] of Object.entries(degenerate)) {
    it(`are refused by import: ${what}`, async () => {
      expect((await imported(key)).status).to.equal(400);
      expect((await server.call('GET', 'transit/keys/bad')).status).to.equal(404);
      expect((await imported(key, 'transit/keys/good/import_version')).status).to.equal(400);
      expect((await server.call('GET', 'transit/keys/good')).at('data.latest_version')).to.equal(1);
    });
  }

  for (const [what, modulus] of [
    ['a square', p * p],
    ['a small factor', (n / 131_042n) * 131_042n + 65_521n],
    ['an even number', n - 1n],
  ] as const) {
    it(`are refused by import of the public key: ${what}`, async () => {
      const body = { type: 'rsa-2048', public_key: publicPem(modulus) };
      expect((await server.call('POST', 'transit/keys/bad/import', body)).status).to.equal(400);
    });
  }

  it('accepts a valid signature despite a field that signing ignores, and ignores a context that has no effect', async () => {
    const input = Buffer.from('a message').toString('base64');
    await server.call('POST', 'transit/keys/s', { type: 'ecdsa-p256' });
    for (const algorithm of ['sha2-256', 'sha2-512', 'sha1', 'md5']) {
      const signed = await server.call('POST', 'transit/sign/s', { input, algorithm });
      const signature = signed.string('data.signature');
      for (const asked of [{}, { algorithm }]) {
        const verdict = await server.call('POST', 'transit/verify/s', { input, signature, ...asked });
        expect(verdict.at('data.valid'), `${algorithm} ${JSON.stringify(asked)}`).to.equal(true);
      }
    }
    const { hmac } = (await server.call('POST', 'transit/hmac/s', { input, algorithm: 'sha2-512' })).at('data') as {
      hmac: string;
    };
    for (const [asked, valid] of [
      [{ algorithm: 'sha2-512' }, true],
      [{}, false],
    ] as const)
      expect((await server.call('POST', 'transit/verify/s', { input, hmac, ...asked })).at('data.valid')).to.equal(valid);
    await server.call('POST', 'transit/keys/derived', { derived: true });
    expect((await server.call('GET', `transit/keys/derived?context=${input}`)).status).to.equal(200);
    expect((await server.call('POST', 'transit/verify/s', { input, signature: '' })).text).to.include('no prefix');
  });
});
