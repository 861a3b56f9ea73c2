import { createPublicKey, hash, randomBytes, verify } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { ed25519 as curve } from '@noble/curves/ed25519.js';
import { expect } from 'chai';
import { ed25519Of } from '../../src/key-pairs/ed25519.ts';
import type { KeyPairScheme, SigningOptions } from '../../src/key-pairs/key-pair.ts';
import { loadSodium, type Sodium, sodium } from '../../src/key-pairs/sodium.ts';
import { hex, vectorFile, type Wycheproof } from '../vector-file.ts';

interface Group {
  readonly publicKey: { readonly pk: string };
}

interface Case {
  readonly msg: string;
  readonly sig: string;
}

interface EdDsaCase {
  readonly secretKey: string;
  readonly publicKey: string;
  readonly message: string;
  readonly signature: string;
}

const pure: SigningOptions = {
  hash: 'sha2-256',
  prehashed: false,
  signatureContext: new Uint8Array(),
  signatureAlgorithm: 'pss',
  saltLength: 'auto',
  marshaling: 'asn1',
};
const judge = (scheme: KeyPairScheme, publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean> =>
  scheme.load({ material: new Uint8Array(), publicKey }).verify(message, signature, pure);

const { Point } = curve;
const order = Point.Fn.ORDER;
const encoded = (number: bigint): Buffer => Buffer.from(number.toString(16).padStart(64, '0'), 'hex').reverse();
const randomScalar = (): bigint => BigInt(`0x${randomBytes(40).toString('hex')}`) % order;
/** A point of order 8. */
const torsion = Point.fromBytes(hex('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a'));
const p = 2n ** 255n - 19n;
/** Every encoding of a point of small order, canonical or not, and others that are not canonical. */
const oddEncodings = [0n, 1n, p - 1n, p, p + 1n, p + 3n, p + 18n, 5n]
  .concat(
    [1, 3].map(
      (times) =>
        BigInt(
          `0x${Buffer.from(torsion.multiply(BigInt(times)).toBytes())
            .reverse()
            .toString('hex')}`,
        ) %
        2n ** 255n,
    ),
  )
  .flatMap((y) => [encoded(y), encoded(y + 2n ** 255n)]);

/** Verifies with node:crypto alone, and so shows what both libraries have to agree with. */
function reference(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const der = Buffer.concat([hex('302a300506032b6570032100'), publicKey]);
  return signature.length === 64 && verify(null, message, createPublicKey({ key: der, format: 'der', type: 'spki' }), signature);
}

/** Signatures that verifiers disagree about: components of small order in the key and in R, odd encodings, and S + L. */
function* disputed(): Generator<readonly [publicKey: Buffer, message: Buffer, signature: Buffer]> {
  for (let round = 0; round < 512; round += 1) {
    const [a, r] = [randomScalar(), round % 64 === 0 ? 0n : randomScalar()];
    const inA = torsion.multiplyUnsafe(BigInt(round % 8));
    const inR = torsion.multiplyUnsafe(BigInt((round >> 3) % 8));
    const publicKey = Buffer.from(Point.BASE.multiply(a).add(inA).toBytes());
    const first = Buffer.from((r === 0n ? Point.ZERO : Point.BASE.multiply(r)).add(inR).toBytes());
    const message = randomBytes(8);
    const digest = hash('sha512', Buffer.concat([first, publicKey, message]), 'buffer').reverse();
    const s = (r + BigInt(`0x${digest.toString('hex')}`) * a) % order;
    yield [publicKey, message, Buffer.concat([first, encoded(s)])];
    yield [publicKey, message, Buffer.concat([first, encoded(s + order)])];
  }
  for (const publicKey of oddEncodings)
    for (const first of oddEncodings) yield [publicKey, randomBytes(4), Buffer.concat([first, Buffer.alloc(32)])];
}

describe('Ed25519 with libsodium', () => {
  const { header } = process.report.getReport() as unknown as { readonly header: { readonly glibcVersionRuntime?: string } };
  const [, minor = Number.NaN] = (header.glibcVersionRuntime ?? '').split('.').map(Number);
  const hasBinary = process.platform === 'darwin' || minor >= 33;

  it('is in use on Linux with glibc 2.33 or newer and on macOS', () => {
    expect(sodium() !== undefined).to.equal(hasBinary);
  });

  for (const { what, code, warns } of [
    { what: 'a missing package', code: 'MODULE_NOT_FOUND', warns: false },
    { what: 'a package without a binary for this system', code: 'ADDON_NOT_FOUND', warns: false },
    { what: 'a binary that cannot be loaded', code: 'CANNOT_LOAD', warns: true },
    { what: 'any other fault', code: undefined, warns: true },
  ])
    it(`is done without for ${what}, ${warns ? 'with a warning and its reason' : 'without a warning'}`, () => {
      const warnings: string[] = [];
      const require = (): never => {
        throw Object.assign(new Error('Cannot load addon', { cause: new Error('GLIBC_2.33 not found') }), code && { code });
      };
      expect(loadSodium(require, (message) => warnings.push(message))).to.equal(undefined);
      expect(warnings).to.have.length(warns ? 1 : 0);
      if (warns) expect(warnings[0]).to.match(/^libsodium cannot be loaded.*: .*Cannot load addon: GLIBC_2.33 not found$/);
    });

  const none = (): undefined => undefined;
  for (const [name, library, other] of [
    ['libsodium', sodium, none],
    ['node:crypto', none, sodium],
  ] as const) {
    const scheme = ed25519Of(library);

    it(`${name} agrees with every case of Wycheproof`, async () => {
      const { testGroups } = vectorFile<Wycheproof<Group, Case>>('ed25519_test.json');
      for (const { publicKey, tests } of testGroups)
        for (const { tcId, comment, msg, sig, result } of tests)
          expect(await judge(scheme, hex(publicKey.pk), hex(msg), hex(sig)), `${tcId} ${comment}`).to.equal(result === 'valid');
    });

    it(`${name} agrees with node:crypto about signatures that verifiers dispute`, async () => {
      const counts = { valid: 0, invalid: 0 };
      for (const [publicKey, message, signature] of disputed()) {
        const expected = reference(publicKey, message, signature);
        const of = `${publicKey.toString('hex')} ${signature.toString('hex')}`;
        expect(await judge(scheme, publicKey, message, signature), of).to.equal(expected);
        counts[expected ? 'valid' : 'invalid'] += 1;
      }
      expect(counts.valid).to.be.above(20);
      expect(counts.invalid).to.be.above(500);
    });

    it(`${name} makes the signatures of RFC 8032, and verifies them`, async () => {
      const cases = vectorFile<readonly EdDsaCase[]>('rfc8032-eddsa-ed25519.json');
      for (const { secretKey, publicKey, message, signature } of cases) {
        const pair = scheme.load({ material: hex(secretKey.slice(0, 64) + publicKey), publicKey: hex(publicKey) });
        expect((await pair.sign?.(hex(message), pure))?.toString('hex')).to.equal(signature);
        expect(await pair.verify(hex(message), hex(signature), pure)).to.equal(true);
      }
      expect(cases).to.have.length(5);
    });

    it(`${name} signs inputs of any length and with a context, and both verify them`, async () => {
      const bytes = await scheme.generate();
      const [own, others] = [scheme.load(bytes), ed25519Of(other).load(bytes)];
      for (const options of [pure, { ...pure, signatureContext: Buffer.from('context') }])
        for (const length of [0, 1, 100, 2 ** 20, 2 ** 20 + 1]) {
          const input = Buffer.alloc(length, 7);
          const signature = (await own.sign?.(input, options)) ?? Buffer.alloc(0);
          expect(await others.sign?.(input, options)).to.deep.equal(signature);
          for (const pair of [own, others]) {
            expect(await pair.verify(input, signature, options)).to.equal(true);
            expect(await pair.verify(Buffer.concat([input, input, Buffer.alloc(1)]), signature, options)).to.equal(false);
          }
        }
    });
  }

  /** Refuses every signature, and remembers the key that it was given. */
  class Refusing implements Sodium {
    secretKey: Uint8Array | undefined;
    crypto_sign_detached(_signature: Uint8Array, _message: Uint8Array, secretKey: Uint8Array): void {
      this.secretKey = secretKey;
    }
    crypto_sign_verify_detached(): boolean {
      return false;
    }
  }

  it('lets node:crypto decide about a refused signature', async () => {
    const bytes = await ed25519Of(none).generate();
    const signature = (await ed25519Of(none).load(bytes).sign?.(Buffer.from('input'), pure)) ?? Buffer.alloc(0);
    expect(
      await ed25519Of(() => new Refusing())
        .load(bytes)
        .verify(Buffer.from('input'), signature, pure),
    ).to.equal(true);
  });

  it('wipes its copy of a private key when the pair is garbage', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const library = new Refusing();
    const bytes = await ed25519Of(none).generate();
    await ed25519Of(() => library)
      .load(bytes)
      .sign?.(Buffer.from('input'), pure);
    expect(library.secretKey).to.deep.equal(Uint8Array.from(bytes.material));
    while (library.secretKey?.some((byte) => byte !== 0)) {
      collect();
      await turn();
    }
  });
});
