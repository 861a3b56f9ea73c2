import { createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { memoryStore, type Store, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import fc from 'fast-check';
import {
  type Barrier,
  openJoinSecret,
  type SealConfig,
  type SealTerms,
  ShareCollection,
  type WrappedJoinSecret,
} from '../../src/index.ts';
import { closeBox } from '../../src/records/box.ts';
import { wrapJoinSecret } from '../../src/seal/join-secret.ts';
import { encodeTerms } from '../../src/seal/seal-record.ts';
import { faultyStore } from '../faulty-store.ts';
import { codeOf, everything, messageOf, openBarrier, text, unsealedBarrier } from '../fixtures.ts';

const exchanged = text('all that was said so far');
const keyOf = (id: string) => ({ id, key: randomBytes(32) });

type StaticSeal = Extract<SealConfig, { type: 'static' }>;

function gathered({ threshold, shareHashes }: SealTerms, shares: readonly Uint8Array[]): ShareCollection {
  const collection = new ShareCollection(threshold, shareHashes);
  for (const share of shares) collection.add(share);
  return collection;
}

async function staticBarrier(seal: StaticSeal, store: Store = memoryStore()): Promise<Barrier> {
  const barrier = await openBarrier(store, { seal });
  await barrier.initialize({ recoveryShares: 3, recoveryThreshold: 2 }, []);
  return barrier;
}

/** Opens a wrapped secret as a holder of `shares`; resolves with the code of the error, or undefined on success. */
async function opening({ secret, ...wrapped }: WrappedJoinSecret, shares: readonly Uint8Array[]): Promise<string | undefined> {
  const opened = openJoinSecret(gathered(wrapped.terms, shares), { ...wrapped, exchanged });
  const same = await opened.then((bytes) => bytes.equals(secret)).catch(() => false);
  return same ? undefined : codeOf(opened);
}

describe('join secret', () => {
  it('opens with the unseal shares, on a node without records', async () => {
    const { barrier, shares } = await unsealedBarrier();
    const wrapped = await barrier.wrapForJoin(exchanged);
    expect(wrapped.terms).to.deep.include({ type: 'shamir', threshold: 2, shares: 3, keyId: '' });
    expect(wrapped.secret).to.have.lengthOf(32);
    expect(await opening(wrapped, shares.slice(1))).to.equal(undefined);
  });

  it('opens with a single share, which is the key itself', async () => {
    const barrier = await openBarrier(memoryStore());
    const { shares } = await barrier.initialize({ secretShares: 1, secretThreshold: 1 }, []);
    for (const share of shares) await barrier.unseal(share);
    expect(await opening(await barrier.wrapForJoin(exchanged), shares)).to.equal(undefined);
  });

  for (const [name, configured] of [
    ['current', (key: StaticSeal['current']) => ({ type: 'static', current: key })],
    ['previous', (key: StaticSeal['current']) => ({ type: 'static', current: keyOf('k2'), previous: key })],
  ] satisfies [string, (key: StaticSeal['current']) => StaticSeal][])
    it(`of a static seal opens with the key that its terms name, the other node's ${name} key`, async () => {
      const key = keyOf('k1');
      const { secret, ...wrapped } = await (await staticBarrier({ type: 'static', current: key })).wrapForJoin(exchanged);
      expect(wrapped.terms).to.deep.include({ type: 'static', keyId: 'k1', threshold: 2, shares: 3 });
      expect(await openJoinSecret(configured(key), { ...wrapped, exchanged })).to.deep.equal(secret);
    });

  it('of a static seal is wrapped by the previous key while that key wraps the root key', async () => {
    const [before, after] = [keyOf('k1'), keyOf('k2')];
    const store = faultyStore(memoryStore());
    await staticBarrier({ type: 'static', current: before }, store);
    const barrier = await openBarrier(store, { seal: { type: 'static', current: after, previous: before } });
    store.beforeCommit = () => Promise.reject(new StoreError('not_leader', 'a follower'));
    await barrier.autoUnseal();
    const { secret, ...wrapped } = await barrier.wrapForJoin(exchanged);
    expect(wrapped.terms.keyId).to.equal('k1');
    expect(await openJoinSecret({ type: 'static', current: before }, { ...wrapped, exchanged })).to.deep.equal(secret);
  });

  it('is different each time, with a fresh salt and nonce', async () => {
    const { barrier } = await unsealedBarrier();
    const all = await Promise.all(Array.from({ length: 20 }, () => barrier.wrapForJoin(exchanged)));
    for (const of of [
      ({ secret }: WrappedJoinSecret) => secret,
      ({ wrapped }: WrappedJoinSecret) => wrapped.subarray(1, 33),
      ({ wrapped }: WrappedJoinSecret) => wrapped.subarray(33, 45),
    ])
      expect(new Set(all.map((one) => of(one).toString('hex'))).size).to.equal(20);
  });

  it('is format, salt, nonce, ciphertext and tag: AES-256-GCM under HKDF-SHA256 of the seal key', () => {
    const { key } = keyOf('k1');
    const terms: SealTerms = { type: 'static', shares: 1, threshold: 1, shareHashes: [Buffer.alloc(32, 0xab)], keyId: 'k1' };
    const { secret, wrapped } = wrapJoinSecret(key, { terms, exchanged });
    expect(wrapped).to.have.lengthOf(1 + 32 + 12 + 32 + 16);
    expect(wrapped[0]).to.equal(1);
    const oneTimeKey = Buffer.from(hkdfSync('sha256', key, wrapped.subarray(1, 33), 'transitd join secret 1', 32));
    const decipher = createDecipheriv('aes-256-gcm', oneTimeKey, wrapped.subarray(33, 45));
    const encodedTerms = `["core/seal",1,"static",1,1,"k1",["${'ab'.repeat(32)}"]]`;
    decipher.setAAD(Buffer.concat([wrapped.subarray(0, 33), text(encodedTerms), exchanged]));
    decipher.setAuthTag(wrapped.subarray(-16));
    expect(Buffer.concat([decipher.update(wrapped.subarray(45, -16)), decipher.final()])).to.deep.equal(secret);
  });

  it('does not open in an unknown format', async () => {
    const { id, key } = keyOf('k1');
    const terms: SealTerms = { type: 'static', shares: 1, threshold: 1, shareHashes: [Buffer.alloc(32)], keyId: id };
    const wrappedAs = (format: number): Buffer => {
      const header = Buffer.concat([Buffer.of(format), randomBytes(32)]);
      const oneTimeKey = Buffer.from(hkdfSync('sha256', key, header.subarray(1), 'transitd join secret 1', 32));
      return Buffer.concat([
        header,
        closeBox(oneTimeKey, Buffer.concat([header, encodeTerms(terms), exchanged]), randomBytes(32)),
      ]);
    };
    const opened = (wrapped: Buffer) => openJoinSecret({ type: 'static', current: { id, key } }, { terms, exchanged, wrapped });
    expect(await opened(wrappedAs(1))).to.have.lengthOf(32);
    expect(await codeOf(opened(wrappedAs(2)))).to.equal('join_secret');
  });

  it('requires enough shares', async () => {
    const { barrier, shares } = await unsealedBarrier();
    expect(await opening(await barrier.wrapForJoin(exchanged), shares.slice(0, 1))).to.equal('share_missing');
  });

  it('fails with the same error for a changed byte, other terms or other exchanged messages', async () => {
    const key = keyOf('k1');
    const seal: StaticSeal = { type: 'static', current: key };
    const { terms, wrapped } = wrapJoinSecret(key.key, {
      terms: { type: 'static', shares: 2, threshold: 2, shareHashes: [randomBytes(32), randomBytes(32)], keyId: 'k1' },
      exchanged,
    });
    const refused = async (changed: { terms?: SealTerms; exchanged?: Buffer; wrapped?: Buffer }): Promise<void> => {
      expect(await codeOf(openJoinSecret(seal, { terms, exchanged, wrapped, ...changed }))).to.equal('join_secret');
    };
    await openJoinSecret(seal, { terms, exchanged, wrapped });
    const anyByte = (bytes: Buffer) =>
      fc.tuple(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 })).map(([at, mask]) => {
        const changed = Buffer.from(bytes);
        changed.writeUInt8(changed.readUInt8(at) ^ mask, at);
        return changed;
      });
    await fc.assert(fc.asyncProperty(anyByte(wrapped), (changed) => refused({ wrapped: changed })));
    await fc.assert(fc.asyncProperty(anyByte(exchanged), (changed) => refused({ exchanged: changed })));
    await fc.assert(fc.asyncProperty(fc.nat(wrapped.length - 1), (length) => refused({ wrapped: wrapped.subarray(0, length) })));
    await refused({ wrapped: Buffer.concat([wrapped, Buffer.of(0)]) });
    await refused({ terms: { ...terms, threshold: 1 } });
    await refused({ terms: { ...terms, shares: 3 } });
    await refused({ terms: { ...terms, shareHashes: terms.shareHashes.toReversed() } });
    await refused({ exchanged: Buffer.concat([exchanged, Buffer.of(0)]) });
  });

  it('reports the mismatch when another seal is configured', async () => {
    const shamir = await (await unsealedBarrier()).barrier.wrapForJoin(exchanged);
    const key = keyOf('k1');
    const fixed = await (await staticBarrier({ type: 'static', current: key })).wrapForJoin(exchanged);
    for (const [attempt, message] of [
      [
        openJoinSecret({ type: 'static', current: key }, { ...shamir, exchanged }),
        "the cluster's seal is of type shamir, the configuration says static",
      ],
      [
        openJoinSecret(gathered(fixed.terms, []), { ...fixed, exchanged }),
        "the cluster's seal is of type static, the configuration says shamir",
      ],
      [
        openJoinSecret({ type: 'static', current: { ...key, id: 'k9' } }, { ...fixed, exchanged }),
        'no seal key with the id "k1" is configured',
      ],
      [
        openJoinSecret({ type: 'static', current: keyOf('k1') }, { ...fixed, exchanged }),
        "this node's seal key does not open the secret: it is not the cluster's seal key, or the message was changed in transit",
      ],
    ] as const)
      expect(await messageOf(attempt)).to.equal(message);
  });

  it('is refused while sealed', async () => {
    const { barrier } = await unsealedBarrier();
    barrier.seal();
    expect(await codeOf(barrier.wrapForJoin(exchanged))).to.equal('sealed');
  });

  it('is refused when the node is sealed while the key is read', async () => {
    const store = faultyStore(memoryStore());
    const { barrier } = await unsealedBarrier({ store });
    store.beforeGet = async (path) => {
      if (path === 'core/unseal-key') barrier.seal();
    };
    expect(await codeOf(barrier.wrapForJoin(exchanged))).to.equal('sealed');
  });
});

describe('the stored unseal key', () => {
  async function rekeyedBy(barrier: Barrier, shares: readonly Buffer[]): Promise<readonly Buffer[]> {
    const { nonce } = await barrier.rekey.start({ shares: 2, threshold: 2, requireVerification: false });
    for (const share of shares) {
      const step = await barrier.rekey.update({ nonce, share });
      if (step.complete) return step.shares;
    }
    throw new Error('the rekey is not complete');
  }

  it('belongs to the current seal: after a rekey the new shares open a secret, the old ones are refused', async () => {
    const { barrier, shares } = await unsealedBarrier();
    const next = await rekeyedBy(barrier, shares.slice(0, 2));
    const wrapped = await barrier.wrapForJoin(exchanged);
    expect(await opening(wrapped, next)).to.equal(undefined);
    expect(() => gathered(wrapped.terms, shares.slice(0, 1))).to.throw('not one of the shares');
  });

  it('belongs to the current seal also on a node that was unsealed before the rekey, and after rotations', async () => {
    const { barrier, store, shares } = await unsealedBarrier();
    const other = await openBarrier(store);
    for (const share of shares.slice(0, 2)) await other.unseal(share);
    await barrier.rotation.rotate();
    const next = await rekeyedBy(barrier, shares.slice(0, 2));
    await barrier.rotation.rotate();
    expect(await opening(await other.wrapForJoin(exchanged), next)).to.equal(undefined);
  });

  it('is not in the store in plaintext, and cannot be read through the barrier', async () => {
    const barrier = await openBarrier(memoryStore());
    const { shares } = await barrier.initialize({ secretShares: 1, secretThreshold: 1 }, []);
    for (const share of shares) await barrier.unseal(share);
    expect(await codeOf(barrier.store.get('core/unseal-key'))).to.equal('reserved_path');
    expect((await barrier.store.range({ prefix: 'core/' })).records.map(({ path }) => path)).to.deep.equal([]);
  });

  it('is stored only as ciphertext', async () => {
    const store = memoryStore();
    const barrier = await openBarrier(store);
    const { shares } = await barrier.initialize({ secretShares: 1, secretThreshold: 1 }, []);
    const record = (await everything(store)).get('core/unseal-key') ?? expect.fail('there is no such record');
    for (const key of shares) expect(record.includes(key)).to.equal(false);
  });

  it('is not stored for a static seal', async () => {
    const store = memoryStore();
    await staticBarrier({ type: 'static', current: keyOf('k1') }, store);
    expect((await everything(store)).has('core/unseal-key')).to.equal(false);
  });

  const putRecord = (store: Store, value: Buffer | null) =>
    store.commit({ conditions: [], writes: [{ path: 'core/unseal-key', value }] });

  it('is required for joins; without it the error names a remedy that works', async () => {
    const { barrier, store, shares } = await unsealedBarrier();
    await putRecord(store, null);
    expect(await codeOf(barrier.wrapForJoin(exchanged))).to.equal('unseal_key_not_kept');
    expect(await messageOf(barrier.wrapForJoin(exchanged))).to.match(/do a rekey \(sys\/rotate\/root\) first$/);
    const next = await rekeyedBy(barrier, shares.slice(0, 2));
    expect(await opening(await barrier.wrapForJoin(exchanged), next)).to.equal(undefined);
  });

  it('is not used if it belongs to an older seal, as after a rekey by a release that does not store it', async () => {
    const { barrier, store, shares } = await unsealedBarrier();
    const before = (await everything(store)).get('core/unseal-key') ?? null;
    await rekeyedBy(barrier, shares.slice(0, 2));
    await putRecord(store, before);
    expect(await codeOf(barrier.wrapForJoin(exchanged))).to.equal('unseal_key_not_kept');
  });

  it('is reported as corrupt when it is damaged', async () => {
    const { barrier, store } = await unsealedBarrier();
    const value = (await everything(store)).get('core/unseal-key') ?? expect.fail('there is no such record');
    value.writeUInt8(value.readUInt8(20) ^ 1, 20);
    await putRecord(store, value);
    expect(await codeOf(barrier.wrapForJoin(exchanged))).to.equal('barrier_corrupt');
  });

  it('is read again when a rekey happens between the reads', async () => {
    const store = faultyStore(memoryStore());
    const { barrier, shares } = await unsealedBarrier({ store });
    const other = await openBarrier(store);
    for (const share of shares.slice(0, 2)) await other.unseal(share);
    let next: readonly Buffer[] | undefined;
    store.beforeGet = async (path) => {
      if (path !== 'core/unseal-key') return;
      delete store.beforeGet;
      next = await rekeyedBy(other, shares.slice(0, 2));
    };
    const wrapped = await barrier.wrapForJoin(exchanged);
    expect(await opening(wrapped, next ?? expect.fail('there was no rekey'))).to.equal(undefined);
  });
});
