import { DamagedRecord, TransitError } from '../values/errors.ts';
import { notImported } from './key-formats.ts';
import type { KeyPairBytes, KeyPairScheme } from './key-pair.ts';
import { checkPure } from './ml-dsa.ts';

/**
 * Combines ML-DSA with an elliptic curve. Both schemes sign the whole message, and both signatures must be valid. A hybrid key is a pair of
 * keys and a hybrid signature a pair of signatures, one of each scheme.
 */
export function hybridPairs(pqc: KeyPairScheme, ec: KeyPairScheme): KeyPairScheme {
  return {
    versionName: `${pqc.versionName}+${ec.versionName}`,
    fits: (materialBytes) => fitsBoth(pqc, ec, materialBytes),
    async generate() {
      const halves = { pqc: await pqc.generate(), ec: await ec.generate() };
      try {
        return {
          material: encodeHalves({ pqc: halves.pqc.material, ec: halves.ec.material }),
          publicKey: encodeHalves({ pqc: halves.pqc.publicKey, ec: halves.ec.publicKey }),
        };
      } finally {
        halves.pqc.material.fill(0);
        halves.ec.material.fill(0);
      }
    },
    load(bytes) {
      const halves = halvesOf(bytes);
      const pairs = { pqc: pqc.load(halves.pqc), ec: ec.load(halves.ec) };
      const { pqc: signPqc, ec: signEc } = { pqc: pairs.pqc.sign, ec: pairs.ec.sign };
      return {
        ...(signPqc &&
          signEc && {
            async sign(input, options) {
              checkPure(options);
              return encodeHalves({ pqc: await signPqc(input, options), ec: await signEc(input, options) });
            },
          }),
        async verify(input, signature, options) {
          checkPure(options);
          const parts = decodeHalves(signature);
          if (parts === undefined) return false;
          const pqcValid = await pairs.pqc.verify(input, parts.pqc, options);
          const ecValid = await pairs.ec.verify(input, parts.ec, options).catch(falseIfMalformed);
          return pqcValid && ecValid;
        },
      };
    },
    checkCost: {
      pair: pqc.checkCost.pair + ec.checkCost.pair,
      publicHalf: pqc.checkCost.publicHalf + ec.checkCost.publicHalf,
    },
    async check(bytes) {
      const given = bytes.material.length === 0 ? [bytes.publicKey] : [bytes.publicKey, bytes.material];
      if (given.some((each) => decodeHalves(each) === undefined)) throw notImported('it is not a pair of keys');
      const halves = halvesOf(bytes);
      const isWhole = bytes.material.length > 0;
      if (isWhole && !(pqc.fits(halves.pqc.material.length) && ec.fits(halves.ec.material.length))) {
        throw notImported('it is not a pair of keys');
      }
      await pqc.check(halves.pqc);
      await ec.check(halves.ec);
    },
    publicText: (publicKey) => pqc.publicText(decodeStored(publicKey).pqc),
    secondPublicText: (publicKey) => ec.publicText(decodeStored(publicKey).ec),
    exported: {
      form: 'base64',
      of: (material) => Buffer.from(material),
      publicText: (publicKey) => Buffer.from(publicKey).toString('base64'),
    },
  };
}

/** Whether the bytes can be split into material of both schemes. */
function fitsBoth(pqc: KeyPairScheme, ec: KeyPairScheme, materialBytes: number): boolean {
  const forBoth = materialBytes - encodeHalves({ pqc: new Uint8Array(), ec: new Uint8Array() }).length;
  for (let ofEc = 1; ofEc < forBoth; ofEc++) if (ec.fits(ofEc) && pqc.fits(forBoth - ofEc)) return true;
  return false;
}

function halvesOf({ material, publicKey }: KeyPairBytes): { readonly pqc: KeyPairBytes; readonly ec: KeyPairBytes } {
  const publicHalves = decodeStored(publicKey);
  const privateHalves = material.length === 0 ? { pqc: material, ec: material } : decodeStored(material);
  return {
    pqc: { material: privateHalves.pqc, publicKey: publicHalves.pqc },
    ec: { material: privateHalves.ec, publicKey: publicHalves.ec },
  };
}

function decodeStored(bytes: Uint8Array): Halves {
  const pair = decodeHalves(bytes);
  if (pair === undefined) throw new DamagedRecord('a hybrid key is not a pair of keys');
  return pair;
}

/** Treats a malformed half of a signature like an invalid one, so that the answer does not reveal which half it is. */
function falseIfMalformed(error: unknown): false {
  if (error instanceof TransitError && error.code === 'invalid_ciphertext') return false;
  throw error;
}

/** The two halves of a hybrid signature, public key or private key. */
export interface Halves {
  /** The half of the post-quantum scheme. */
  readonly pqc: Uint8Array;
  /** The half of the elliptic-curve scheme. */
  readonly ec: Uint8Array;
}

const lengthBytes = 4;

/** `length of pqc u32 big-endian | pqc | ec`. */
export function encodeHalves({ pqc, ec }: Halves): Buffer {
  const pair = Buffer.alloc(lengthBytes + pqc.length + ec.length);
  pair.writeUInt32BE(pqc.length, 0);
  pair.set(pqc, lengthBytes);
  pair.set(ec, lengthBytes + pqc.length);
  return pair;
}

/** Returns the halves as views of `bytes`; undefined for invalid bytes. */
export function decodeHalves(bytes: Uint8Array): Halves | undefined {
  const pair = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (pair.length < lengthBytes) return undefined;
  const ecAt = lengthBytes + pair.readUInt32BE(0);
  return ecAt > pair.length ? undefined : { pqc: pair.subarray(lengthBytes, ecAt), ec: pair.subarray(ecAt) };
}
