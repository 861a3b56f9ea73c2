import {
  type Done,
  Driver,
  type DriverOptions,
  type Entry,
  type LogStore,
  type Message,
  type NodeId,
  type SnapshotMeta,
  type SnapshotSource,
  type SnapshotTransfer,
  type Transport,
  type TransportReceiver,
} from '@transitd/raft-core';
import { expect } from 'chai';
import { confOf } from '../../../raft-core/test/core/cluster.ts';
import type { MemoryLog } from '../../src/fakes/memory-disk.ts';
import { MemoryDisk } from '../../src/fakes/memory-disk.ts';
import { type HistoryResult, MemoryState, MemoryStateMachine } from '../../src/fakes/memory-state-machine.ts';
import { SimClock, SimProcess } from '../../src/fakes/sim-clock.ts';
import { SimRandom } from '../../src/fakes/sim-random.ts';
import { text } from './observed.ts';

export interface TrioOptions {
  readonly ids?: readonly NodeId[];
  readonly driver?: Partial<DriverOptions>;
  readonly logDelayMs?: (id: NodeId) => number;
  readonly flushDelayMs?: (id: NodeId) => number;
}

export interface Member {
  readonly id: NodeId;
  readonly disk: MemoryDisk;
  readonly state: MemoryState;
  log: MemoryLog;
  stateMachine: MemoryStateMachine;
  driver: Driver<HistoryResult>;
  process: SimProcess;
  receiver: TransportReceiver | undefined;
  source: SnapshotSource | undefined;
  readonly fatal: Error[];
  /** Writes that the node's log has accepted and not acknowledged. */
  writes: number;
}

/** Real drivers on simulated disks and a network with a delay of a millisecond: small enough to test one rule at a time. */
export class Trio {
  readonly clock = new SimClock();
  readonly members = new Map<NodeId, Member>();
  readonly sent: Message[] = [];
  passes: (message: Message) => boolean = () => true;
  /** Streams wait here while `holdsStreams`. */
  holdsStreams = false;
  readonly streams: (() => void)[] = [];
  readonly #options: TrioOptions;

  constructor(options: TrioOptions = {}) {
    this.#options = options;
    for (const id of options.ids ?? [1, 2, 3]) this.start(id, options.ids ?? [1, 2, 3]);
  }

  /** Creates a node, or restarts one on its disk. */
  start(id: NodeId, voters: readonly NodeId[], own: Partial<DriverOptions> = {}): Member {
    const before = this.members.get(id);
    const disk = before?.disk ?? new MemoryDisk({ nodeId: id, clusterId: 'simulated' });
    if (before === undefined) disk.base = { index: 0, term: 0, conf: confOf(voters), confIndex: 0 };
    const state = before?.state ?? new MemoryState();
    const process = new SimProcess(this.clock);
    const log = disk.open(process, { delayMs: () => this.#options.logDelayMs?.(id) ?? 1 });
    const stateMachine = new MemoryStateMachine(state, process, { delayMs: () => this.#options.flushDelayMs?.(id) ?? 1 });
    const fatal: Error[] = [];
    const peers = { transport: this.#transport(id), snapshots: this.#snapshots(id, process), random: new SimRandom(100 + id) };
    const driver = new Driver(
      { log: this.#counted(id, log), stateMachine, clock: process, peers },
      { checkInvariants: true, ...this.#options.driver, ...own, onFatal: (error) => fatal.push(error) },
    );
    const parts = { id, disk, state, log, stateMachine, driver, process, fatal };
    const member: Member = { ...parts, receiver: undefined, source: undefined, writes: 0 };
    this.members.set(id, member);
    driver.start();
    return member;
  }

  crash(id: NodeId): void {
    const { log, stateMachine, process } = this.member(id);
    log.crash({ landed: 0 });
    stateMachine.crash({ flushLands: false });
    process.kill();
  }

  member(id: NodeId): Member {
    const member = this.members.get(id);
    if (member === undefined) throw new Error(`no member ${id}`);
    return member;
  }

  /** Waits for the one ready leader. */
  leader(): Member {
    const ready = () => [...this.members.values()].filter(({ driver }) => driver.status().ready);
    this.clock.runUntil(() => ready().length === 1);
    const [leader] = ready();
    if (leader === undefined) throw new Error('no leader');
    for (const { fatal } of this.members.values()) expect(fatal).to.deep.equal([]);
    return leader;
  }

  others(than: Member): Member[] {
    return [...this.members.values()].filter((member) => member !== than);
  }

  #counted(id: NodeId, log: MemoryLog): LogStore {
    const { start } = log;
    return {
      start,
      noteCommit: (index) => log.noteCommit(index),
      read: (range, done) => log.read(range, done),
      compact: (base, done) => log.compact(base, done),
      close: (done) => log.close(done),
      write: (write, done) => {
        const member = this.member(id);
        member.writes += 1;
        log.write(write, (error) => {
          member.writes -= 1;
          done(error);
        });
      },
    };
  }

  #transport(id: NodeId): Transport {
    return {
      receive: (receiver) => {
        this.member(id).receiver = receiver;
      },
      send: (messages) => {
        this.sent.push(...messages);
        for (const message of messages.filter((each) => this.passes(each))) {
          this.clock.after(1, () => this.members.get(message.to)?.receiver?.message(message));
        }
      },
    };
  }

  #snapshots(id: NodeId, process: SimProcess): SnapshotTransfer {
    let received: { readonly meta: SnapshotMeta; readonly entries: readonly Entry[] } | undefined;
    return {
      serve: (source) => {
        this.member(id).source = source;
      },
      fetch: ({ from }, done) => {
        let givenUp = false;
        const stream = (): void => {
          const leader = this.member(from);
          const entries = [...leader.state.flushed];
          const meta = leader.source?.describe(entries.length);
          received = meta && { meta, entries };
          process.after(5, () => {
            if (!givenUp) done(meta);
          });
        };
        if (this.holdsStreams) this.streams.push(stream);
        else stream();
        return () => {
          givenUp = true;
        };
      },
      install: (meta: SnapshotMeta, done: Done) => {
        expect(this.member(id).writes, 'nothing else is under way').to.equal(0);
        process.after(5, () => {
          const { disk, state, stateMachine } = this.member(id);
          expect(received?.meta).to.deep.equal(meta);
          disk.entries = [];
          disk.base = meta;
          state.flushed = [...(received?.entries ?? [])];
          stateMachine.history.splice(0, stateMachine.history.length, ...state.flushed);
          process.after(0, done);
        });
      },
      discard: () => {
        received = undefined;
      },
    };
  }
}

export const writtenBy = ({ stateMachine }: Member): string[] =>
  stateMachine.history.filter(({ type }) => type === 'normal').map(({ data }) => text(data));
