import { join } from 'node:path';
import type { DriverStatus, Entry, LogIndex, SnapshotMeta } from '@transitd/raft-core';
import { expect } from 'chai';
import { createNode } from '../../src/directory/node-directory.ts';
import { SegmentLog } from '../../src/log/segment-log.ts';
import { NodeSnapshots, type NodeSnapshotsOptions } from '../../src/snapshot/node-snapshots.ts';
import { KeyValueMachine } from '../../src/state/key-value-machine.ts';
import { LocalReplica } from '../../src/state/local-replica.ts';
import { encodeCommand } from '../../src/store/codec.ts';
import type { PathPage, RangePage } from '../../src/store/store.ts';
import type { Command, Transaction } from '../../src/store/transaction.ts';
import { base, close, genesis } from '../log/log-calls.ts';

/** The log and state of a node, wired as in the server. */
export interface SnapshotNode {
  readonly directory: string;
  readonly log: SegmentLog;
  readonly machine: KeyValueMachine;
  close(): Promise<void>;
}

export async function openNode(parent: string, name: string): Promise<SnapshotNode> {
  const directory = join(parent, name);
  const log = await SegmentLog.open(directory, { growBytes: 4096 });
  const machine = await KeyValueMachine.open({ directory: log.stateDirectory, base: log.start.base.index });
  log.verifyAgainstState(machine.flushedAtOpen);
  const closeNode = async () => {
    await machine.close();
    await close(log);
  };
  return { directory, log, machine, close: closeNode };
}

export async function newNode(parent: string, name: string, nodeId: number): Promise<SnapshotNode> {
  await createNode(join(parent, name), { clusterId: 'c', nodeId, base: genesis });
  return openNode(parent, name);
}

export const put = (path: string, value: string): Transaction => ({
  conditions: [],
  writes: [{ path, value: Buffer.from(value) }],
});

/** Applies commands as the next entries, together. */
export function apply(machine: KeyValueMachine, ...commands: Command[]): void {
  for (const command of commands) machine.apply(normal(machine.applied.appliedIndex + 1, command));
  machine.publish();
}

const normal = (index: LogIndex, command: Command): Entry => ({
  term: 3,
  index,
  type: 'normal',
  data: encodeCommand(command),
});

export const flush = (machine: KeyValueMachine): Promise<LogIndex> =>
  new Promise((resolve, reject) => machine.flush((error, flushed) => (error ? reject(error) : resolve(flushed))));

/** Returns the replica of a single-node cluster: a proposal is applied within the call. */
export function soleReplica(machine: KeyValueMachine, role: 'leader' | 'follower' = 'leader'): LocalReplica {
  const status = (): DriverStatus => ({
    clusterId: 'c',
    nodeId: 1,
    role,
    ready: true,
    term: 3,
    leader: 1,
    lastIndex: machine.applied.appliedIndex,
    commitIndex: machine.applied.appliedIndex,
    appliedIndex: machine.applied.appliedIndex,
    flushedIndex: machine.flushedIndex,
  });
  return new LocalReplica({
    machine,
    diskLow: () => false,
    consensus: {
      propose: (data, done) => {
        const index = machine.applied.appliedIndex + 1;
        const result = machine.apply({ term: 3, index, type: 'normal', data });
        machine.publish();
        done({ kind: 'applied', index, result });
      },
      readIndex: (done) => done({ kind: 'readable', index: machine.applied.appliedIndex }),
      status,
    },
  });
}

/** Returns every record as text, after checking that the paths alone are the same. */
export async function shownState(machine: Pick<KeyValueMachine, 'paths' | 'range'>): Promise<string[]> {
  const shown: string[] = [];
  const read: string[] = [];
  let page: RangePage = { records: [] };
  do {
    page = await machine.range({ prefix: '', ...(page.next === undefined ? {} : { after: page.next }) });
    for (const { path, value, revision } of page.records) {
      shown.push(`${path}=${Buffer.from(value)}@${revision}`);
      read.push(path);
    }
  } while (page.next !== undefined);
  expect(await allPaths(machine)).to.deep.equal(read);
  return shown;
}

async function allPaths(machine: Pick<KeyValueMachine, 'paths'>): Promise<string[]> {
  const all: string[] = [];
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page: PathPage = await machine.paths({ prefix: '', after, limit: 2 });
    all.push(...page.paths);
    after = page.next;
  }
  return all;
}

/** Returns a node's snapshots, described in term 3, and the peers whose transfers were reported as failed. */
export function serving({ log, machine }: SnapshotNode, options: Partial<NodeSnapshotsOptions> = {}) {
  const failed: number[] = [];
  const snapshots = new NodeSnapshots({ log, machine, link: noLink, diskLow: () => false, ...options });
  snapshots.serve({ describe: (index) => base(index, 3), failed: (peer) => failed.push(peer) });
  return { snapshots, failed };
}

export const noLink: NodeSnapshotsOptions['link'] = {
  open: () => Promise.reject(new Error('no peer is reachable in this test')),
};

/** Returns a link to a node in this process. */
export const linkTo = (leader: NodeSnapshots, self: number): NodeSnapshotsOptions['link'] => ({
  open: async (_from, index) => leader.stream(self, index),
});

/** Resolves with the result of a fetch. */
export const fetched = (snapshots: NodeSnapshots, meta: SnapshotMeta): Promise<SnapshotMeta | undefined> =>
  new Promise((resolve) => snapshots.fetch({ from: 1, meta }, resolve));

export const installed = (snapshots: NodeSnapshots, meta: SnapshotMeta): Promise<void> =>
  new Promise((resolve, reject) => snapshots.install(meta, (error) => (error ? reject(error) : resolve())));

/** Returns a clock that the test advances, one tick at a time. */
export function manualTicks() {
  const tasks = new Set<() => void>();
  const every = (_intervalMs: number, task: () => void) => {
    tasks.add(task);
    return () => void tasks.delete(task);
  };
  const pass = (seconds: number) => {
    for (let second = 0; second < seconds; second++) for (const task of [...tasks]) task();
  };
  return { every, pass, tasks };
}
