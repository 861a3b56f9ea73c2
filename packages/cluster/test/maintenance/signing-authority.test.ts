import { memoryStore, type Store, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { keepAuthority } from '../../src/maintenance/signing-authority.ts';
import {
  authorityPath,
  authorityRecord,
  makeAuthority,
  nextAuthorityPath,
  readAuthority,
} from '../../src/membership/authority.ts';
import { clusterId } from '../join/join-fixtures.ts';

const failureOf = (attempt: Promise<unknown>): Promise<unknown> =>
  attempt.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('the authority of a cluster after a restore', () => {
  it('is written again when its record cannot be read, but only by a caller that has its key', async () => {
    const [local, other] = [await makeAuthority(clusterId, new Date()), await makeAuthority(clusterId, new Date())];
    const store = memoryStore();
    const unreadable = [authorityPath, nextAuthorityPath].map((path) => ({ path, value: Buffer.from('unreadable') }));
    await store.commit({ conditions: [], writes: unreadable });
    for (const wrong of [
      other,
      { ...local, key: other.key },
      { ...local, certificate: other.certificate },
      { key: '', certificate: '' },
    ])
      expect(await failureOf(keepAuthority(store, local.certificate, wrong))).to.have.property('code', 'invalid_request');
    await keepAuthority(store, local.certificate, local);
    expect(await readAuthority(store)).to.deep.equal(local);
    expect(await store.get(nextAuthorityPath), 'the announced authority').to.equal(undefined);
  });

  it('stays as it is when it can be read', async () => {
    const local = await makeAuthority(clusterId, new Date());
    const store = memoryStore();
    await store.commit({ conditions: [], writes: [authorityRecord(local)] });
    const before = (await store.get(authorityPath))?.revision;
    await keepAuthority(store, local.certificate, local);
    expect((await store.get(authorityPath))?.revision).to.equal(before);
  });

  it('does not count as unreadable on a node that can read nothing', async () => {
    const local = await makeAuthority(clusterId, new Date());
    const store = { get: () => Promise.reject(new StoreError('sealed', 'sealed')) } as unknown as Store;
    expect(await failureOf(keepAuthority(store, local.certificate, local))).to.have.property('code', 'sealed');
  });
});
