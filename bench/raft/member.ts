// One member of the bench's cluster, in its own process: `member.ts DIRECTORY [records]`. It receives orders from the process that
// forked it, and ends with that process.
import { flushCompileCache } from 'node:module';
import { type Clock, Driver } from '@transitd/raft-core';
import { SegmentLog } from '@transitd/storage-fsm';
import { leaseRead, readIndex, write } from './load.ts';
import type { Address, Order, OrderKind, Orders, Report } from './orders.ts';
import { SnapshotTcp } from './snapshot-tcp.ts';
import { nothing, records, type State } from './state.ts';
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

const [directory = '', holds] = process.argv.slice(2);
const log = await SegmentLog.open(directory, { onFailure: fatal });
const transport = new TcpTransport();
const snapshotTcp = new SnapshotTcp(log.start.nodeId);

const carryOut = holds === 'records' ? memberOf(await records(log, snapshotTcp, fatal)) : memberOf(nothing(log));
process.on('message', (order: Order) => void obey(order).catch(fatal));
flushCompileCache(); // for the next start: a killed member writes no cache
say({ kind: 'listening', port: await transport.listen(), snapshotPort: await snapshotTcp.listen() });

function memberOf<Result>(state: State<Result>): {
  readonly [K in OrderKind]: (ask: Orders[K]['ask']) => Promise<Orders[K]['answer']>;
} {
  const { machine: stateMachine, snapshots } = state;
  let driver: Driver<Result> | undefined;
  const running = (): Driver<Result> => {
    if (driver === undefined) throw new Error('the member has not been started');
    return driver;
  };
  const locate = (address: Address): void => {
    transport.locate(address);
    snapshotTcp.locate(address);
  };
  return {
    start: async ({ peers, limits }) => {
      for (const peer of peers) locate(peer);
      const random = { uint32: () => Math.floor(Math.random() * 2 ** 32) };
      const ports = { log, stateMachine, clock, peers: { transport, snapshots, random } };
      let announced = 0;
      driver = new Driver<Result>(ports, {
        limits,
        onFatal: fatal,
        onStatus: ({ role, term }) => {
          if (role !== 'leader' || term === announced) return;
          announced = term;
          state.writeOne(running(), () => say({ kind: 'leads', term }));
        },
      });
      driver.start();
      return null;
    },
    peer: async (address) => {
      locate(address);
      return null;
    },
    write: (ask) => write(running(), ask),
    leaseRead: (load) => leaseRead(running(), load),
    readIndex: (load) => readIndex(running(), load),
    transfer: () => new Promise((resolve) => running().transfer(undefined, resolve)),
    status: async () => {
      const { baseIndex } = running().consensus();
      return { ...running().status(), baseIndex, peers: running().peers() };
    },
    catchUp: ({ target }) => catchUp(running(), target),
    fill: (ask) => state.fill(running(), ask),
    installed: () => state.installed(),
    stop: () =>
      new Promise((resolve, reject) => {
        running().stop((error) => (error === undefined ? resolve(null) : reject(error)));
      }),
  };
}

async function obey<K extends OrderKind>({ kind, number, ask }: Order<K>): Promise<void> {
  say({ kind: 'answer', number, answer: await carryOut[kind](ask) });
}

/** Polls every few milliseconds. The time starts with the first entry that arrives, not with the start of the member. */
function catchUp<Result>(of: Driver<Result>, target: number): Promise<Orders['catchUp']['answer']> {
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
