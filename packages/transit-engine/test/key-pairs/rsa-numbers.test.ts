import {
  checkPrimeSync,
  generateKeyPairSync,
  generatePrimeSync,
  getDiffieHellman,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto';
import { expect } from 'chai';
import { derTag, encodeDer, encodeDerInteger, encodeOid } from '../../src/formats/der.ts';
import { encodePkcs8, encodeSpki, publicPemOf } from '../../src/key-pairs/key-formats.ts';
import { newKeySettings } from '../../src/keys/key.ts';
import { encodeBackup } from '../../src/transfers/backup.ts';
import { everything, newEngine, refusalOf, startMs } from '../fixtures.ts';
import { storeWithWrappingKey, wrapped } from '../transfers/wrapped.ts';

const type = 'rsa-2048';
const half = 1024;
const e = 65_537n;
const rsaEncryption = Buffer.concat([encodeOid('1.2.840.113549.1.1.1'), encodeDer(0x05)]);
const bytesOf = (number: bigint): Buffer => {
  const digits = number.toString(16);
  return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
};
const numberOf = (base64url = ''): bigint => BigInt(`0x${Buffer.from(base64url, 'base64url').toString('hex')}`);

/** Returns the inverse of a modulo m; a and m must be coprime. */
function inverse(a: bigint, m: bigint): bigint {
  let [r, s, x, y] = [m, ((a % m) + m) % m, 0n, 1n];
  while (s !== 0n) [r, s, x, y] = [s, r % s, y, x - (r / s) * y];
  return ((x % m) + m) % m;
}

interface Numbers {
  readonly n: bigint;
  readonly e: bigint;
  readonly d: bigint;
  readonly p: bigint;
  readonly q: bigint;
  readonly dP: bigint;
  readonly dQ: bigint;
  readonly qInv: bigint;
}

/** Computes all numbers of a key from its primes. */
function keyOf(p: bigint, q: bigint): Numbers {
  const phi = p === q ? p * (p - 1n) : (p - 1n) * (q - 1n);
  const d = inverse(e, phi);
  return { n: p * q, e, d, p, q, dP: d % (p - 1n), dQ: q === 1n ? 0n : d % (q - 1n), qInv: p === q ? 1n : inverse(q, p) };
}

function pkcs8Of({ n, e: exponent, d, p, q, dP, dQ, qInv }: Numbers): Buffer {
  const parts = [0n, n, exponent, d, p, q, dP, dQ, qInv].map((number) => encodeDerInteger(bytesOf(number)));
  return encodePkcs8({ algorithm: rsaEncryption, privateKey: encodeDer(derTag.sequence, ...parts) });
}

const spkiOf = (n: bigint): Buffer =>
  encodeSpki(rsaEncryption, encodeDer(derTag.sequence, encodeDerInteger(bytesOf(n)), encodeDerInteger(bytesOf(e))));

/** Returns a prime with the two highest bits set, for which 65537 has an inverse. */
function prime(bits: number): bigint {
  for (;;) {
    const found = generatePrimeSync(bits, { bigint: true });
    if (found >> BigInt(bits - 2) === 3n && (found - 1n) % e !== 0n) return found;
  }
}

/** Returns the next prime after the number. */
function primeAfter(number: bigint): bigint {
  for (let candidate = number + 2n; ; candidate += 2n)
    if ((candidate - 1n) % e !== 0n && checkPrimeSync(candidate)) return candidate;
}

const jwkOf = (key: KeyObject): JsonWebKey => key.export({ format: 'jwk' });
const jwk = jwkOf(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey);
const [p, q] = [numberOf(jwk.p), numberOf(jwk.q)];
const good: Numbers = keyOf(p, q);
const close = primeAfter(p);
const small = 65_521n;
const rest2032 = prime(2032);
/** The prime of RFC 3526 §3, because finding one takes a second. */
const prime2048 = BigInt(`0x${getDiffieHellman('modp14').getPrime('hex')}`);
const composite = ((): bigint => {
  for (;;) {
    const number = prime(512) * prime(512);
    // With the two highest bits set, its product with p or q has as many bits as n.
    if (number >> BigInt(half - 2) === 3n && (number - 1n) % e !== 0n) return number;
  }
})();

const apart = 'the parts of the key do not belong together';
const phi = (p - 1n) * (q - 1n);

const privates: readonly (readonly [string, Numbers, string])[] = [
  ['the square of a prime', keyOf(p, p), 'the two primes are the same'],
  [
    'a prime modulus and q = 1',
    { n: prime2048, e, d: inverse(e, prime2048 - 1n), p: prime2048, q: 1n, dP: 1n, dQ: 0n, qInv: 1n },
    apart,
  ],
  ['a factor of 65,521', keyOf(rest2032, small), apart],
  ['a factor of 65,521 in the place of p', keyOf(small, rest2032), apart],
  ['close primes', keyOf(p, close), 'the two primes are too close to each other'],
  ['close primes the other way', keyOf(close, p), 'the two primes are too close to each other'],
  ['a p that is not prime', keyOf(composite, q), 'p or q is not a prime'],
  ['a q that is not prime', keyOf(q, composite), 'p or q is not a prime'],
  ['a modulus that is not p times q', { ...good, n: good.n + 2n }, apart],
  ['a d that is not the inverse of e', { ...good, d: good.d + 2n }, apart],
  ['a d of another exponent', { ...good, e: 3n }, apart],
  ['a d above the modulus', { ...good, d: good.d + phi * 2n }, apart],
  ['another dP', { ...good, dP: good.dP + 2n }, apart],
  ['another dQ', { ...good, dQ: good.dQ + 2n }, apart],
  ['dP and dQ exchanged', { ...good, dP: good.dQ, dQ: good.dP }, apart],
  ['another qInv', { ...good, qInv: good.qInv ^ 1n }, apart],
  ['no qInv', { ...good, qInv: 0n }, apart],
  ['p and q exchanged without their coefficient', { ...good, p: q, q: p, dP: good.dQ, dQ: good.dP }, apart],
];

const publics: readonly (readonly [string, bigint, string])[] = [
  ['a factor of 65,521', rest2032 * small, 'the modulus has a small factor'],
  ['a factor of 3', prime(2046) * 3n, 'the modulus has a small factor'],
  ['a square', p * p, 'the two primes are too close to each other'],
  ['close primes', p * close, 'the two primes are too close to each other'],
  ['a prime', prime2048, 'the modulus is a prime'],
];

describe('the numbers of an RSA key', () => {
  async function importing() {
    const store = await storeWithWrappingKey();
    const { engine } = newEngine({ store });
    const publicPem = await engine.transfers.wrappingKey();
    return { engine, store, wrap: (numbers: Numbers) => wrapped(publicPem, pkcs8Of(numbers)) };
  }

  it('are imported if they are valid, also with p and q exchanged, or d modulo lcm(p − 1, q − 1)', async () => {
    const { engine, wrap } = await importing();
    const lcm = phi / 2n;
    for (const [name, numbers] of Object.entries({ good, turned: keyOf(q, p), least: { ...good, d: good.d % lcm } })) {
      await engine.transfers.importKey(name, { type, ciphertext: wrap(numbers) });
      expect((await engine.readKey(name)).latestVersion).to.equal(1);
    }
  });

  for (const [because, numbers, message] of privates) {
    it(`are refused for ${because}, in an import, an added version and a restore`, async () => {
      const { engine, store, wrap } = await importing();
      await engine.transfers.importKey('k', { type, ciphertext: wrap(good) });
      const before = await everything(store);
      const publicKey = spkiOf(numbers.n);
      const latestCreatedMs = startMs;
      const record = { ...newKeySettings, id: '', type, derived: false, convergent: false, exportable: true };
      const settings = { ...record, allowPlaintextBackup: true, imported: true, allowRotation: false, autoRotatePeriodS: 0 };
      const version = {
        version: 1,
        createdMs: startMs,
        material: pkcs8Of(numbers),
        publicKey,
        hmacSecret: Buffer.alloc(32, 1),
        keyName: '',
      };
      const backup = encodeBackup('restored', { ...settings, keySize: 0, latestCreatedMs }, [version]).toString('base64');
      for (const bringsIn of [
        () => engine.transfers.importKey('other', { type, ciphertext: wrap(numbers) }),
        () => engine.transfers.importVersion('k', { ciphertext: wrap(numbers) }),
        () => engine.transfers.restoreKey({ backup }),
      ]) {
        const { code, message: said } = await refusalOf(bringsIn());
        expect(code).to.equal('invalid_request');
        expect(said).to.contain(message);
        expect(said, 'no number is quoted').to.not.match(/[0-9a-f]{12}/);
      }
      expect(await everything(store)).to.deep.equal(before);
    });
  }

  for (const [because, n, message] of publics) {
    it(`are refused in the import of a public half with ${because}`, async () => {
      const { engine, store } = await importing();
      const before = await everything(store);
      const publicKey = publicPemOf(spkiOf(n));
      expect((await refusalOf(engine.transfers.importKey('k', { type, publicKey }))).message).to.contain(message);
      expect(await everything(store)).to.deep.equal(before);
    });
  }
});
