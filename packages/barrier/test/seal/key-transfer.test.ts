import { randomBytes } from 'node:crypto';
import { memoryStore, type Write } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { termOf } from '../../src/keyring/value.ts';
import { BarrierError } from '../../src/records/errors.ts';
import { codeOf, openBarrier, put, read, text, unsealedBarrier, unsealWith } from '../fixtures.ts';
import { keysOf, withRecord } from './transferred-keys.ts';

const local = ['core/cluster-authority', 'core/own/'];

describe('KeyTransfer', () => {
  it("encrypts local records again, so that the primary's shares open them with its state", async () => {
    const primary = await unsealedBarrier();
    await put(primary.barrier, 'transit/key', 'of the primary');
    await primary.barrier.rotation.rotate();
    const secondary = await unsealedBarrier();
    for (let at = 0; at < 3; at += 1) await put(secondary.barrier, `core/own/${at}`, `own ${at}`);
    await put(secondary.barrier, 'core/cluster-authority', 'authority');
    await put(secondary.barrier, 'core/other', 'not local');

    const writes = await secondary.barrier.transfer.localRecords(local, await keysOf(primary));
    expect(writes.map(({ path }) => path)).to.have.members([
      'core/cluster-authority',
      ...[0, 1, 2].map((at) => `core/own/${at}`),
    ]);
    const { records } = await primary.store.range({ prefix: '' });
    const received = memoryStore();
    await received.commit({
      conditions: [],
      writes: [
        ...records.map(({ path, value }): Write => ({ path, value })),
        ...writes.map(({ path, value }): Write => ({ path, value })),
      ],
    });
    const joined = await openBarrier(received);
    await unsealWith(joined, primary.shares.slice(0, 2));
    expect(await read(joined, 'transit/key')).to.equal('of the primary');
    expect(await read(joined, 'core/cluster-authority')).to.equal('authority');
    expect(await read(joined, 'core/own/2')).to.equal('own 2');
  });

  it('refuses a state that this node could not unseal', async () => {
    const [primary, { barrier }] = [await unsealedBarrier(), await unsealedBarrier()];
    const keys = await keysOf(primary);
    const refusal = (other: object) => codeOf(barrier.transfer.localRecords(local, { ...keys, ...other }));
    expect(await refusal({ rootKey: randomBytes(32) })).to.equal('barrier_corrupt');
    for (const path of ['core/keyring', 'core/seal'])
      expect(await refusal(withRecord(keys, path, undefined)), path).to.equal('barrier_corrupt');
    const seal = JSON.parse(Buffer.from(keys.records.get('core/seal') ?? []).toString());
    const other = withRecord(keys, 'core/seal', text(JSON.stringify({ ...seal, type: 'static', keyId: 'k' })));
    expect(await refusal(other)).to.equal('seal_mismatch');
    const isStatic = { seal: { type: 'static', current: { id: 'k', key: randomBytes(32) } } } as const;
    const own = await openBarrier(memoryStore(), isStatic);
    await own.initialize({ recoveryShares: 1, recoveryThreshold: 1 }, []);
    const unshared = own.transfer.localRecords(local, { ...keys, ...other });
    expect(await codeOf(unshared), 'the primary has another seal').to.equal('seal_mismatch');
    barrier.seal();
    expect(await refusal({})).to.equal('sealed');
  });

  it('reads the values of an earlier state, and no others', async () => {
    const { barrier, store } = await unsealedBarrier();
    const storedAt = async (path: string) => (await store.get(path))?.value ?? Buffer.alloc(0);
    await put(barrier, 'transit/key', 'before');
    const [keyring, value] = [await storedAt('core/keyring'), await storedAt('transit/key')];
    await barrier.rotation.rotate();
    await put(barrier, 'transit/key', 'after');
    const reader = barrier.transfer.readerOf(keyring);
    expect(reader.read('transit/key', value).toString()).to.equal('before');
    for (const [path, stored] of [
      ['transit/other', value],
      ['transit/key', await storedAt('transit/key')],
    ] as const)
      expect(() => reader.read(path, stored))
        .to.throw(BarrierError)
        .with.property('code', 'barrier_corrupt');
    reader.close();
    const { barrier: other } = await unsealedBarrier();
    expect(() => other.transfer.readerOf(keyring)).to.throw(BarrierError, 'the root key does not open');
  });

  it('makes a keyring whose new key, and never the old one, encrypts every later value', async () => {
    const { barrier, store } = await unsealedBarrier();
    await put(barrier, 'transit/key', 'before');
    const keyring = await barrier.transfer.keyringForPromotion();
    expect(barrier.rotation.keyStatus().term, 'not before it is committed').to.equal(1);
    await store.commit({ conditions: [], writes: [keyring] });
    await put(barrier, 'transit/other', 'after');
    expect(termOf('', (await store.get('transit/other'))?.value ?? Buffer.alloc(0))).to.equal(2);
    expect(await read(barrier, 'transit/key')).to.equal('before');
  });
});
