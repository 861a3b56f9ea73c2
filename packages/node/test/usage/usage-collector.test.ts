import { encodeTransaction, memoryStore, type Transaction } from '@transitd/storage-fsm';
import { DamagedRecord, UseTally } from '@transitd/transit-engine';
import { expect } from 'chai';
import { UsageCollector } from '../../src/usage/usage-collector.ts';
import { UsageLedger } from '../../src/usage/usage-ledger.ts';
import { readMarks } from '../../src/usage/usage-marks.ts';

const clock = { now: 1000, behindMs: 0, utcMs: () => clock.now, dueMs: () => clock.now - clock.behindMs, nowMs: () => clock.now };

/** A cluster of one node, and an engine with a record of uses of `bytes` for each key. */
function collecting({ bytes, damaged }: { readonly bytes: number; readonly damaged?: string }) {
  const ledger = new UsageLedger(clock);
  const memory = memoryStore();
  const written = new Set<string>();
  const store = {
    ...memory,
    get: memory.get.bind(memory),
    // As the log does.
    commit: async (transaction: Transaction) => {
      encodeTransaction(transaction);
      for (const { path } of transaction.writes) written.add(path);
      return memory.commit(transaction);
    },
  };
  const unlessDamaged = (name: string): void => {
    if (name === damaged) throw new DamagedRecord('damaged');
  };
  const engine = {
    addingUses: async (name: string): Promise<Transaction> => {
      unlessDamaged(name);
      return { conditions: [], writes: [{ path: `transit/m/usage/${name}`, value: Buffer.alloc(bytes) }] };
    },
    nearLimit: async (name: string) => unlessDamaged(name),
  };
  const warnings: string[] = [];
  const leader = { ready: false };
  const member = {
    engine: { status: () => ({ nodeId: 1, clusterId: 'c1', ...leader }), replication: undefined },
    peers: {
      membershipList: { members: [] },
      activeMember: undefined as { readonly id: number } | undefined,
      calls: { recordUsage: async (_id: number, _msMax: number): Promise<void> => {} },
    },
    role: { isActive: true },
    services: { services: { mounts: { engineOf: () => engine } } as object | undefined },
    barrier: { store },
  };
  const host = {
    config: { node_id: 'n1' },
    clock,
    usage: ledger,
    log: { warn: (_: object, message: string) => warnings.push(message) },
  };
  const collector = new UsageCollector(
    member as unknown as ConstructorParameters<typeof UsageCollector>[0],
    host as unknown as ConstructorParameters<typeof UsageCollector>[1],
  );
  const use = (name: string): void => {
    const tally = new UseTally();
    tally.keyId = `id of ${name}`;
    tally.add('encryptions', 1);
    ledger.count('m', name, tally);
  };
  const recorded = (): number => [...written].filter((path) => path.startsWith('transit/')).length;
  const sinceMs = async (): Promise<number | undefined> =>
    (await readMarks(memory, { clusterId: 'c1', restoredBy: undefined })).marks.sinceMs;
  const marks = async () => (await readMarks(memory, { clusterId: 'c1', restoredBy: undefined })).marks;
  return { collector, ledger, leader, member, use, recorded, sinceMs, marks, warnings, written };
}

describe('the recording of uses', () => {
  it('goes on if the records are too large for one transaction, and counting begins again', async () => {
    const { collector, use, recorded, sinceMs, warnings } = collecting({ bytes: 600_000 });
    clock.now = 1000;
    await collector.record();
    expect(await sinceMs()).to.equal(1000);
    clock.now = 2000;
    for (let i = 0; i < 20; i++) use(`key-${i}`);
    expect(await collector.record()).to.equal(true);
    expect(recorded(), 'what fits').to.equal(6);
    expect(await sinceMs()).to.equal(2000);
    expect(warnings).to.have.length(1);
    clock.now = 3000;
    use('another');
    await collector.record();
    expect(recorded()).to.equal(7);
    expect(await sinceMs()).to.equal(2000);
  });

  it('does not claim that counting began earlier than it did while one clock is behind', async () => {
    const { collector, sinceMs } = collecting({ bytes: 10 });
    clock.now = 90_000;
    clock.behindMs = 80_000;
    await collector.record();
    clock.behindMs = 0;
    expect(await sinceMs()).to.equal(90_000);
  });

  it('writes nothing while nobody uses a key', async () => {
    const { collector, written } = collecting({ bytes: 10 });
    await collector.record();
    expect([...written]).to.deep.equal(['core/usage']);
    written.clear();
    for (let round = 0; round < 3; round++) await collector.record();
    expect([...written]).to.deep.equal([]);
  });

  it('ends in order if the node is sealed while the uses are being written', async () => {
    const { collector, member, use, recorded } = collecting({ bytes: 10 });
    use('key');
    const { commit } = member.barrier.store;
    member.barrier.store.commit = async (transaction) => {
      member.services.services = undefined;
      return commit(transaction);
    };
    expect(await collector.record()).to.equal(true);
    expect(recorded()).to.equal(1);
  });

  it('of a node that stops is complete, and waits for an active node after a transfer', async () => {
    const { collector, ledger, member, use, recorded, marks, warnings } = collecting({ bytes: 10 });
    await collector.record();
    use('key');
    expect(ledger.endsAs, 'now').to.equal('unknown');
    ledger.end();
    member.role.isActive = false;
    let asked = 0;
    member.peers.calls.recordUsage = async () => {
      asked += 1;
      if (asked === 1) throw new Error('no connection');
      member.role.isActive = true; // as the other node, which is active
      await collector.record();
      member.role.isActive = false;
    };
    setTimeout(() => {
      member.peers.activeMember = { id: 2 };
    }, 100);
    await collector.handOver();
    expect([asked, recorded(), warnings]).to.deep.equal([3, 1, []]);
    expect((await marks()).nodes).to.deep.equal({ n1: { process: ledger.endsAs, batch: 1, ended: true } });
  });

  it('of a node that stops before its first one is complete: the next process follows what is recorded', async () => {
    const { collector, ledger, marks, warnings } = collecting({ bytes: 10 });
    ledger.end();
    await collector.handOver();
    expect((await marks()).nodes).to.deep.equal({ n1: { process: ledger.endsAs, batch: 0, ended: true } });
    expect(warnings).to.deep.equal([]);
  });

  it('of a node that stops without an active node is given up in time, and is known to be missing', async () => {
    const { collector, ledger, member, use, warnings } = collecting({ bytes: 10 });
    member.role.isActive = false;
    await collector.handOver();
    expect(warnings, 'a process that was never recorded has nothing to end').to.deep.equal([]);
    use('key');
    setTimeout(() => {
      clock.now += 3000;
    }, 100);
    await collector.handOver();
    expect(warnings).to.have.length(1);
    expect(ledger.endsAs).to.equal('unknown');
  });

  it('of a node that stops is given up at once if this node leads and is sealed', async () => {
    const { collector, ledger, leader, member, use, warnings } = collecting({ bytes: 10 });
    use('key');
    leader.ready = true;
    member.role.isActive = false;
    await collector.handOver(); // the clock stands still, so that waiting would not end
    expect(warnings).to.have.length(1);
    expect(ledger.endsAs).to.equal('unknown');
  });

  it('of a node that stops takes no longer in all, even if the active node appears late and hangs', async () => {
    const { collector, member, use, warnings } = collecting({ bytes: 10 });
    member.role.isActive = false;
    use('key');
    const allowedMs: number[] = [];
    member.peers.calls.recordUsage = (_id: number, msMax: number) => {
      allowedMs.push(msMax);
      clock.now += msMax;
      return new Promise<never>(() => undefined);
    };
    setTimeout(() => {
      clock.now += 2900;
      member.peers.activeMember = { id: 2 };
    }, 100);
    await collector.handOver();
    expect([allowedMs, warnings.length]).to.deep.equal([[100], 1]);
  });

  it('goes on with the other keys if the records of one are damaged', async () => {
    const { collector, use, recorded, warnings } = collecting({ bytes: 10, damaged: 'broken' });
    for (const name of ['broken', 'whole']) use(name);
    await collector.record();
    expect(recorded()).to.equal(1);
    expect(warnings).to.deep.equal([]);
  });

  it('follows a change of members within a second, not within a minute', async () => {
    const { collector, ledger, use, recorded } = collecting({ bytes: 10 });
    await collector.tick();
    expect(ledger.isKnown, 'not told yet').to.equal(false);
    use('key');
    await collector.tick();
    expect(recorded(), 'not due').to.equal(0);
    collector.membersChanged();
    await collector.tick();
    expect(recorded()).to.equal(1);
  });

  it('is asked for by a node that is not active, as soon as there is an active one and until that knows it', async () => {
    const { collector, ledger, member } = collecting({ bytes: 10 });
    let asked = 0;
    member.role.isActive = false;
    member.peers.calls.recordUsage = async () => {
      asked += 1;
      if (asked === 1) throw new Error('unreachable');
      await ledger.report({ kind: 'next', process: (await ledger.report({ kind: 'key', id: '' })).process, merged: 0 });
    };
    await collector.tick();
    expect(asked, 'nobody is active').to.equal(0);
    member.peers.activeMember = { id: 2 };
    for (const [afterMs, times] of [
      [0, 1],
      [1000, 1],
      [4000, 2],
      [60_000, 2],
    ] as const) {
      clock.now += afterMs;
      await collector.tick();
      expect(asked).to.equal(times);
    }
  });
});
