import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DriverStatus, ProposalOutcome, ReadOutcome } from '@transitd/raft-core';
import { expect } from 'chai';
import { KeyValueMachine } from '../../src/state/key-value-machine.ts';
import { type Consensus, LocalReplica } from '../../src/state/local-replica.ts';
import { transactionBytesMax } from '../../src/store/codec.ts';
import type { ReplicationState } from '../../src/store/replication-state.ts';
import type { CommitResult } from '../../src/store/store.ts';
import { rejection, storeSuite } from '../store/store.suite.ts';

const status: DriverStatus = {
  clusterId: 'c',
  nodeId: 7,
  role: 'leader',
  ready: true,
  term: 1,
  leader: 7,
  lastIndex: 0,
  commitIndex: 0,
  appliedIndex: 0,
  flushedIndex: 0,
};

/** Commits and applies within the call; flushes whenever no flush is in flight, so that reads meet every stage of a flush. */
class InstantConsensus implements Consensus {
  readonly #machine: KeyValueMachine;
  #flushing = false;

  constructor(machine: KeyValueMachine) {
    this.#machine = machine;
  }

  propose(data: Uint8Array, done: (outcome: ProposalOutcome<CommitResult>) => void): void {
    const index = this.#machine.applied.appliedIndex + 1;
    const result = this.#machine.apply({ term: 1, index, type: 'normal', data });
    this.#machine.publish();
    if (!this.#flushing) this.#flush();
    done({ kind: 'applied', index, result });
  }

  readIndex(done: (outcome: ReadOutcome) => void): void {
    done({ kind: 'readable', index: this.#machine.applied.appliedIndex });
  }

  status(): DriverStatus {
    return { ...status, appliedIndex: this.#machine.applied.appliedIndex, flushedIndex: this.#machine.flushedIndex };
  }

  #flush(): void {
    this.#flushing = true;
    this.#machine.flush((error) => {
      this.#flushing = false;
      if (error !== undefined) throw error;
    });
  }
}

storeSuite('LocalReplica', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'replica-'));
  const machine = await KeyValueMachine.open({ directory: join(directory, 'state'), base: 0 });
  return {
    replica: new LocalReplica({ consensus: new InstantConsensus(machine), machine, diskLow: () => false }),
    close: async () => {
      await machine.close();
      await rm(directory, { recursive: true });
    },
  };
});

describe('LocalReplica', () => {
  const machine = {
    applied: { appliedIndex: 0, valuesWritten: 5, digest: 0n },
    featureLevel: 1,
    replication: undefined as ReplicationState | undefined,
    getSync: () => undefined,
    range: async () => ({ records: [] }),
    paths: async () => ({ paths: [] }),
    watch: () => () => {},
  };
  const replicaOver = (
    consensus: Partial<Consensus>,
    diskLow = false,
    lowDisks: readonly string[] = [],
    replication?: ReplicationState,
  ) =>
    new LocalReplica({
      consensus: { propose: () => {}, readIndex: () => {}, status: () => status, ...consensus },
      machine: { ...machine, replication },
      diskLow: () => diskLow,
      lowDisks: () => lowDisks,
    });
  const nothing = { conditions: [], writes: [] };

  for (const { reason, code } of [
    { reason: 'notLeader', code: 'not_leader' },
    { reason: 'busy', code: 'busy' },
    { reason: 'tooLarge', code: 'too_large' },
    { reason: 'stopped', code: 'stopped' },
    { reason: 'faulty', code: 'stopped' },
  ] as const) {
    it(`refuses commits and fresh() with ${code} when consensus refuses as ${reason}`, async () => {
      const replica = replicaOver({
        propose: (_, done) => done({ kind: 'refused', reason }),
        readIndex: (done) => done({ kind: 'refused', reason }),
      });
      expect(await rejection(replica.commit(nothing))).to.have.property('code', code);
      expect(await rejection(replica.fresh())).to.have.property('code', code);
    });
  }

  it('reports outcome_unknown, never a refusal, while an entry may still commit', async () => {
    const replica = replicaOver({ propose: (_, done) => done({ kind: 'unknown', index: 9 }) });
    expect(await rejection(replica.commit(nothing))).to.have.property('code', 'outcome_unknown');
  });

  it('asks the fence before it proposes a write, and again before it answers', async () => {
    const proposed: string[] = [];
    let closed: string | undefined;
    const replica = new LocalReplica({
      consensus: {
        propose: (_, done) => {
          proposed.push('write');
          closed = 'closed meanwhile';
          done({ kind: 'applied', index: 1, result: { outcome: 'committed', revision: 1 } as unknown as CommitResult });
        },
        readIndex: () => {},
        status: () => status,
      },
      machine,
      diskLow: () => false,
      fenced: () => closed,
    });
    const late = await rejection(replica.commit(nothing));
    expect(late).to.include({ code: 'outcome_unknown' });
    expect(await rejection(replica.commit(nothing))).to.include({ code: 'fenced', message: 'closed meanwhile' });
    expect(proposed).to.have.length(1);
  });

  it('refuses on a primary what a secondary could not apply as one entry', async () => {
    const id = '0a'.repeat(16);
    const primary: ReplicationState = {
      ...{ role: 'primary', set: id, local: [], index: 1, offset: 0, seen: 1 },
      epochs: [{ number: 1, id, start: 1 }],
    };
    let proposals = 0;
    const propose = (_: Uint8Array, done: Parameters<Consensus['propose']>[1]) => {
      proposals += 1;
      done({ kind: 'refused', reason: 'busy' });
    };
    const commit = (bytes: number, state?: ReplicationState) =>
      rejection(
        replicaOver({ propose }, false, [], state).commit({
          conditions: [],
          writes: [{ path: 'p', value: Buffer.alloc(bytes) }],
        }),
      );
    expect(await commit(transactionBytesMax - 500)).to.have.property('code', 'busy');
    expect(await commit(transactionBytesMax - 500, primary)).to.have.property('code', 'too_large');
    expect(await commit(transactionBytesMax - 2000, primary)).to.have.property('code', 'busy');
    expect(proposals).to.equal(2);
  });

  it('refuses commits with disk_low, and names the nodes, while low disks leave no quorum', async () => {
    let proposals = 0;
    const propose = () => {
      proposals += 1;
    };
    const error = await rejection(replicaOver({ propose }, false, ['n2', 'n3']).commit(nothing));
    expect(error).to.have.property('code', 'disk_low');
    expect(String(error)).to.contain('below its reserve on nodes n2, n3: free disk space there');
    expect(proposals).to.equal(0);
  });

  it('refuses commits with disk_low while the disk is low, and still reads', async () => {
    let proposals = 0;
    const propose = () => {
      proposals += 1;
    };
    const replica = replicaOver({ propose, readIndex: (done) => done({ kind: 'readable', index: 0 }) }, true);
    expect(await rejection(replica.commit(nothing))).to.have.property('code', 'disk_low');
    expect(proposals).to.equal(0);
    await replica.fresh();
    expect(replica.status()).to.include({ diskLow: true, valuesWritten: 5, nodeId: 7 });
  });
});
