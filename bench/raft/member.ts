// One member of the bench's cluster, in a process of its own. Takes its orders from the process that forked it, and ends with it.
import { type Clock, Driver, type SnapshotTransfer, type StateMachine } from '@transitd/raft-core';
import { SegmentLog } from '@transitd/storage-fsm';
import { leaseRead, readIndex, write } from './load.ts';
import type { Memory, Order, OrderKind, Orders, Report } from './orders.ts';
import { TcpTransport } from './tcp-transport.ts';

process.on('disconnect', () => process.exit());
const say = (report: Report): void => void process.send?.(report);
const fatal = (error: Error): void => {
  say({ kind: 'failed', reason: error.stack ?? error.message });
  setImmediate(() => process.exit(1));
};

const clock: Clock = {
  now: () => performance.now(),
  afterTurn: (task) => void setImmediate(task),
  every: (intervalMs, task) => {
    const timer = setInterval(task, intervalMs);
    return () => clearInterval(timer);
  },
};

const log = await SegmentLog.open(process.argv[2] ?? '', { onFailure: fatal });
const transport = new TcpTransport();

/** Holds nothing, so that the log is all that is measured; what it has forgotten is all that this machine has "stored". */
let applied = log.start.base.index;
const stateMachine: StateMachine<void> = {
  flushedAtOpen: applied,
  apply: ({ index }) => {
    applied = index;
  },
  flush: (done) => void setImmediate(done, undefined, applied),
};

/** There is no way to move a snapshot; the bench sees to it that none is needed, and counts to be sure. */
let snapshotsWanted = 0;
const snapshots: SnapshotTransfer = {
  serve: () => undefined,
  fetch: (_, done) => {
    snapshotsWanted += 1;
    const gaveUp = setImmediate(done, undefined);
    return () => clearImmediate(gaveUp);
  },
  install: (_, done) => void setImmediate(done, new Error('there is no snapshot to install')),
  discard: () => undefined,
};

let driver: Driver<void> | undefined;
const running = (): Driver<void> => {
  if (driver === undefined) throw new Error('the member has not been started');
  return driver;
};

const carryOut: { readonly [K in OrderKind]: (ask: Orders[K]['ask']) => Promise<Orders[K]['answer']> } = {
  start: async ({ peers, limits }) => {
    for (const peer of peers) transport.locate(peer);
    const random = { uint32: () => Math.floor(Math.random() * 2 ** 32) };
    const ports = { log, stateMachine, clock, peers: { transport, snapshots, random } };
    let announced = 0;
    driver = new Driver<void>(ports, {
      limits,
      onFatal: fatal,
      onStatus: ({ role, term }) => {
        if (role !== 'leader' || term === announced) return;
        announced = term;
        running().propose(new Uint8Array(1), ({ kind }) => kind === 'applied' && say({ kind: 'leads', term }));
      },
    });
    driver.start();
    return null;
  },
  peer: async (address) => {
    transport.locate(address);
    return null;
  },
  write: (ask) => write(running(), ask),
  leaseRead: (load) => leaseRead(running(), load),
  readIndex: (load) => readIndex(running(), load),
  transfer: () => new Promise((resolve) => running().transfer(undefined, resolve)),
  status: async () => {
    const { baseIndex } = running().consensus();
    return { ...running().status(), baseIndex, peers: running().peers(), snapshotsWanted };
  },
  memory: async () => memory(),
  catchUp: ({ target }) => catchUp(running(), target),
  stop: () =>
    new Promise((resolve, reject) => {
      running().stop((error) => (error === undefined ? resolve(null) : reject(error)));
    }),
};

process.on('message', (order: Order) => void obey(order).catch(fatal));
say({ kind: 'listening', port: await transport.listen() });

async function obey<K extends OrderKind>({ kind, number, ask }: Order<K>): Promise<void> {
  say({ kind: 'answer', number, answer: await carryOut[kind](ask) });
}

function memory(): Memory {
  globalThis.gc?.();
  const { rss, heapUsed, external } = process.memoryUsage();
  return { residentBytes: rss, usedBytes: heapUsed + external };
}

/** Looks every few milliseconds. The time begins with the first entry that arrives: what comes before is a start, no catch-up. */
function catchUp(of: Driver<void>, target: number): Promise<Orders['catchUp']['answer']> {
  const { lastIndex: from } = log.start;
  return new Promise((resolve) => {
    let startedMs: number | undefined;
    const timer = setInterval(() => {
      const { lastIndex, stableIndex } = of.consensus();
      if (lastIndex > from) startedMs ??= performance.now();
      if (startedMs === undefined || stableIndex < target) return;
      clearInterval(timer);
      resolve({ entries: stableIndex - from, ms: performance.now() - startedMs });
    }, 2);
  });
}
