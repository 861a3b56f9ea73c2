import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { derInteger, derTag, encodeDer, encodeDerInteger, encodeOid, parseDer, parseDerSequence } from '../../src/formats/der.ts';
import { pemOf } from '../../src/formats/pem.ts';
import type { TransitEngine } from '../../src/index.ts';
import { encodePkcs8, publicPemOf } from '../../src/key-pairs/key-formats.ts';
import { generateRsa } from '../../src/key-pairs/rsa-generation.ts';
import { TransitError } from '../../src/values/errors.ts';
import { everything, newEngine, refusalOf } from '../fixtures.ts';
import { storeWithWrappingKey, wrapped } from '../transfers/wrapped.ts';

const rsaEncryption = Buffer.concat([encodeOid('1.2.840.113549.1.1.1'), encodeDer(0x05)]);
const ec = (curve: string): Buffer => Buffer.concat([encodeOid('1.2.840.10045.2.1'), encodeOid(curve)]);
const p256 = ec('1.2.840.10045.3.1.7');
const order = Buffer.from('ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551', 'hex');
const one = encodeDerInteger(Uint8Array.of(1));
const bytes = (length: number, value: number): Buffer => Buffer.alloc(length, value);

const pairs = {
  'rsa-2048': generateKeyPairSync('rsa', { modulusLength: 2048 }),
  'ecdsa-p256': generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ed25519: generateKeyPairSync('ed25519'),
};
const pkcs8 = ({ privateKey }: { privateKey: KeyObject }): Buffer => privateKey.export({ type: 'pkcs8', format: 'der' });

/** The numbers of the RSA key: version, n, e, d, p, q, dP, dQ, qInv. */
const numbers = (
  parseDerSequence(parseDer(pairs['rsa-2048'].privateKey.export({ type: 'pkcs1', format: 'der' }))?.content ?? bytes(0, 0)) ?? []
).map((element) => Buffer.from(derInteger(element) ?? []));

/** PKCS#8 of the RSA key with some of its numbers replaced. */
function rsaWith(changed: Readonly<Record<number, Uint8Array>>): Buffer {
  const parts = numbers.map((number, index) => encodeDerInteger(changed[index] ?? number));
  return encodePkcs8({ algorithm: rsaEncryption, privateKey: encodeDer(derTag.sequence, ...parts) });
}

/** PKCS#8 of a number on P-256, with or without a point. */
function ecOf(number: Uint8Array, point?: Uint8Array): Buffer {
  const rest = point === undefined ? [] : [encodeDer(0xa1, encodeDer(derTag.bitString, Uint8Array.of(0), point))];
  return encodePkcs8({
    algorithm: p256,
    privateKey: encodeDer(derTag.sequence, one, encodeDer(derTag.octetString, number), ...rest),
  });
}

const pointOf = ({ publicKey }: { publicKey: KeyObject }): Buffer =>
  publicKey.export({ type: 'spki', format: 'der' }).subarray(-65);
const spki = (algorithm: Uint8Array, key: Uint8Array): Buffer =>
  encodeDer(derTag.sequence, encodeDer(derTag.sequence, algorithm), encodeDer(derTag.bitString, Uint8Array.of(0), key));
const publicRsa = (n: Uint8Array, e: Uint8Array): Buffer =>
  spki(rsaEncryption, encodeDer(derTag.sequence, encodeDerInteger(n), encodeDerInteger(e)));
const [, n = bytes(0, 0), e = bytes(0, 0), d = bytes(0, 0), p = bytes(0, 0), q = bytes(0, 0)] = numbers;
const even = Buffer.from(n);
even[even.length - 1] = (even.at(-1) ?? 0) & 0xfe;

const prefix = 'error importing key: ';
const noPkcs8 = `${prefix}error parsing asymmetric key: it is not PKCS#8 in DER`;
const apart = `${prefix}the parts of the key do not belong together`;
const outOfRange = `${prefix}the private key is out of the range of its curve`;
const mismatch = `${prefix}key pair does not match`;
const exponent = `${prefix}the public exponent is even or out of range`;
const otherType = `${prefix}invalid key type: expected ed25519`;
const noPublic = `${prefix}error parsing public key: it is not a key of this kind`;
const noPoint = `${prefix}error parsing public key: the point is not on the curve`;
const noPem = `${prefix}error parsing public key: not in PEM format`;

type Type = keyof typeof pairs;

const privates: readonly (readonly [string, Type, Buffer, string])[] = [
  ['nothing of DER', 'rsa-2048', bytes(64, 0), noPkcs8],
  ['PKCS#1', 'rsa-2048', pairs['rsa-2048'].privateKey.export({ type: 'pkcs1', format: 'der' }), noPkcs8],
  ['SEC1', 'ecdsa-p256', pairs['ecdsa-p256'].privateKey.export({ type: 'sec1', format: 'der' }), noPkcs8],
  ['PEM', 'ecdsa-p256', Buffer.from(pairs['ecdsa-p256'].privateKey.export({ type: 'pkcs8', format: 'pem' })), noPkcs8],
  ['a raw seed', 'ed25519', bytes(32, 7), noPkcs8],
  ['a public key', 'ed25519', pairs.ed25519.publicKey.export({ type: 'spki', format: 'der' }), noPkcs8],
  [
    'an encrypted key',
    'ed25519',
    pairs.ed25519.privateKey.export({ type: 'pkcs8', format: 'der', cipher: 'aes-256-cbc', passphrase: 'x' }),
    noPkcs8,
  ],
  ['bytes behind it', 'rsa-2048', Buffer.concat([pkcs8(pairs['rsa-2048']), bytes(1, 0)]), noPkcs8],
  [
    'a version of its own',
    'ed25519',
    Buffer.from(pkcs8(pairs.ed25519).toString('hex').replace('020100', '020102'), 'hex'),
    noPkcs8,
  ],
  ['a cut', 'rsa-2048', pkcs8(pairs['rsa-2048']).subarray(0, -1), noPkcs8],
  ['another algorithm', 'ecdsa-p256', pkcs8(pairs['rsa-2048']), `${prefix}invalid key type: expected ecdsa-p256`],
  ['another algorithm', 'rsa-2048', pkcs8(pairs.ed25519), `${prefix}invalid key type: expected rsa-2048`],
  ['another algorithm', 'ed25519', pkcs8(pairs['ecdsa-p256']), `${prefix}invalid key type: expected ed25519`],
  [
    'another curve',
    'ecdsa-p256',
    pkcs8(generateKeyPairSync('ec', { namedCurve: 'P-384' })),
    `${prefix}invalid curve: expected P-256, got P-384`,
  ],
  [
    'a curve that no key type has',
    'ecdsa-p256',
    pkcs8(generateKeyPairSync('ec', { namedCurve: 'secp256k1' })),
    `${prefix}invalid curve: expected P-256`,
  ],
  ['X25519', 'ed25519', pkcs8(generateKeyPairSync('x25519')), `${prefix}invalid key type: expected ed25519`],
  [
    'a seed of 31 bytes',
    'ed25519',
    encodePkcs8({ algorithm: encodeOid('1.3.101.112'), privateKey: encodeDer(4, bytes(31, 1)) }),
    noPkcs8,
  ],
  ['zero', 'ecdsa-p256', ecOf(bytes(32, 0)), outOfRange],
  ['the order of its curve', 'ecdsa-p256', ecOf(order), outOfRange],
  ['more than the order', 'ecdsa-p256', ecOf(bytes(32, 0xff)), outOfRange],
  ['a number too long', 'ecdsa-p256', ecOf(bytes(33, 1)), noPkcs8],
  ['the point of another key', 'ecdsa-p256', ecOf(bytes(32, 1), pointOf(pairs['ecdsa-p256'])), mismatch],
  ['a point off the curve', 'ecdsa-p256', ecOf(bytes(32, 1), Buffer.concat([bytes(1, 4), bytes(64, 1)])), mismatch],
  [
    'a modulus too small',
    'rsa-2048',
    pkcs8(generateKeyPairSync('rsa', { modulusLength: 1024 })),
    `${prefix}invalid key size: expected 256 bytes, got 128 bytes`,
  ],
  [
    'a modulus too large',
    'rsa-2048',
    pkcs8(generateKeyPairSync('rsa', { modulusLength: 3072 })),
    `${prefix}invalid key size: expected 256 bytes, got 384 bytes`,
  ],
  [
    'a modulus of 2,047 bits',
    'rsa-2048',
    rsaWith({ 1: Buffer.concat([bytes(1, 0x7f), n.subarray(1)]) }),
    `${prefix}invalid key size: the modulus has fewer than 2048 bits`,
  ],
  ['an even modulus', 'rsa-2048', rsaWith({ 1: even }), `${prefix}the modulus is even`],
  ['the exponent 1', 'rsa-2048', rsaWith({ 2: bytes(1, 1) }), exponent],
  ['an even exponent', 'rsa-2048', rsaWith({ 2: bytes(3, 2) }), exponent],
  ['an exponent as long as the modulus', 'rsa-2048', rsaWith({ 2: d }), exponent],
  ['an exponent of 32 bits', 'rsa-2048', rsaWith({ 2: bytes(4, 0xff) }), exponent],
  ['no exponent', 'rsa-2048', rsaWith({ 2: bytes(0, 0) }), exponent],
  ['another exponent', 'rsa-2048', rsaWith({ 2: bytes(1, 3) }), apart],
  ['a private exponent too long', 'rsa-2048', rsaWith({ 3: bytes(1000, 1) }), apart],
  ['a prime too long', 'rsa-2048', rsaWith({ 4: bytes(1000, 1) }), apart],
  ['two primes as long as the modulus', 'rsa-2048', rsaWith({ 4: n, 5: n }), apart],
  ['primes that are zero', 'rsa-2048', rsaWith({ 4: bytes(0, 0), 5: bytes(0, 0) }), apart],
  ['an even prime', 'rsa-2048', rsaWith({ 3: bytes(3, 1), 4: Buffer.concat([p.subarray(0, -1), bytes(1, 2)]) }), apart],
  ['numbers of another key', 'rsa-2048', rsaWith({ 1: Buffer.concat([n.subarray(0, -1), bytes(1, 0x55)]) }), apart],
  [
    'three primes',
    'rsa-2048',
    encodePkcs8({
      algorithm: rsaEncryption,
      privateKey: encodeDer(0x30, one, ...numbers.slice(1).map(encodeDerInteger), encodeDer(0x30)),
    }),
    noPkcs8,
  ],
  [
    'a negative number',
    'rsa-2048',
    encodePkcs8({
      algorithm: rsaEncryption,
      privateKey: encodeDer(0x30, ...numbers.map((each) => encodeDer(2, Uint8Array.of(0x80), each))),
    }),
    noPkcs8,
  ],
];

/** All encodings of points of small order, including non-canonical ones (which RFC 8032 §5.1.3 refuses). */
const smallOrder: readonly string[] = [
  '0100000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000080',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0000000000000000000000000000000000000000000000000000000000000080',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
];

const publics: readonly (readonly [string, Type, string, string])[] = [
  ['no PEM', 'ed25519', 'x', noPem],
  ['a private key in PEM', 'ed25519', pairs.ed25519.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), noPem],
  ['a certificate', 'rsa-2048', pemOf({ label: 'CERTIFICATE', der: bytes(9, 1) }), noPem],
  ['PKCS#1 in PEM', 'rsa-2048', pairs['rsa-2048'].publicKey.export({ type: 'pkcs1', format: 'pem' }).toString(), noPem],
  ['two keys', 'ed25519', publicPemOf(bytes(9, 1)).repeat(2), noPem],
  ['a PEM of megabytes', 'ed25519', publicPemOf(bytes(2_000_000, 1)), noPem],
  ['a PEM of nothing', 'rsa-2048', publicPemOf(bytes(0, 0)).replace('\n\n', '\n'), noPublic],
  [
    'another algorithm',
    'rsa-2048',
    pairs.ed25519.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    `${prefix}invalid key type: expected rsa-2048`,
  ],
  [
    'another algorithm',
    'ecdsa-p256',
    pairs.ed25519.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    `${prefix}invalid key type: expected ecdsa-p256`,
  ],
  ['another algorithm', 'ed25519', pairs['ecdsa-p256'].publicKey.export({ type: 'spki', format: 'pem' }).toString(), otherType],
  ['X25519', 'ed25519', generateKeyPairSync('x25519').publicKey.export({ type: 'spki', format: 'pem' }).toString(), otherType],
  ['a point off its curve', 'ecdsa-p256', publicPemOf(spki(p256, Buffer.concat([bytes(1, 4), bytes(64, 1)]))), noPoint],
  ['the point at infinity', 'ecdsa-p256', publicPemOf(spki(p256, bytes(1, 0))), noPoint],
  ...smallOrder.map((point): readonly [string, Type, string, string] => [
    `a point of small order, ${point.slice(0, 8)}…${point.slice(-2)}`,
    'ed25519',
    publicPemOf(spki(encodeOid('1.3.101.112'), Buffer.from(point, 'hex'))),
    noPublic,
  ]),
  [
    '32 bytes that are no point',
    'ed25519',
    publicPemOf(spki(encodeOid('1.3.101.112'), Buffer.concat([bytes(1, 2), bytes(31, 0)]))),
    noPublic,
  ],
  ['31 bytes', 'ed25519', publicPemOf(spki(encodeOid('1.3.101.112'), bytes(31, 1))), noPublic],
  [
    'a modulus too small',
    'rsa-2048',
    publicPemOf(publicRsa(n.subarray(0, 128), e)),
    `${prefix}invalid key size: expected 256 bytes, got 128 bytes`,
  ],
  [
    'a modulus too large',
    'rsa-2048',
    publicPemOf(publicRsa(Buffer.concat([n, n]), e)),
    `${prefix}invalid key size: expected 256 bytes, got 512 bytes`,
  ],
  ['an even modulus', 'rsa-2048', publicPemOf(publicRsa(even, e)), `${prefix}the modulus is even`],
  ['the exponent 1', 'rsa-2048', publicPemOf(publicRsa(n, bytes(1, 1))), exponent],
  ['an exponent as long as the modulus', 'rsa-2048', publicPemOf(publicRsa(n, d)), exponent],
  [
    'three numbers',
    'rsa-2048',
    publicPemOf(spki(rsaEncryption, encodeDer(0x30, encodeDerInteger(n), encodeDerInteger(e), encodeDerInteger(q)))),
    noPublic,
  ],
];

describe('hostile key material', () => {
  let engine: TransitEngine;
  let wrap: (der: Uint8Array) => string;
  let stored: () => Promise<Record<string, string>>;
  beforeEach(async () => {
    const store = await storeWithWrappingKey();
    ({ engine } = newEngine({ store }));
    const publicPem = await engine.transfers.wrappingKey();
    wrap = (der) => wrapped(publicPem, der);
    stored = () => everything(store);
  });

  for (const [what, type, der, message] of privates) {
    it(`is refused as ${type}: ${what}`, async () => {
      const before = await stored();
      expect((await refusalOf(engine.transfers.importKey('k', { type, ciphertext: wrap(der) }))).message).to.equal(message);
      expect(await stored()).to.deep.equal(before);
    });
  }

  for (const [what, type, publicKey, message] of publics) {
    it(`is refused as the public half of ${type}: ${what}`, async () => {
      expect((await refusalOf(engine.transfers.importKey('k', { type, publicKey }))).message).to.equal(message);
      expect(await engine.keyExists('k')).to.equal(false);
    });
  }

  it('is refused when truncated or modified at any byte, unless it is still a valid key', async () => {
    const whole = Object.entries(pairs);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...whole),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        fc.boolean(),
        async ([type, pair], at, mask, cut) => {
          const der = pkcs8(pair);
          const changed = cut ? der.subarray(0, Math.max(1, at % der.length)) : Buffer.from(der);
          if (!cut) changed[at % der.length] = (changed[at % der.length] ?? 0) ^ mask;
          const { engine: fresh } = newEngine({ store: await storeWithWrappingKey() });
          try {
            await fresh.transfers.importKey('k', { type, ciphertext: wrap(changed) });
          } catch (error) {
            expect(error).to.be.instanceOf(TransitError);
            return;
          }
          const input = Buffer.alloc(32).toString('base64');
          const reply = await fresh.signing.sign('k', { input });
          if ('results' in reply) throw new Error('the request was no batch');
          expect(await fresh.signing.verify('k', { input, signature: reply.signature })).to.deep.equal({ valid: true });
        },
      ),
      { numRuns: 150 },
    );
  });

  it('is refused with the same texts for any random bytes of the right length', async () => {
    const good = Buffer.from(wrap(pkcs8(pairs['rsa-2048'])), 'base64');
    for (const [changed, message] of [
      [good.subarray(0, 512), 'provided ciphertext is too short'],
      [good.subarray(0, 513), 'kwp: the key material could not be unwrapped'],
      [good.subarray(0, -1), 'kwp: the key material could not be unwrapped'],
      [good.subarray(0, -8), 'kwp: the key material could not be unwrapped'],
      [Buffer.concat([good, bytes(8, 0)]), 'kwp: the key material could not be unwrapped'],
      [Buffer.concat([bytes(1, 0), good.subarray(1)]), 'crypto/rsa: decryption error with hash_function SHA256'],
    ] as const) {
      const request = { type: 'rsa-2048', ciphertext: changed.toString('base64') };
      expect((await refusalOf(engine.transfers.importKey('k', request))).message).to.include(message);
    }
  });
});

describe('the generation of RSA keys', () => {
  it('runs one at a time, so that threads of the pool stay free, and continues after a failure', async () => {
    const found: number[] = [];
    const search = (bits: number): Promise<unknown> => generateRsa(bits).then(() => found.push(bits));
    const impossible = generateRsa(1).catch(() => found.push(1));
    await Promise.all([impossible, search(4096), search(2048), search(1024), search(1024)]);
    expect(found).to.deep.equal([1, 4096, 2048, 1024, 1024]);
  });
});
