import { type Barrier, ProviderError } from '@transitd/barrier';
import type { Storage } from '@transitd/cluster';
import { systemClock } from '@transitd/process';
import {
  type Command,
  type CommitResult,
  memoryStore,
  type ReplicatedRecord,
  type ReplicationState,
  type ReplicationStep,
} from '@transitd/storage-fsm';
import { expect } from 'chai';
import { pino } from 'pino';
import { until } from '../../../process/test/until.ts';
import { StoredPrimaryCredential } from '../../src/node/primary-credential.ts';
import { ReplicationRole } from '../../src/node/replication-role.ts';
import { SecondarySide } from '../../src/node/secondary-side.ts';
import { StoredRegistry } from '../../src/registry/stored-registry.ts';
import { unsealed } from './unsealed.ts';

const [set, id] = ['01', '0a'].map((digits) => digits.repeat(16)) as [string, string];
const stage = (attempt: string): ReplicationStep => ({ kind: 'stage', attempt, chunk: 0, records: [] });
const swap = (attempt: string): ReplicationStep => ({
  ...{ kind: 'swap', attempt, records: 0, digest: 0n, valuesWritten: 0, local: [], localReadAt: 0 },
  ...{ epochs: [{ number: 1, id, start: 1 }], index: 5 },
});

/** A secondary whose own seal, and whose log, answer as a test decides. */
class Received {
  readonly steps: ReplicationStep[] = [];
  attempts = 0;
  holdsLease = true;
  localRecords: () => Promise<ReplicatedRecord[]> = async () => [];
  outcome: () => CommitResult['outcome'] = () => 'committed';
  readonly side: SecondarySide;

  constructor() {
    const replication: ReplicationState = {
      ...{ role: 'secondary', set, local: ['core/autopilot'], epochs: [], index: 0, offset: 0, seen: 0 },
    };
    const commit = async (command: Command) => {
      const step = 'replication' in command ? command.replication : undefined;
      if (step !== undefined) this.steps.push(step);
      return { outcome: step?.kind === 'swap' ? this.outcome() : 'committed' };
    };
    const transfer = {
      localRecords: () => {
        this.attempts += 1;
        return this.localRecords();
      },
    };
    const storage = {
      ...{ machine: { replication, applied: { appliedIndex: 41 } }, replica: { commit } },
      holdsLease: () => this.holdsLease,
    } as unknown as Storage;
    const none = async () => undefined;
    this.side = new SecondarySide(new ReplicationRole(storage, { isActive: true }), {
      storage,
      transfer: transfer as unknown as Barrier['transfer'],
      diverged: { receiving: () => undefined, staging: none, swapping: none },
      succession: { present: undefined },
      credential: new StoredPrimaryCredential(unsealed(memoryStore()), { warn: () => undefined }),
      registry: new StoredRegistry(memoryStore()),
      clock: systemClock,
      log: pino({ level: 'silent' }),
    });
  }

  async stage(attempt: string): Promise<void> {
    this.side.rootKey(Buffer.alloc(32, 7));
    expect(await this.side.propose(stage(attempt))).to.equal('committed');
  }

  get swaps(): number {
    return this.steps.filter(({ kind }) => kind === 'swap').length;
  }
}

const failing = (): Promise<never> => Promise.reject(new ProviderError('unreachable', 'the key service does not answer'));

describe('a received state that is put in place', () => {
  it('waits for the provider of the seal, and is not received again', async () => {
    const received = new Received();
    await received.stage('one');
    received.localRecords = failing;
    const put = received.side.propose(swap('one'));
    await until(() => received.attempts > 1);
    received.localRecords = async () => [];
    expect(await put).to.equal('committed');
    expect(received.swaps).to.equal(1);
    expect(received.steps.at(-1), 'as of which state its local records were read').to.include({ localReadAt: 41 });
  });

  it('waits no longer when another state is being received', async () => {
    const received = new Received();
    await received.stage('one');
    received.localRecords = failing;
    const put = received.side.propose(swap('one'));
    await until(() => received.attempts > 0);
    await received.stage('two');
    expect(await put).to.equal('unknown');
    received.localRecords = async () => [];
    expect(await received.side.propose(swap('two'))).to.equal('committed');
  });

  it('is put in place with the present local records if one has changed meanwhile', async () => {
    const received = new Received();
    await received.stage('one');
    received.outcome = () => (received.swaps < 3 ? 'conflict' : 'committed');
    expect(await received.side.propose(swap('one'))).to.equal('committed');
    expect([received.attempts, received.swaps]).to.deep.equal([3, 3]);
  });
});

describe('a secondary', () => {
  it('answers heartbeats only under its leader lease, and not while a promotion is being decided', () => {
    const received = new Received();
    const answers: boolean[] = [];
    for (const [holdsLease, isPromoting] of [
      [true, false],
      [false, false],
      [true, true],
    ] as const) {
      received.holdsLease = holdsLease;
      received.side.isPromoting = isPromoting;
      answers.push(received.side.mayAnswer());
    }
    expect(answers).to.deep.equal([true, false, false]);
  });
});
