import { randomBytes } from 'node:crypto';
import { memoryStore, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { openJoinSecret, ProviderError, type SealConfig } from '../../src/index.ts';
import { sealRecordPaths } from '../../src/seal/require-openable.ts';
import { faultyStore } from '../faulty-store.ts';
import { codeOf, everything, messageOf, openBarrier, put, read } from '../fixtures.ts';
import { FakeProvider } from './fake-provider.ts';

const away = new ProviderError('unreachable', 'it does not answer');
const none = Buffer.alloc(0);

async function initialized(provider = new FakeProvider(), store = memoryStore()) {
  const seal: SealConfig = { type: 'transit', provider };
  const barrier = await openBarrier(store, { seal });
  const { kind, shares } = await barrier.initialize({ recoveryShares: 3, recoveryThreshold: 2 }, []);
  await put(barrier, 'a', 'kept');
  return { provider, store, seal, barrier, kind, shares };
}
const recordOf = async (store: ReturnType<typeof memoryStore>): Promise<Record<string, unknown>> =>
  JSON.parse(Buffer.from((await store.get('core/seal'))?.value ?? none).toString());

describe('a seal with a provider', () => {
  it('is unsealed once it is initialized, and its shares are recovery shares', async () => {
    const { barrier, kind, store } = await initialized();
    expect(kind).to.equal('recovery');
    expect(barrier.sealStatus).to.deep.include({ type: 'transit', sealed: false, t: 2, n: 3, recoverySeal: true });
    expect(await recordOf(store)).to.include({ type: 'transit', keyId: 'fake:v1' });
  });

  it('unseals automatically after a restart', async () => {
    const { store, seal } = await initialized();
    const again = await openBarrier(store, { seal });
    expect(again.state.sealed).to.equal(true);
    await again.autoUnseal();
    expect(await read(again, 'a')).to.equal('kept');
  });

  it('stores neither the root key nor the key that wraps it in plaintext', async () => {
    const provider = new FakeProvider();
    const seen: Buffer[] = [];
    provider.change = (key) => {
      seen.push(Buffer.from(key));
      return key;
    };
    const { store } = await initialized(provider);
    expect(seen).to.have.lengthOf(1);
    for (const value of (await everything(store)).values())
      for (const key of seen)
        for (const encoding of ['latin1', 'hex', 'base64'] as const)
          expect(value.toString('latin1')).to.not.include(key.toString(encoding));
  });

  it('does not initialize while the provider is away, and nothing is written', async () => {
    const provider = new FakeProvider();
    provider.failure = away;
    const store = memoryStore();
    const barrier = await openBarrier(store, { seal: { type: 'transit', provider } });
    const initialize = () => barrier.initialize({ recoveryShares: 1, recoveryThreshold: 1 }, []);
    expect(await codeOf(initialize())).to.equal('seal_unavailable');
    expect((await everything(store)).size).to.equal(0);
    provider.failure = undefined;
    expect((await initialize()).shares).to.have.lengthOf(1);
  });

  for (const [what, change, says] of [
    ['another key', () => randomBytes(32), /does not decrypt to the key/],
    ['a short key', () => randomBytes(31), /does not have 32 bytes/],
  ] as const)
    it(`does not initialize if the provider decrypts to ${what}: nobody could unseal`, async () => {
      const provider = new FakeProvider();
      provider.change = change;
      const store = memoryStore();
      const barrier = await openBarrier(store, { seal: { type: 'transit', provider } });
      expect(await messageOf(barrier.initialize({ recoveryShares: 1, recoveryThreshold: 1 }, []))).to.match(says);
      expect((await everything(store)).size).to.equal(0);
    });

  it('stays sealed while the provider is away, and unseals later', async () => {
    const { store, seal, provider } = await initialized();
    const again = await openBarrier(store, { seal });
    provider.failure = away;
    expect(await codeOf(again.autoUnseal())).to.equal('seal_unavailable');
    expect(again.state.sealed).to.equal(true);
    provider.failure = undefined;
    await again.autoUnseal();
    expect(again.state.sealed).to.equal(false);
  });

  it('stays sealed if the provider returns another key', async () => {
    const { store, seal, provider } = await initialized();
    provider.change = () => randomBytes(32);
    const again = await openBarrier(store, { seal });
    expect(await messageOf(again.autoUnseal())).to.match(/^the seal key "fake:v1" does not open the record core\/seal/);
    expect(again.state.sealed).to.equal(true);
  });

  it('stays sealed when it is sealed while the provider decrypts', async () => {
    const { store, seal, provider } = await initialized();
    const again = await openBarrier(store, { seal });
    provider.beforeUnwrap = () => again.seal();
    expect(await codeOf(again.autoUnseal())).to.equal('sealed');
    expect(again.state.sealed).to.equal(true);
  });

  it('unseals by the new record if the seal changes while the provider decrypts', async () => {
    const { store, seal, provider, barrier } = await initialized();
    const again = await openBarrier(store, { seal });
    provider.rotate();
    await provider.wrap(randomBytes(32));
    const rewrapping: Promise<unknown>[] = [];
    provider.beforeUnwrap = () => {
      provider.beforeUnwrap = undefined;
      rewrapping.push(barrier.maintain());
    };
    await again.autoUnseal();
    await Promise.all(rewrapping);
    expect(await read(again, 'a')).to.equal('kept');
    expect(await recordOf(store)).to.include({ keyId: 'fake:v2' });
  });

  it('does not need the provider while it is unsealed', async () => {
    const { barrier, provider } = await initialized();
    provider.failure = away;
    const { calls } = provider;
    await put(barrier, 'b', 'written');
    expect(await barrier.maintain()).to.deep.equal({ migrated: false, rewrapped: false, rotated: false });
    await barrier.wrapForJoin(randomBytes(32));
    expect(provider.calls).to.equal(calls);
  });

  it('is rewrapped once the provider has used a newer version of its key', async () => {
    const { barrier, provider, store, seal } = await initialized();
    provider.rotate();
    expect(await barrier.maintain()).to.deep.include({ rewrapped: false }); // nobody has seen the new version yet
    await provider.wrap(randomBytes(32));
    expect(await barrier.maintain()).to.deep.include({ rewrapped: true });
    expect(await barrier.maintain()).to.deep.include({ rewrapped: false });
    expect(await recordOf(store)).to.include({ keyId: 'fake:v2' });
    const again = await openBarrier(store, { seal });
    await again.autoUnseal();
    expect(await read(again, 'a')).to.equal('kept');
  });

  it('is not rewrapped by a node that cannot write, and stays as it was', async () => {
    const { provider, store } = await initialized();
    const faulty = faultyStore(store);
    const barrier = await openBarrier(faulty, { seal: { type: 'transit', provider } });
    await barrier.autoUnseal();
    provider.rotate();
    await provider.wrap(randomBytes(32));
    faulty.beforeCommit = () => Promise.reject(new StoreError('not_leader', 'a follower'));
    expect(await codeOf(barrier.maintain())).to.equal('not_leader');
    expect(await recordOf(store)).to.include({ keyId: 'fake:v1' });
  });

  it('rekeys by recovery shares: new shares, a new root key and a new key at the provider', async () => {
    const { barrier, shares, store, seal } = await initialized();
    const before = await recordOf(store);
    const { nonce } = await barrier.rekey.start({ shares: 2, threshold: 2, requireVerification: false });
    await barrier.rekey.update({ nonce, share: shares[0] ?? none });
    const step = await barrier.rekey.update({ nonce, share: shares[1] ?? none });
    expect(step).to.include({ complete: true, inForce: true });
    const after = await recordOf(store);
    expect(after['wrappedKey']).to.not.equal(before['wrappedKey']);
    expect(after['shareHashes']).to.not.deep.equal(before['shareHashes']);
    const again = await openBarrier(store, { seal });
    await again.autoUnseal();
    expect(await read(again, 'a')).to.equal('kept');
  });

  it('keeps a rekey going when the provider is away at its last share: the share may be given again', async () => {
    const { barrier, provider, shares } = await initialized();
    const { nonce } = await barrier.rekey.start({ shares: 2, threshold: 2, requireVerification: false });
    await barrier.rekey.update({ nonce, share: shares[0] ?? none });
    provider.failure = away;
    const last = () => barrier.rekey.update({ nonce, share: shares[1] ?? none });
    expect(await codeOf(last())).to.equal('seal_unavailable');
    provider.failure = undefined;
    expect(await last()).to.include({ complete: true, inForce: true });
  });

  it('generates a root token by recovery shares without the provider', async () => {
    const { barrier, provider, shares } = await initialized();
    provider.failure = away;
    const { nonce } = await barrier.rootGeneration.start(Buffer.from('abcd'));
    const token = async () => 'wxyz';
    await barrier.rootGeneration.update({ nonce, share: shares[0] ?? none }, token);
    expect(await barrier.rootGeneration.update({ nonce, share: shares[2] ?? none }, token)).to.include({ complete: true });
  });

  it('lets a node join that the provider serves, and no other', async () => {
    const { barrier, provider, seal } = await initialized();
    const exchanged = randomBytes(32);
    const { secret, ...wrapped } = await barrier.wrapForJoin(exchanged);
    expect(wrapped.terms).to.include({ type: 'transit', keyId: 'fake:v1' });
    if (seal.type !== 'transit') throw new Error('the seal has a provider');
    expect(await openJoinSecret(seal, { ...wrapped, exchanged })).to.deep.equal(secret);
    const stranger: SealConfig = { type: 'transit', provider: new FakeProvider() };
    expect(await codeOf(openJoinSecret(stranger, { ...wrapped, exchanged }))).to.equal('seal_unavailable');
    provider.change = () => randomBytes(32);
    expect(await codeOf(openJoinSecret(seal, { ...wrapped, exchanged }))).to.equal('join_secret');
  });

  it('opens a snapshot that it sealed, and no other one', async () => {
    const { barrier, store, provider } = await initialized();
    const recordsIn = async (one: typeof store) =>
      new Map([...(await everything(one))].filter(([path]) => sealRecordPaths.some((own) => own === path)));
    await barrier.requireOpenable(await recordsIn(store));
    const other = await initialized();
    expect(await codeOf(barrier.requireOpenable(await recordsIn(other.store)))).to.equal('seal_unavailable');
    provider.failure = away;
    expect(await codeOf(barrier.requireOpenable(await recordsIn(store)))).to.equal('seal_unavailable');
  });

  it('refuses a record whose wrapped key is missing, malformed or too long', async () => {
    const { store, seal } = await initialized();
    const record = await recordOf(store);
    for (const wrappedKey of [undefined, '', 'a b', 'a'.repeat(4097), 7, null]) {
      const value = Buffer.from(JSON.stringify({ ...record, wrappedKey }));
      await store.commit({ conditions: [], writes: [{ path: 'core/seal', value }] });
      expect(await codeOf(openBarrier(store, { seal }))).to.equal('barrier_corrupt');
    }
  });

  it('refuses a record whose wrapped key or key id was exchanged', async () => {
    const { store, seal, provider } = await initialized();
    const record = await recordOf(store);
    const { ciphertext } = await provider.wrap(randomBytes(32));
    for (const change of [{ wrappedKey: ciphertext }, { keyId: 'fake:v9' }, { threshold: 3 }]) {
      const value = Buffer.from(JSON.stringify({ ...record, ...change }));
      await store.commit({ conditions: [], writes: [{ path: 'core/seal', value }] });
      expect(await codeOf((await openBarrier(store, { seal })).autoUnseal())).to.equal('barrier_corrupt');
    }
  });
});
