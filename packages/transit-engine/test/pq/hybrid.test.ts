import { createPublicKey, sign, verify } from 'node:crypto';
import { ml_dsa65 } from '@noble/post-quantum/ml-dsa.js';
import { expect } from 'chai';
import fc from 'fast-check';
import {
  encodeHybridPublicKeys,
  type HybridCurve,
  type HybridKeys,
  type HybridKind,
  hybridPrivateKeys,
  hybridPublicKeys,
  isHybridCurve,
  newHybridMaterial,
  signHybrid,
  verifyHybrid,
} from '../../src/pq/hybrid.ts';
import { mlDsa, rawPublicKey, signMlDsa } from '../../src/pq/ml-dsa.ts';
import { decodePair, encodePair, type Pair } from '../../src/pq/pair.ts';

const curves: readonly HybridCurve[] = ['ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521', 'ed25519'];
const message = Buffer.from('the quick brown fox');
const der = { hash: 'sha256', encoding: 'der' } as const;

function kindOf(set: string, ec: HybridCurve): HybridKind {
  const pqc = mlDsa(set);
  if (pqc === undefined) throw new Error('no such set');
  return { pqc, ec };
}
function newKeys(kind: HybridKind): HybridKeys {
  const keys = hybridPrivateKeys(kind, newHybridMaterial(kind));
  if (keys === undefined) throw new Error('not material');
  return keys;
}
function halvesOf(bytes: Uint8Array): Pair {
  const pair = decodePair(bytes);
  if (pair === undefined) throw new Error('not a pair');
  return pair;
}

describe('a pair', () => {
  it('is two byte strings that come out as they went in', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array(), (pqc, ec) => {
        const pair = halvesOf(encodePair({ pqc, ec }));
        expect(Buffer.from(pair.pqc).equals(pqc) && Buffer.from(pair.ec).equals(ec)).to.equal(true);
      }),
    );
  });

  it('has one encoding: what is read is written again as it was', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 12 }), (bytes) => {
        const pair = decodePair(bytes);
        if (pair !== undefined) expect(encodePair(pair).equals(bytes)).to.equal(true);
      }),
    );
  });

  for (const { bytes, because } of [
    { bytes: '', because: 'there is no length' },
    { bytes: '000000', because: 'the length is cut' },
    { bytes: '00000001', because: 'the first half is cut' },
    { bytes: 'ffffffff00', because: 'the length is beyond the end' },
  ]) {
    it(`is not ${bytes || 'nothing'}: ${because}`, () => expect(decodePair(Buffer.from(bytes, 'hex'))).to.equal(undefined));
  }
});

describe('hybrid', () => {
  for (const text of ['', 'rsa-2048', 'ecdsa-p224', 'toString']) {
    it(`has no curve ${JSON.stringify(text)}`, () => expect(isHybridCurve(text)).to.equal(false));
  }

  for (const set of ['44', '65', '87']) {
    for (const ec of curves) {
      for (const encoding of ['der', 'ieee-p1363'] as const) {
        it(`ml-dsa-${set} with ${ec} signs and verifies, ${encoding}`, async () => {
          const kind = kindOf(set, ec);
          const keys = newKeys(kind);
          const options = { hash: 'sha384', encoding };
          const signature = await signHybrid(keys, message, options);
          const publicKeys = hybridPublicKeys(keys);
          expect(await verifyHybrid(kind, publicKeys, message, { ...options, signature })).to.equal(true);
          expect(await verifyHybrid(kind, publicKeys, Buffer.from('jumps'), { ...options, signature })).to.equal(false);
          expect(await verifyHybrid(kind, hybridPublicKeys(newKeys(kind)), message, { ...options, signature })).to.equal(false);
        });
      }
    }
  }

  it('holds two signatures of the whole message that others verify alone', async () => {
    const keys = newKeys(kindOf('65', 'ecdsa-p256'));
    const { pqc, ec } = halvesOf(await signHybrid(keys, message, der));
    expect(ml_dsa65.verify(pqc, message, rawPublicKey(keys.pqc))).to.equal(true);
    expect(verify('sha256', message, createPublicKey(keys.ec), ec)).to.equal(true);
  });

  it('refuses a signature of which only one half holds', async () => {
    const kind = kindOf('65', 'ed25519');
    const keys = newKeys(kind);
    const other = Buffer.from('another message');
    const good = { pqc: await signMlDsa(keys.pqc, message), ec: sign(null, message, keys.ec) };
    const bad = { pqc: await signMlDsa(keys.pqc, other), ec: sign(null, other, keys.ec) };
    const holds = (pair: Pair) => verifyHybrid(kind, hybridPublicKeys(keys), message, { ...der, signature: encodePair(pair) });
    expect(await holds(good)).to.equal(true);
    expect(await holds({ ...good, pqc: bad.pqc })).to.equal(false);
    expect(await holds({ ...good, ec: bad.ec })).to.equal(false);
    expect(await holds({ ...good, ec: Buffer.alloc(0) })).to.equal(false);
    expect(await holds({ ...good, pqc: Buffer.alloc(0) })).to.equal(false);
    expect(await holds({ pqc: good.ec, ec: good.pqc })).to.equal(false);
  });

  for (const ec of curves) {
    it(`${ec}: no altered byte and no cut leaves a signature that holds`, async () => {
      const kind = kindOf('44', ec);
      const keys = newKeys(kind);
      const publicKeys = hybridPublicKeys(keys);
      const signature = await signHybrid(keys, message, der);
      const ecAt = 4 + kind.pqc.signatureBytes;
      for (const at of [0, 3, 4, ecAt - 1, ecAt, ecAt + 1, ecAt + 3, signature.length - 1]) {
        const altered = Buffer.from(signature);
        altered[at] = (altered[at] ?? 0) ^ 0x01;
        expect(await verifyHybrid(kind, publicKeys, message, { ...der, signature: altered }), `byte ${at}`).to.equal(false);
      }
      for (const length of [0, 4, ecAt, ecAt + 1, signature.length - 1]) {
        const cut = signature.subarray(0, length);
        expect(await verifyHybrid(kind, publicKeys, message, { ...der, signature: cut }), `${length} bytes`).to.equal(false);
      }
      const longer = Buffer.concat([signature, Buffer.of(0)]);
      expect(await verifyHybrid(kind, publicKeys, message, { ...der, signature: longer }), 'a byte more').to.equal(false);
    });
  }

  it('reads material of its own kind only', () => {
    const material = newHybridMaterial(kindOf('44', 'ecdsa-p256'));
    const { pqc, ec } = halvesOf(material);
    const read = (bytes: Uint8Array) => hybridPrivateKeys(kindOf('44', 'ecdsa-p256'), bytes);
    expect(read(material)).not.to.equal(undefined);
    expect(hybridPrivateKeys(kindOf('44', 'ecdsa-p384'), material), 'another curve').to.equal(undefined);
    expect(hybridPrivateKeys(kindOf('44', 'ed25519'), material), 'not an elliptic curve of ECDSA').to.equal(undefined);
    expect(read(material.subarray(0, -1)), 'cut').to.equal(undefined);
    expect(read(encodePair({ pqc: pqc.subarray(1), ec })), 'a short seed').to.equal(undefined);
    expect(read(encodePair({ pqc, ec: Buffer.alloc(0) })), 'no curve key').to.equal(undefined);
  });

  it('makes other keys each time', () => {
    const kind = kindOf('44', 'ed25519');
    const [one, other] = [halvesOf(newHybridMaterial(kind)), halvesOf(newHybridMaterial(kind))];
    expect(Buffer.from(one.pqc).equals(other.pqc)).to.equal(false);
    expect(Buffer.from(one.ec).equals(other.ec)).to.equal(false);
  });

  it('shows its public halves as one pair', () => {
    const keys = newKeys(kindOf('44', 'ecdsa-p521'));
    const { pqc, ec } = halvesOf(encodeHybridPublicKeys(hybridPublicKeys(keys)));
    expect(rawPublicKey(keys.pqc).equals(pqc)).to.equal(true);
    const spki = createPublicKey({ key: Buffer.from(ec), format: 'der', type: 'spki' });
    expect(spki.equals(createPublicKey(keys.ec))).to.equal(true);
  });
});
