import { memoryStore, type Store, StoreError, type Transaction } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { unsealedBarrier, unsealWith } from '../../../barrier/test/fixtures.ts';
import { clusterId, type TestCluster, testCluster } from '../../../cluster/test/credentials.ts';
import { StoredPrimaryCredential } from '../../src/node/primary-credential.ts';
import { credentialPath, decodeCredential, type PrimaryCredential } from '../../src/port/credential.ts';
import { unsealed } from './unsealed.ts';

describe('the stored credential of a secondary', () => {
  let cluster: TestCluster;
  let store: Store;
  let warnings = 0;
  let credential: StoredPrimaryCredential;
  before(async () => {
    cluster = await testCluster();
  });
  beforeEach(() => {
    store = memoryStore();
    warnings = 0;
    const log = { warn: () => (warnings += 1) };
    credential = new StoredPrimaryCredential(unsealed(store), log);
  });
  const issued = async (address: string): Promise<PrimaryCredential> => {
    const { key, certificate, authority } = (await cluster.node(1)).identity;
    return { secondary: 'west', clusterId, addresses: [address], authorities: [authority], key, certificate };
  };
  const stored = async (): Promise<PrimaryCredential> =>
    decodeCredential((await store.get(credentialPath))?.value ?? Buffer.of());
  const nodesAt = (address: string, { authorities }: PrimaryCredential) => ({ addresses: [address], authorities });

  it('keeps both of two changes that are made at the same time', async () => {
    const first = await issued('10.0.0.1:8201');
    await credential.write(first);
    await Promise.all([
      credential.keepNodes(first.certificate, nodesAt('10.0.0.2:8201', first)),
      credential.keepCounted(first.certificate),
    ]);
    expect(await stored()).to.deep.equal({ ...first, addresses: ['10.0.0.2:8201'], isCounted: true });
    expect(credential.present).to.deep.equal(await stored());
  });

  it('is dropped from memory by a seal, until it can be read again', async () => {
    const { barrier, shares } = await unsealedBarrier();
    const first = await issued('10.0.0.1:8201');
    const kept = new StoredPrimaryCredential(barrier, { warn: () => undefined });
    await kept.write(first);
    expect(kept.present).to.deep.equal(first);
    barrier.seal();
    expect(kept.present).to.equal(undefined);
    await unsealWith(barrier, shares.slice(0, 2));
    expect([await kept.read(), kept.present]).to.deep.equal([first, first]);
  });

  it('is not brought back by a read or a write that a seal has overtaken', async () => {
    const { barrier, shares } = await unsealedBarrier();
    const first = await issued('10.0.0.1:8201');
    const { get, commit } = barrier.store;
    const sealing = async <T>(result: Promise<T>): Promise<T> => {
      const value = await result;
      barrier.seal();
      return value;
    };
    Object.assign(barrier.store, { commit: (transaction: Transaction) => sealing(commit(transaction)) });
    const kept = new StoredPrimaryCredential(barrier, { warn: () => undefined });
    await kept.write(first);
    expect(kept.present, 'after the write').to.equal(undefined);
    await unsealWith(barrier, shares.slice(0, 2));
    expect(await kept.read()).to.deep.equal(first);
    Object.assign(barrier.store, { get: (path: string) => sealing(get(path)) });
    expect([await kept.read(), kept.present], 'after the read').to.deep.equal([undefined, undefined]);
  });

  it('stays, with a warning, when it cannot be deleted after the cluster has left the set', async () => {
    const first = await issued('10.0.0.1:8201');
    await credential.write(first);
    store.commit = () => Promise.reject(new StoreError('not_leader', 'another node is active'));
    await credential.forgetIfPossible();
    expect([warnings, credential.present]).to.deep.equal([1, first]);
  });

  it('is gone on each node when one of them has forgotten it', async () => {
    const first = await issued('10.0.0.1:8201');
    const other = new StoredPrimaryCredential(unsealed(store), { warn: () => undefined });
    await credential.write(first);
    expect(await other.read()).to.deep.equal(first);
    await credential.forget();
    expect([await credential.read(), await other.read(), other.present]).to.deep.equal([undefined, undefined, undefined]);
    await other.forget();
    await other.write(first);
    expect(await credential.read(), 'a new one').to.deep.equal(first);
  });

  it('does not change the next credential by what the former primary has said', async () => {
    const [first, second] = [await issued('10.0.0.1:8201'), await issued('10.0.0.9:8201')];
    await credential.write(first);
    const { get } = store;
    store.get = async (path) => {
      const record = await get(path);
      store.get = get;
      await credential.write(second); // another token is used between the read and the write of the change
      return record;
    };
    await credential.keepCounted(first.certificate);
    expect(await stored()).to.deep.equal(second);
    await credential.keepNodes(first.certificate, nodesAt('10.0.0.2:8201', first));
    expect(await stored()).to.deep.equal(second);
    expect(credential.present).to.deep.equal(second);
    expect(warnings).to.equal(0);
  });

  it('reports a credential or a key that was not stored', async () => {
    const first = await issued('10.0.0.1:8201');
    store.commit = async () => ({ outcome: 'conflict', index: 1, revision: 1 });
    const attempts = [credential.write(first), credential.makeTokenKey()];
    for (const attempt of attempts) expect(await attempt.catch((error: Error) => error)).to.include({ code: 'busy' });
    expect(credential.present).to.equal(undefined);
  });

  it('keeps a key for tokens that was made while the one before was used', async () => {
    await credential.makeTokenKey();
    const { get } = store;
    store.get = async (path) => {
      const record = await get(path);
      store.get = get;
      await credential.makeTokenKey();
      return record;
    };
    await credential.dropTokenKey();
    expect(await store.get('core/replication/token-key')).to.not.equal(undefined);
    await credential.dropTokenKey();
    expect(await store.get('core/replication/token-key')).to.equal(undefined);
  });
});
