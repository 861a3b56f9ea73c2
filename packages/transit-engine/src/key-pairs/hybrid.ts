import { DamagedRecord, TransitError } from '../errors.ts';
import { notImported } from './key-formats.ts';
import type { KeyPairBytes, KeyPairScheme } from './key-pair.ts';
import { checkPure } from './ml-dsa.ts';
import { decodePair, encodePair, type Pair } from './pair-encoding.ts';

/**
 * ML-DSA and an elliptic curve: both halves sign the whole message, and both have to hold. Keys and signatures are pairs of what the two
 * schemes have by themselves.
 */
export function hybridPairs(pqc: KeyPairScheme, ec: KeyPairScheme): KeyPairScheme {
  return {
    versionName: `${pqc.versionName}+${ec.versionName}`,
    fits: (materialBytes) => fitsBoth(pqc, ec, materialBytes),
    async generate() {
      const halves = { pqc: await pqc.generate(), ec: await ec.generate() };
      try {
        return {
          material: encodePair({ pqc: halves.pqc.material, ec: halves.ec.material }),
          publicKey: encodePair({ pqc: halves.pqc.publicKey, ec: halves.ec.publicKey }),
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
              return encodePair({ pqc: await signPqc(input, options), ec: await signEc(input, options) });
            },
          }),
        async verify(input, signature, options) {
          checkPure(options);
          const parts = decodePair(signature);
          if (parts === undefined) return false;
          const pqcHolds = await pairs.pqc.verify(input, parts.pqc, options);
          const ecHolds = await pairs.ec.verify(input, parts.ec, options).catch(falseForForm);
          return pqcHolds && ecHolds;
        },
      };
    },
    async check(bytes) {
      const given = bytes.material.length === 0 ? [bytes.publicKey] : [bytes.publicKey, bytes.material];
      if (given.some((each) => decodePair(each) === undefined)) throw notImported('it is not a pair of keys');
      const halves = halvesOf(bytes);
      const isWhole = bytes.material.length > 0;
      if (isWhole && !(pqc.fits(halves.pqc.material.length) && ec.fits(halves.ec.material.length))) {
        throw notImported('it is not a pair of keys');
      }
      await pqc.check(halves.pqc);
      await ec.check(halves.ec);
    },
    publicText: (publicKey) => pqc.publicText(pairIn(publicKey).pqc),
    secondPublicText: (publicKey) => ec.publicText(pairIn(publicKey).ec),
    exported: {
      form: 'base64',
      of: (material) => Buffer.from(material),
      publicText: (publicKey) => Buffer.from(publicKey).toString('base64'),
    },
  };
}

/** Whether there is a split of that many bytes into material of both kinds. */
function fitsBoth(pqc: KeyPairScheme, ec: KeyPairScheme, materialBytes: number): boolean {
  const forBoth = materialBytes - encodePair({ pqc: new Uint8Array(), ec: new Uint8Array() }).length;
  for (let ofEc = 1; ofEc < forBoth; ofEc++) if (ec.fits(ofEc) && pqc.fits(forBoth - ofEc)) return true;
  return false;
}

function halvesOf({ material, publicKey }: KeyPairBytes): { readonly pqc: KeyPairBytes; readonly ec: KeyPairBytes } {
  const publicHalves = pairIn(publicKey);
  const privateHalves = material.length === 0 ? { pqc: material, ec: material } : pairIn(material);
  return {
    pqc: { material: privateHalves.pqc, publicKey: publicHalves.pqc },
    ec: { material: privateHalves.ec, publicKey: publicHalves.ec },
  };
}

function pairIn(bytes: Uint8Array): Pair {
  const pair = decodePair(bytes);
  if (pair === undefined) throw new DamagedRecord('a hybrid key is not a pair of keys');
  return pair;
}

/** A half of a form that no signature has is one that does not hold: which half it is tells nobody anything. */
function falseForForm(error: unknown): false {
  if (error instanceof TransitError && error.code === 'invalid_ciphertext') return false;
  throw error;
}
