import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BarrierError } from '@transitd/barrier';
import { parseConfig } from '@transitd/configuration';
import { StartError } from '@transitd/process';
import { StorageInUse, StoreError, supportedLevels } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { pino } from 'pino';
import { until } from '../../process/test/until.ts';
import { laterRelease } from '../../storage-fsm/test/level/later-release.ts';
import { mountsPath, recordsOf } from '../src/mounts/mounts.ts';
import { Node } from '../src/node.ts';

describe('a node', () => {
  let folder = '';
  const nodes: Node[] = [];
  const warnings: { readonly msg: string; readonly task?: string; readonly mount?: string }[] = [];
  beforeEach(() => {
    warnings.length = 0;
    folder = mkdtempSync(join(tmpdir(), 'transitd-node-'));
    for (const [name, byte] of [
      ['a', 1],
      ['b', 2],
    ] as const)
      writeFileSync(join(folder, name), Buffer.alloc(32, byte), { mode: 0o600 });
  });
  const stopAll = async (): Promise<void> => {
    for (const node of nodes.splice(0)) await node.stop();
  };
  afterEach(async () => {
    await stopAll();
    rmSync(folder, { recursive: true });
  });

  const staticSeal = (key_id: string, file = 'a') => ({ type: 'static', key_id, key_file: join(folder, file) });
  const open = async (seal: object = staticSeal('one'), data_dir = join(folder, 'data'), more: object = {}): Promise<Node> => {
    const config = parseConfig({
      node_id: 'n1',
      data_dir,
      listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
      seal,
      ...more,
    });
    const node = await Node.open({
      config,
      log: pino({ level: 'warn' }, { write: (line) => void warnings.push(JSON.parse(line)) }),
      onFatal: (error) => {
        throw error;
      },
    });
    nodes.push(node);
    return node;
  };
  const errorOf = (outcome: Promise<unknown>): Promise<unknown> =>
    outcome.then(
      () => undefined,
      (error: unknown) => error,
    );
  const one = { recoveryShares: 1, recoveryThreshold: 1 };

  const keyWarnings = () =>
    warnings.flatMap(({ task, mount }) => (task === 'create the wrapping key of a mount for imports' ? [mount] : []));

  it('creates nothing when it refuses to initialize', async () => {
    const node = await open();
    expect(await errorOf(node.initialize({ recoveryShares: 1, recoveryThreshold: 2 }))).to.be.instanceOf(BarrierError);
    expect(node.member).to.equal(undefined);
    expect(readdirSync(join(folder, 'data'))).to.deep.equal(['lock']);
    await node.initialize(one);
    expect(node.active).to.equal(true);
  });

  it('warns at its start of a reserve that is capped, with both figures', async () => {
    const node = await open(staticSeal('one'), join(folder, 'data'), { raft: { disk_reserve: '4096TiB' } });
    await node.initialize(one);
    const { blocks, bsize } = statfsSync(folder);
    const warning = warnings.find(({ msg }) => msg.startsWith('raft.disk_reserve'));
    expect(warning).to.include({ configured: 2 ** 52, reserve: Math.floor(0.05 * blocks * bsize) });
    warnings.length = 0;
    await (await open(staticSeal('one'), join(folder, 'other'))).initialize(one);
    expect(warnings).to.deep.equal([]);
  });

  it('raises the feature level when it creates a cluster, but not when an initialized one is asked to initialize', async () => {
    const { newest } = supportedLevels;
    laterRelease(newest + 1);
    try {
      const node = await open();
      await node.initialize(one);
      expect(node.member?.featureLevel?.status.level).to.equal(newest + 1);
      laterRelease(newest + 2);
      expect(await errorOf(node.initialize(one))).to.have.property('code', 'already_initialized');
      expect(node.member?.featureLevel?.status).to.include({ level: newest + 1, highest: newest + 2 });
    } finally {
      await stopAll(); // a node may write until it has stopped
      laterRelease();
    }
  });

  it('deletes invalid tokens in steps, and runs every maintenance task although others fail', async () => {
    const node = await open();
    const { rootToken } = await node.initialize(one);
    const { tokens, registry, mounts } = node.services ?? {};
    const principal = await tokens?.authenticate(rootToken);
    if (node.member === undefined || registry === undefined || principal === undefined) throw new Error('not serving');
    const sweeps: number[] = [];
    registry.sweep = async (limit) => {
      const removed = sweeps.length === 0 ? limit : 1;
      sweeps.push(removed);
      return { removed, unreadable: 0 };
    };
    const done: string[] = [];
    const { disputedDates } = node.services ?? {};
    if (disputedDates === undefined) throw new Error('not serving');
    let corrections = 0;
    disputedDates.correct = async (limit) => {
      if (corrections === 0) done.push('first correction');
      corrections += limit;
      return limit;
    };
    const no = () => Promise.reject(new Error('no'));
    node.member.barrier.maintain = no;
    for (const engine of mounts?.engines.values() ?? []) {
      engine.rotateDue = no;
      engine.sweep = (limit) => {
        done.push(`sweep of ${limit}`);
        return no();
      };
    }
    await node.maintenance.runActiveTasks();
    expect(sweeps).to.deep.equal([500, 1]);
    expect(done, 'although earlier tasks failed').to.deep.equal(['sweep of 500', 'first correction']);
    expect(corrections, 'corrections of one round, of any number').to.equal(5000);
  });

  it('deletes the records of many deleted keys and logins in one round, however fast they are made', async () => {
    const node = await open();
    await node.initialize(one);
    node.maintenance.stop(); // its own rounds would do the same
    const engine = node.services?.mounts.engines.get('transit');
    const { barrier } = node.member ?? {};
    const logins = node.services?.logins;
    if (engine === undefined || barrier === undefined || logins === undefined) throw new Error('not serving');
    const names = Array.from({ length: 300 }, (_, i) => `k-${i}`);
    await Promise.all(names.map((name) => engine.createKey(name, {})));
    await Promise.all(names.map((name) => engine.configureKey(name, { deletionAllowed: true })));
    await Promise.all(names.map((name) => engine.deleteKey(name)));
    const value = Buffer.from('of an auth method that was disabled');
    const writes = Array.from({ length: 1100 }, (_, i) => ({ path: `access/login/gone/secret/role/${i}`, value }));
    await barrier.store.commit({ conditions: [], writes });
    await node.maintenance.runActiveTasks();
    expect(await logins.sweep(10_000), 'records of logins that were left').to.equal(0);
    expect(await engine.sweep(10_000), 'versions that were left').to.include({ removed: 0 });
    const deleted: number[] = [];
    engine.sweep = async (limit) => {
      deleted.push(limit);
      return { removed: limit, finished: false };
    };
    await node.maintenance.runActiveTasks();
    expect(
      deleted.reduce((sum, each) => sum + each, 0),
      'deleted in a round, of any number',
    ).to.equal(5000);
  });

  it('creates the wrapping key of every mount before a request for it, although one of them fails', async () => {
    const node = await open();
    await node.maintenance.createWrappingKeys(); // does nothing before the node is initialized
    await node.initialize(one);
    await node.services?.mounts.enable({ path: 'team/a', type: 'transit' });
    const [first, second] = [...(node.services?.mounts.engines.values() ?? [])];
    if (node.member === undefined || first === undefined || second === undefined) throw new Error('not serving');
    first.transfers.wrappingKey = () => Promise.reject(new Error('no'));
    const { store } = node.member.barrier;
    const count = async (): Promise<number> =>
      (await store.range({ prefix: '' })).records.filter(({ path }) => path.endsWith('wrapping-key')).length;
    expect(await count()).to.equal(0);
    await node.maintenance.createWrappingKeys();
    expect(await count()).to.equal(1);
    expect(keyWarnings()).to.deep.equal(['transit']);
  });

  for (const [what, lose] of [
    [
      'has lost the lead',
      async (node: Node) => void Object.defineProperty(node.requireMember().role, 'isActive', { value: false }),
    ],
    ['is sealed', (node: Node) => node.seal()],
    [
      'was sealed and serves again',
      async (node: Node) => {
        node.requireMember().barrier.seal();
        await until(() => node.services === undefined);
        await until(() => node.services !== undefined);
      },
    ],
  ] as const)
    it(`creates no wrapping key of a further mount when it ${what} while it made the first one`, async () => {
      const node = await open();
      await node.initialize(one);
      await node.services?.mounts.enable({ path: 'team/a', type: 'transit' });
      const made: string[] = [];
      for (const [path, { transfers }] of node.services?.mounts.engines ?? [])
        transfers.wrappingKey = async () => {
          made.push(path);
          await lose(node);
          throw new Error('refused');
        };
      await node.maintenance.createWrappingKeys();
      expect(made).to.deep.equal(['transit']);
      expect(keyWarnings()).to.deep.equal(['transit']);
    });

  it('has the same mounts after a restart, and deletes the records of removed ones', async () => {
    const first = await open();
    await first.initialize(one);
    const transit = { type: 'transit' };
    await first.services?.mounts.enable({ path: 'team/a', ...transit });
    await first.services?.mounts.enable({ path: 'gone', ...transit });
    await first.services?.mounts.engines.get('gone')?.createKey('k', {});
    const id = first.services?.mounts.list.at(-1)?.id ?? '';
    await first.services?.mounts.disable('gone');
    await first.stop();
    const node = await open();
    expect([...(node.services?.mounts.engines.keys() ?? [])]).to.deep.equal(['transit', 'team/a']);
    const records = async () => (await node.member?.barrier.store.range({ prefix: recordsOf(id) }))?.records.length;
    expect(await records()).to.be.greaterThan(0);
    await node.maintenance.runActiveTasks();
    expect(await records()).to.equal(0);
  });

  it('seals itself when it cannot read the changed mounts', async () => {
    const node = await open();
    await node.initialize(one);
    const { barrier } = node.member ?? {};
    await barrier?.store.commit({ conditions: [], writes: [{ path: mountsPath, value: Buffer.from('{"format":9}') }] });
    while (node.services !== undefined) await new Promise((resolve) => setImmediate(resolve));
    expect(barrier?.state.sealed).to.equal(true);
  });

  it('locks its data directory before it is initialized', async () => {
    const first = await open();
    expect(await errorOf(open())).to.be.instanceOf(StorageInUse);
    await first.initialize(one);
    expect(await errorOf(open())).to.be.instanceOf(StorageInUse);
    await first.stop();
    expect((await open()).initialized).to.equal(true);
  });

  it('ends an initialization when it is stopped, and can be initialized after a restart', async () => {
    const node = await open();
    const overtaken = errorOf(node.initialize(one));
    await node.stop();
    const error = await overtaken;
    expect(error).to.be.instanceOf(StoreError).with.property('code', 'stopped');
    const again = await open();
    expect(again.initialized).to.equal(false);
    await again.initialize(one);
    expect(again.active).to.equal(true);
  });

  for (const { what, made, opened, says } of [
    { what: 'another static key', made: staticSeal, opened: () => staticSeal('one', 'b'), says: /does not open the record/ },
    { what: 'another key id', made: staticSeal, opened: () => staticSeal('two'), says: /no seal key with the id "one"/ },
    { what: 'a shamir seal on static data', made: staticSeal, opened: () => ({ type: 'shamir' }), says: /type static/ },
    { what: 'a static seal on shamir data', made: () => ({ type: 'shamir' }), opened: staticSeal, says: /type shamir/ },
    {
      what: 'the same id for the present and the previous key',
      made: staticSeal,
      opened: () => ({ ...staticSeal('one'), previous: { key_id: 'one', key_file: join(folder, 'b') } }),
      says: /id of its own/,
    },
  ]) {
    it(`does not start with ${what}, and unlocks the directory`, async () => {
      const seal = made('one');
      const node = await open(seal);
      await node.initialize(seal.type === 'static' ? one : { secretShares: 1, secretThreshold: 1 });
      await node.stop();
      expect(await errorOf(open(opened('one'))))
        .to.be.instanceOf(StartError)
        .with.property('message')
        .that.matches(says);
      expect((await open(seal)).initialized).to.equal(true);
    });
  }

  for (const { what, mode } of [
    { what: 'data', mode: 0o750 },
    { what: 'data/node.state', mode: 0o640 },
    { what: 'a', mode: 0o620 },
  ]) {
    it(`does not start when users other than the owner can access ${what} (mode ${mode.toString(8)})`, async () => {
      const node = await open();
      await node.initialize(one);
      await node.stop();
      chmodSync(join(folder, what), mode);
      const error = await errorOf(open());
      expect(error)
        .to.be.instanceOf(StartError)
        .with.property('message')
        .that.matches(/users other than its owner/);
    });
  }

  for (const { what, path } of [
    { what: 'a file', path: 'a' },
    { what: 'below a file', path: 'a/data' },
  ]) {
    it(`reports that data_dir is ${what}`, async () => {
      mkdirSync(join(folder, 'elsewhere'));
      writeFileSync(join(folder, 'elsewhere/key'), Buffer.alloc(32, 1), { mode: 0o600 });
      const error = await errorOf(open(staticSeal('one', 'elsewhere/key'), join(folder, path)));
      expect(error)
        .to.be.instanceOf(StartError)
        .with.property('message')
        .that.matches(/data_dir/);
    });
  }

  it('is not active and gives up leadership when its records differ from the cluster’s', async () => {
    const node = await open(staticSeal('one'), join(folder, 'data'), {
      cluster_addr: '127.0.0.1:1',
      cluster_listen: '127.0.0.1:0',
    });
    node.listeningAt('http://127.0.0.1:8200');
    await node.initialize(one);
    await node.member?.barrier.rootGeneration.start(Buffer.alloc(26, 1));
    expect(node.active).to.equal(true);
    expect(node.member?.engine.status().leader).not.to.equal(0);
    const { appliedIndex: index } = node.requireMember().engine.status();
    node.requireMember().cluster?.comparison.compareWith({ index, digest: '0'.repeat(64) });
    expect(node.active).to.equal(false);
    expect(node.eligibility.readRole).to.equal(undefined);
    await until(() => node.member?.engine.status().leader === 0);
    expect(node.member?.barrier.rootGeneration.status.started, 'an attempt that only this node knew').to.equal(false);
  });

  it('is active right after a long pause of the process when it is the only member', async () => {
    const node = await open();
    await node.initialize(one);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1100);
    expect(node.status.state).to.equal('active');
  });

  it('stays unsealed when an obsolete load fails, after a later seal and unseal', async () => {
    const node = await open();
    await node.initialize(one);
    const barrier = node.member?.barrier;
    if (barrier === undefined) throw new Error('no barrier');
    const { store } = barrier;
    const { get } = store;
    const stale = Promise.withResolvers<undefined>();
    barrier.seal();
    Object.assign(store, { get: () => stale.promise });
    await barrier.autoUnseal();
    expect(node.services).to.equal(undefined);
    barrier.seal();
    Object.assign(store, { get });
    await barrier.autoUnseal();
    while (node.services === undefined) await new Promise((resolve) => setImmediate(resolve));
    stale.reject(new Error('sealed meanwhile'));
    await new Promise((resolve) => setImmediate(resolve));
    expect(barrier.state.sealed).to.equal(false);
    expect(node.active).to.equal(true);
  });
});
