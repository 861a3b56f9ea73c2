import { memoryStore, type Store, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { managedKeysOf } from '../../src/mounts/managed-keys.ts';
import type { MountedEngines } from '../../src/mounts/mounted-engines.ts';
import {
  MountError,
  newMount,
  readMounts,
  recordsOf,
  removedPrefix,
  sweepRemovedMounts,
  writtenMounts,
} from '../../src/mounts/mounts.ts';
import { follow, mounted } from './mounted.ts';

const transit = (path: string) => ({ path, type: 'transit' });
const pathsOf = ({ list, engines }: MountedEngines) => {
  expect([...engines.keys()]).to.deep.equal(list.map(({ path }) => path));
  return list.map(({ path }) => path);
};
const request = { plaintext: Buffer.from('x').toString('base64'), mayCreate: false, mayUpdate: true };
const errorOf = (outcome: Promise<unknown>): Promise<unknown> =>
  outcome.then(
    () => undefined,
    (error: unknown) => error,
  );

/** A store whose reads wait for `held`, if it is set. */
function holdable(store: Store): Store & { held: PromiseWithResolvers<void> | undefined } {
  return {
    held: undefined,
    async get(path) {
      await this.held?.promise;
      return store.get(path);
    },
    range: (query) => store.range(query),
    paths: (query) => store.paths(query),
    commit: (transaction) => store.commit(transaction),
    watch: (prefix, listener) => store.watch(prefix, listener),
  };
}

describe('mounted engines', () => {
  for (const reportsEverything of [false, true]) {
    it(`are the same on every node after each change (reportsEverything: ${reportsEverything})`, async () => {
      const store = memoryStore({ reportsEverything });
      const { mounts: active } = await mounted(store, 'transit');
      const standby = await follow(store);
      const agree = async (paths: readonly string[]) => {
        await standby.changing;
        expect(pathsOf(active)).to.deep.equal(paths);
        expect(pathsOf(standby)).to.deep.equal(paths);
      };
      await active.enable(transit('team/transit'));
      await agree(['transit', 'team/transit']);
      await active.remount({ from: 'team/transit', to: 'moved' });
      await agree(['transit', 'moved']);
      await active.tune('moved', { ciphertextPrefix: 'vault' });
      await active.engines.get('moved')?.createKey('k', {});
      await standby.changing;
      for (const node of [active, standby]) {
        const reply = await node.engines.get('moved')?.ciphertexts.encrypt('k', request);
        expect(JSON.stringify(reply)).to.contain('"vault:v1:');
      }
      await active.disable('transit');
      await agree(['moved']);
      await active.disable('transit');
      await agree(['moved']);
    });
  }

  it('close a mount in the apply of its removal, while the others continue', async () => {
    const store = memoryStore();
    const { mounts: active } = await mounted(store, 'gone', 'stays');
    const held = holdable(store);
    const standby = await follow(held);
    const [gone, stays] = [standby.engines.get('gone'), standby.engines.get('stays')];
    await gone?.createKey('k', {});
    held.held = Promise.withResolvers();
    await active.disable('gone');
    expect(standby.changing, 'the rest is still read').not.to.equal(undefined);
    expect(pathsOf(standby)).to.deep.equal(['stays']);
    held.held.resolve();
    held.held = undefined;
    expect(await errorOf(gone?.ciphertexts.encrypt('k', request) ?? Promise.resolve()))
      .to.be.instanceOf(MountError)
      .with.property('code', 'mount_removed');
    await standby.changing;
    expect(standby.engines.get('stays')).to.equal(stays);
    await stays?.createKey('k', {});
  });

  it('write nothing for a removed mount, whether or not the node knows of the removal', async () => {
    const store = memoryStore();
    const { mounts } = await mounted(store, 'gone');
    const [engine, id] = [mounts.engines.get('gone'), mounts.list[0]?.id ?? ''];
    // A commit that is proposed before the removal and ordered after it.
    const { commit } = store;
    let isOrderedAfter = false;
    store.commit = async (transaction) => {
      store.commit = commit;
      await mounts.disable('gone');
      isOrderedAfter = true;
      return commit(transaction);
    };
    for (const way of ['not known', 'known', 'swept']) {
      if (way === 'swept') await sweepRemovedMounts(store, 10);
      const error = await errorOf(engine?.createKey('k', {}) ?? Promise.resolve());
      expect(error, way).to.be.instanceOf(MountError).with.property('code', 'mount_removed');
    }
    expect(isOrderedAfter).to.equal(true);
    expect((await store.range({ prefix: removedPrefix })).records).to.deep.equal([]);
    expect((await store.range({ prefix: recordsOf(id) })).records).to.deep.equal([]);
  });

  it('decide concurrent changes one after the other', async () => {
    const store = memoryStore();
    const { mounts } = await mounted(store);
    const other = await follow(store);
    const outcomes = await Promise.all([
      errorOf(mounts.enable(transit('a'))),
      errorOf(other.enable(transit('b'))),
      errorOf(mounts.enable(transit('c'))),
      errorOf(other.enable(transit('a/b'))),
    ]);
    expect(outcomes.slice(0, 3)).to.deep.equal([undefined, undefined, undefined]);
    expect(outcomes[3]).to.have.property('message', 'path is already in use at a/');
    await mounts.changing;
    expect(pathsOf(mounts).toSorted()).to.deep.equal(['a', 'b', 'c']);
  });

  it('fail with too_many_conflicts after five attempts', async () => {
    const store = memoryStore();
    const { mounts } = await mounted(store, 'a');
    let proposed = 0;
    store.commit = async () => {
      proposed += 1;
      return { outcome: 'conflict', index: 1, revision: 1 };
    };
    expect(await errorOf(mounts.enable(transit('b')))).to.have.property('code', 'too_many_conflicts');
    expect(proposed).to.equal(5);
  });

  it('close and report a failure when the changed record cannot be read', async () => {
    const store = memoryStore();
    (await mounted(store, 'a')).mounts.close();
    const failures: unknown[] = [];
    const mounts = await follow(store, { onFailure: (error) => failures.push(error) });
    await store.commit({
      conditions: [],
      writes: [{ path: 'core/mounts', value: Buffer.from('{"format":2,"mounts":[],"moves":[]}') }],
    });
    await mounts.changing;
    expect(failures.map(String)).to.deep.equal(['Error: the record core/mounts has an unknown format']);
    expect(pathsOf(mounts)).to.deep.equal([]);
    expect(() => mounts.under(['a']), 'paths do not look unknown').to.throw(StoreError, 'sealed');
  });

  it('include changes that arrive while they are opened, each mount once', async () => {
    const store = memoryStore();
    const { mounts } = await mounted(store, 'a');
    const held = holdable(store);
    held.held = Promise.withResolvers();
    let opened = 0;
    const opening = follow(held, {
      managedKeysFor: () => {
        opened += 1;
        return managedKeysOf(store, []).forMount(() => []);
      },
    });
    await mounts.remount({ from: 'a', to: 'b' });
    await mounts.enable(transit('c'));
    held.held.resolve();
    expect(pathsOf(await opening)).to.deep.equal(['b', 'c']);
    expect(opened, 'one engine for each mount').to.equal(2);
  });

  it('let a mount use only the managed keys that it may use at the moment', async () => {
    const store = memoryStore();
    await mounted(store, 'a');
    const allowedOf: (() => readonly string[])[] = [];
    const mounts = await follow(store, {
      managedKeysFor: (allowed) => {
        allowedOf.push(allowed);
        return managedKeysOf(store, []).forMount(allowed);
      },
    });
    expect(allowedOf[0]?.()).to.deep.equal([]);
    await mounts.tune('a', { allowedManagedKeys: ['hsm'] });
    expect(allowedOf[0]?.()).to.deep.equal(['hsm']);
    await mounts.tune('a', { allowedManagedKeys: [] });
    expect(allowedOf[0]?.()).to.deep.equal([]);
  });

  it('refuse requests with sealed after they were closed', async () => {
    const store = memoryStore();
    const { mounts } = await mounted(store, 'a');
    const engine = mounts.engines.get('a');
    await engine?.createKey('k', {});
    mounts.close();
    expect(pathsOf(mounts)).to.deep.equal([]);
    expect(await errorOf(engine?.ciphertexts.encrypt('k', request) ?? Promise.resolve()))
      .to.be.instanceOf(StoreError)
      .with.property('code', 'sealed');
    await store.commit({ conditions: [], writes: [writtenMounts({ mounts: [newMount('b', 'svc')], moves: [] })] });
    expect(mounts.changing).to.equal(undefined);
  });
});

describe('the mount of a path', () => {
  for (const { path, expected } of [
    { path: 'transit/encrypt/k', expected: { path: 'transit', depth: 1 } },
    { path: 'transit', expected: { path: 'transit', depth: 1 } },
    { path: 'team/a/transit/encrypt/k', expected: { path: 'team/a/transit', depth: 3 } },
    { path: 'team/a/transit', expected: { path: 'team/a/transit', depth: 3 } },
    { path: 'team/a', expected: undefined },
    { path: 'team/a/transi', expected: undefined },
    { path: 'sys/mounts', expected: undefined },
    { path: 'undefined', expected: undefined },
  ]) {
    it(`${path}: ${expected?.path ?? 'none'}`, async () => {
      const { mounts } = await mounted(memoryStore(), 'transit', 'team/a/transit');
      expect(mounts.under(path.split('/'))).to.deep.equal(expected);
    });
  }
});

describe('sweeping removed mounts', () => {
  it('deletes all records of these mounts and nothing else, in steps of the limit', async () => {
    const store = memoryStore();
    const { mounts } = await mounted(store, 'gone', 'also', 'stays');
    for (const engine of mounts.engines.values()) for (const name of ['k', 'l', 'm']) await engine.createKey(name, {});
    const [gone = '', also = '', stays = ''] = mounts.list.map(({ id }) => id);
    const recordsBelow = async (prefix: string) => (await store.range({ prefix })).records.length;
    const kept = await recordsBelow(recordsOf(stays));
    await mounts.disable('gone');
    await mounts.disable('also');
    expect(await recordsBelow(recordsOf(gone))).to.equal(6);
    const steps: number[] = [];
    for (let finished = false; !finished; ) {
      const step = await sweepRemovedMounts(store, 4);
      steps.push(step.removed);
      ({ finished } = step);
    }
    expect(steps).to.deep.equal([4, 2, 4, 2, 0]);
    for (const prefix of [recordsOf(gone), recordsOf(also), removedPrefix]) expect(await recordsBelow(prefix)).to.equal(0);
    expect(await recordsBelow(recordsOf(stays))).to.equal(kept);
    expect((await readMounts(store)).table.mounts.map(({ path }) => path)).to.deep.equal(['stays']);
    await mounts.changing;
    expect(pathsOf(mounts)).to.deep.equal(['stays']);
  });
});
