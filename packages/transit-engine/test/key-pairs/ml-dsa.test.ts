import { createPublicKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ml_dsa44, ml_dsa65, ml_dsa87 } from '@noble/post-quantum/ml-dsa.js';
import { expect } from 'chai';
import fc from 'fast-check';
import {
  type MlDsa,
  mlDsaPrivateKey,
  mlDsaPublicKey,
  parameterSets,
  rawPublicKey,
  signMlDsa,
  verifyMlDsa,
} from '../../src/key-pairs/ml-dsa.ts';

interface AcvpGroup<T> {
  readonly parameterSet: string;
  readonly preHash?: 'pure' | 'preHash';
  readonly tests: readonly T[];
}
interface KeyGen {
  readonly seed: string;
  readonly expected: { readonly pk: string };
}
interface SigGen {
  readonly message: string;
  readonly sk: string;
  readonly context: string;
  readonly expected: { readonly signature: string };
}
interface SigVer {
  readonly pk: string;
  readonly message: string;
  readonly context: string;
  readonly signature: string;
  readonly expected: { readonly testPassed: boolean };
}
interface WycheproofGroup {
  readonly privateSeed?: string;
  readonly publicKey: string;
  readonly tests: readonly {
    readonly comment: string;
    readonly msg?: string;
    readonly ctx?: string;
    readonly sig: string;
    readonly result: 'valid' | 'invalid';
    readonly flags: readonly string[];
  }[];
}

const groupsOf = <G>(file: string): readonly G[] =>
  JSON.parse(readFileSync(new URL(`../vectors/${file}`, import.meta.url), 'utf8')).testGroups;
const hex = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(text, 'hex'));
const noble = { '44': ml_dsa44, '65': ml_dsa65, '87': ml_dsa87 };
const names = ['44', '65', '87'] as const;
type Name = (typeof names)[number];

function setOf(name: string): MlDsa {
  const set = parameterSets.find(({ parameterSet }) => parameterSet === name);
  if (set === undefined) throw new Error(`no parameter set ${name}`);
  return set;
}
const nameIn = ({ parameterSet }: { readonly parameterSet: string }): Name => {
  const name = names.find((each) => parameterSet === `ML-DSA-${each}`);
  if (name === undefined) throw new Error(`no parameter set ${parameterSet}`);
  return name;
};

/** Returns the public key; undefined for bytes of the wrong length. */
function publicKeyOf(name: Name, raw: Uint8Array): KeyObject | undefined {
  try {
    return mlDsaPublicKey(setOf(name), raw);
  } catch {
    return undefined;
  }
}
function requirePublicKey(name: Name, raw: Uint8Array): KeyObject {
  const key = publicKeyOf(name, raw);
  if (key === undefined) throw new Error('not a public key');
  return key;
}

describe('ML-DSA parameter sets', () => {
  for (const name of names) {
    it(`${name} has the sizes of FIPS 204`, async () => {
      const set = setOf(name);
      const key = mlDsaPrivateKey(set, Buffer.alloc(32, 1));
      expect(rawPublicKey(key)).to.have.lengthOf(set.publicKeyBytes);
      expect(await signMlDsa(key, hex(''))).to.have.lengthOf(set.signatureBytes);
    });
  }
});

describe('ML-DSA, on the samples of ACVP', () => {
  it('computes the public keys of 12 seeds', () => {
    const groups = groupsOf<AcvpGroup<KeyGen>>('ML-DSA-keyGen-FIPS204.json');
    for (const group of groups) {
      for (const { seed, expected } of group.tests) {
        const raw = rawPublicKey(mlDsaPrivateKey(setOf(nameIn(group)), hex(seed)));
        expect(raw.toString('hex').toUpperCase()).to.equal(expected.pk);
      }
    }
    expect(groups.flatMap(({ tests }) => tests)).to.have.lengthOf(12);
  });

  it('accepts 6 deterministic signatures of the pure interface, under keys decoded by another implementation', async () => {
    const groups = groupsOf<AcvpGroup<SigGen>>('ML-DSA-sigGen-FIPS204.json').filter(({ preHash }) => preHash === 'pure');
    for (const group of groups) {
      const name = nameIn(group);
      for (const { message, sk, context, expected } of group.tests) {
        const key = requirePublicKey(name, noble[name].getPublicKey(hex(sk)));
        expect(await verifyMlDsa(key, hex(message), hex(expected.signature), hex(context))).to.equal(true);
      }
    }
    expect(groups.flatMap(({ tests }) => tests)).to.have.lengthOf(6);
  });

  it('gives the expected verdict on 12 signatures of the pure interface', async () => {
    const groups = groupsOf<AcvpGroup<SigVer>>('ML-DSA-sigVer-FIPS204.json').filter(({ preHash }) => preHash === 'pure');
    const outcomes: boolean[] = [];
    for (const group of groups) {
      for (const { pk, message, context, signature, expected } of group.tests) {
        const key = requirePublicKey(nameIn(group), hex(pk));
        const holds = await verifyMlDsa(key, hex(message), hex(signature), hex(context));
        expect(holds).to.equal(expected.testPassed);
        outcomes.push(holds);
      }
    }
    expect(outcomes).to.have.lengthOf(12);
    expect(outcomes).to.include.members([true, false]);
  });
});

describe('ML-DSA, on the vectors of Wycheproof', () => {
  for (const [name, counts] of [
    ['44', { made: 41, valid: 47, invalid: 16 }],
    ['65', { made: 39, valid: 42, invalid: 21 }],
    ['87', { made: 41, valid: 40, invalid: 22 }],
  ] as const) {
    it(`${name}: signatures are valid under the keys of the seeds`, async () => {
      let made = 0;
      for (const { privateSeed, publicKey, tests } of groupsOf<WycheproofGroup>(`mldsa_${name}_sign_seed_test.json`)) {
        const seed = hex(privateSeed ?? '');
        if (seed.length !== 32) continue;
        const key = mlDsaPrivateKey(setOf(name), seed);
        expect(rawPublicKey(key).toString('hex')).to.equal(publicKey);
        for (const { msg, ctx, sig, result, comment } of tests) {
          // Cases with only `mu` test the internal interface, which is not accessible here.
          if (msg === undefined || result !== 'valid') continue;
          const context = hex(ctx ?? '');
          expect(await verifyMlDsa(createPublicKey(key), hex(msg), hex(sig), context), comment).to.equal(true);
          const own = Uint8Array.from(await signMlDsa(key, hex(msg), context));
          expect(noble[name].verify(own, hex(msg), hex(publicKey), { context }), comment).to.equal(true);
          made += 1;
        }
      }
      expect(made).to.equal(counts.made);
    });

    it(`${name}: accepts exactly the valid signatures`, async () => {
      let [valid, invalid] = [0, 0];
      for (const { publicKey, tests } of groupsOf<WycheproofGroup>(`mldsa_${name}_verify_test.json`)) {
        const key = publicKeyOf(name, hex(publicKey));
        for (const { msg, ctx, sig, result, comment } of tests) {
          if (msg === undefined) continue;
          const context = hex(ctx ?? '');
          const holds = key !== undefined && context.length <= 255 && (await verifyMlDsa(key, hex(msg), hex(sig), context));
          expect(holds, comment).to.equal(result === 'valid');
          if (holds) valid += 1;
          else invalid += 1;
        }
      }
      expect({ valid, invalid }).to.deep.equal({ valid: counts.valid, invalid: counts.invalid });
    });
  }

  it('refuses a context of more than 255 bytes', async () => {
    const key = mlDsaPrivateKey(setOf('44'), Buffer.alloc(32));
    const refusal = await signMlDsa(key, hex('00'), Buffer.alloc(256)).catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(Error);
  });
});

describe('ML-DSA', () => {
  for (const name of names) {
    it(`${name} and the other implementation verify each other's signatures, and no altered one`, async () => {
      const bytes = fc.uint8Array({ maxLength: 300 });
      const context = fc.uint8Array({ maxLength: 255 });
      await fc.assert(
        fc.asyncProperty(
          fc.uint8Array({ minLength: 32, maxLength: 32 }),
          bytes,
          context,
          fc.nat(),
          async (seed, message, ctx, at) => {
            const { secretKey, publicKey } = noble[name].keygen(Uint8Array.from(seed));
            const key = mlDsaPrivateKey(setOf(name), seed);
            expect(rawPublicKey(key).equals(publicKey)).to.equal(true);
            const signature = Uint8Array.from(await signMlDsa(key, message, ctx));
            expect(noble[name].verify(signature, message, publicKey, { context: ctx })).to.equal(true);
            const theirs = noble[name].sign(message, secretKey, { context: ctx });
            expect(await verifyMlDsa(createPublicKey(key), message, theirs, ctx)).to.equal(true);
            signature[at % signature.length] = (signature[at % signature.length] ?? 0) ^ 1;
            expect(await verifyMlDsa(createPublicKey(key), message, signature, ctx)).to.equal(false);
          },
        ),
        { numRuns: 10 },
      );
    });
  }

  it('makes a different signature each time', async () => {
    const key = mlDsaPrivateKey(setOf('65'), Buffer.alloc(32, 3));
    const [one, other] = [await signMlDsa(key, hex('01')), await signMlDsa(key, hex('01'))];
    expect(one.equals(other)).to.equal(false);
  });
});
