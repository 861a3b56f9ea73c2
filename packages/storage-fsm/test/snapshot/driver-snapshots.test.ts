import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { type Clock, Driver, type Message, type NodeId, type SnapshotMeta, type TransportReceiver } from '@transitd/raft-core';
import { expect } from 'chai';
import { createNode } from '../../src/directory/node-directory.ts';
import { NodeSnapshots } from '../../src/snapshot/node-snapshots.ts';
import { clearRestores, restoreSnapshot } from '../../src/snapshot/restore.ts';
import { readSnapshotFile, writeSnapshotFile } from '../../src/snapshot/snapshot-file.ts';
import { LocalReplica } from '../../src/state/local-replica.ts';
import { type CommitResult, StoreError } from '../../src/store/store.ts';
import type { Command } from '../../src/store/transaction.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';
import { rejection } from '../store/store.suite.ts';
import { noLink, openNode, put, shownState } from './snapshot-nodes.ts';

const clock: Clock = {
  now: () => performance.now(),
  afterTurn: (task) => void setImmediate(task),
  every: (intervalMs, task) => {
    const timer = setInterval(task, intervalMs);
    return () => clearInterval(timer);
  },
};
const ids = [1, 2, 3] as const;
const base: SnapshotMeta = {
  index: 0,
  term: 0,
  confIndex: 0,
  conf: { voters: [...ids], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false, context: Buffer.alloc(0) },
};
const limits = {
  electionMs: 3_000, // long enough that a slow disk does not cause an election
  heartbeatMs: 50,
  tickMs: 10,
  leaseMs: 0,
  compactAfterEntries: 20,
  keepTrailingEntries: 2,
  keepForPeersEntries: 2,
};

/** Members of one cluster in this process, on real disks; messages are delivered in the next event-loop turn. */
class Members {
  readonly #parent: string;
  readonly #up = new Map<NodeId, Awaited<ReturnType<Members['start']>>>();

  constructor(parent: string) {
    this.#parent = parent;
  }

  async start(id: NodeId) {
    const node = await openNode(this.#parent, `node-${id}`);
    const fatal: Error[] = [];
    let receiver: TransportReceiver | undefined;
    const snapshots = new NodeSnapshots({
      ...node,
      diskLow: () => false,
      link: {
        open: async (from, index) =>
          this.#up.get(from)?.snapshots.stream(id, index) ?? noLink.open(from, index, new AbortController().signal),
      },
    });
    let seed = id * 7919;
    const driver = new Driver<CommitResult>(
      {
        log: node.log,
        stateMachine: node.machine,
        clock,
        peers: {
          transport: {
            send: (messages) => setImmediate(() => messages.map((message) => this.#up.get(message.to)?.hears(message))),
            receive: (given) => {
              receiver = given;
            },
          },
          snapshots,
          random: { uint32: () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) },
        },
      },
      { onFatal: (error) => fatal.push(error), limits, checkInvariants: true },
    );
    const replica = new LocalReplica({ consensus: driver, machine: node.machine, diskLow: () => false });
    const stop = async () => {
      this.#up.delete(id);
      await new Promise<void>((resolve, reject) => driver.stop((error) => (error ? reject(error) : resolve())));
      await snapshots.close();
      await node.machine.close();
    };
    const member = {
      ...node,
      id,
      driver,
      replica,
      snapshots,
      fatal,
      stop,
      hears: (message: Message) => receiver?.message(message),
    };
    this.#up.set(id, member);
    driver.start();
    return member;
  }

  member(id: NodeId) {
    return this.#up.get(id);
  }

  async leader() {
    return until(() => [...this.#up.values()].find(({ driver }) => driver.status().role === 'leader' && driver.status().ready));
  }

  async end(): Promise<void> {
    for (const member of [...this.#up.values()]) await member.stop();
  }
}

async function until<T>(found: () => T | undefined | false): Promise<T> {
  for (;;) {
    const value = found();
    if (value !== undefined && value !== false) return value;
    await delay(2);
  }
}

describe('a cluster on real disks', () => {
  it('brings a member that was away too long up to date with a snapshot, after which its log and state continue', () =>
    inTemporaryDirectory(async (parent) => {
      const members = new Members(parent);
      try {
        for (const nodeId of ids) await createNode(join(parent, `node-${nodeId}`), { clusterId: 'c', nodeId, base });
        for (const id of ids) await members.start(id);
        const first = await members.leader();
        await first.replica.commit(put('early', '1'));
        const away = ids.find((id) => id !== first.id) ?? 0;
        await (await until(() => members.member(away))).stop();
        const leader = await members.leader();
        for (let i = 0; i < 100; i++) await leader.replica.commit(put(`k/${i % 40}`, `${i}`));
        await until(() => leader.driver.consensus().baseIndex > 50);

        const back = await members.start(away);
        await until(() => back.log.place.generation === 2);
        await leader.replica.commit(put('late', '1'));
        const { index } = await leader.replica.commit(put('later', '1'));
        await until(() => back.machine.applied.appliedIndex >= index);
        expect(back.machine.digestAt(index)).to.equal(leader.machine.digestAt(index)).and.not.equal(undefined);
        expect(await shownState(back.machine)).to.deep.equal(await shownState(leader.machine));
        await back.stop();

        const again = await members.start(away);
        await until(() => again.machine.applied.appliedIndex >= index);
        expect(again.log.start.base.index).to.be.above(50);
        expect(await shownState(again.machine)).to.deep.equal(await shownState(leader.machine));
        expect([first, leader, back, again].flatMap(({ fatal }) => fatal)).to.deep.equal([]);
      } finally {
        await members.end();
      }
    }));

  it('restores a backup across a leader change: the next leader continues it, and all members reach the same state', () =>
    inTemporaryDirectory(async (parent) => {
      const members = new Members(parent);
      try {
        for (const nodeId of ids) await createNode(join(parent, `node-${nodeId}`), { clusterId: 'c', nodeId, base });
        for (const id of ids) await members.start(id);
        const first = await members.leader();
        for (let i = 0; i < 30; i++) await first.replica.commit(put(`k/${i + 10}`, 'x'.repeat(50_000)));
        await until(() => first.machine.flushedIndex === first.machine.applied.appliedIndex);
        const file = join(parent, 'backup');
        await writeSnapshotFile(file, first.snapshots.backup());
        await first.replica.commit(put('later', '1'));
        const open = () => readSnapshotFile(file);

        let commits = 0;
        const replica = {
          status: () => first.replica.status(),
          commit: async (command: Command): Promise<CommitResult> => {
            if (++commits === 2) await new Promise<void>((resolve) => first.driver.transfer(undefined, () => resolve()));
            return first.replica.commit(command);
          },
        };
        expect(await rejection(restoreSnapshot(replica, open, { attempt: 'one' }))).to.be.instanceOf(StoreError);
        const next = await members.leader();
        expect(next.id).not.to.equal(first.id);
        expect(next.machine.getSync('later')).not.to.equal(undefined);
        expect(await clearRestores(next.replica, next.machine, { underWay: 'one' })).to.equal(0);
        expect(await restoreSnapshot(next.replica, open, { attempt: 'one' })).to.include({ outcome: 'restored', records: 30 });
        expect(await clearRestores(next.replica, next.machine)).to.equal(31);

        const { appliedIndex, digest } = next.machine.applied;
        const expected = await shownState(next.machine);
        expect(expected).to.have.length(30);
        for (const id of ids) {
          const { machine, fatal } = await until(() => members.member(id));
          await until(() => machine.applied.appliedIndex >= appliedIndex);
          expect(machine.digestAt(appliedIndex)).to.equal(digest);
          expect(await shownState(machine)).to.deep.equal(expected);
          expect(fatal).to.deep.equal([]);
        }
      } finally {
        await members.end();
      }
    }));
});
