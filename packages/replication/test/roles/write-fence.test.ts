import type { ReplicationRole, ReplicationState } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { Registry } from '../../src/registry/registry.ts';
import { WriteFence } from '../../src/roles/write-fence.ts';

const [set, id] = ['01', '0a'].map((digits) => digits.repeat(16)) as [string, string];
const epoch = { number: 1, id };

/** The fence of an active node, whose clocks and term the test sets. */
async function fence(role: ReplicationRole = 'primary') {
  const clock = { nowMs: 100_000, jumpedMs: Number.NEGATIVE_INFINITY, term: 3 };
  const replication: ReplicationState = {
    ...{ role, set, local: ['core/'], index: 1, offset: 0, seen: 1, fenceMs: 5_000 },
    epochs: [{ ...epoch, start: 1 }],
  };
  const registrations = [{ secondary: 'west', cluster: 'w', certificate: 'aa', follows: true }];
  const current: Registry = { activations: [], registrations, ended: [] };
  const storage = {
    machine: { replication },
    driver: { status: () => ({ term: clock.term }) },
    clockJumpedMs: () => clock.jumpedMs,
  };
  const registry = { current, isRead: true, refresh: async () => undefined };
  const made = new WriteFence(storage, registry, { nowMs: () => clock.nowMs });
  await made.activated(clock.term);
  return { clock, made };
}

describe('the fence of a primary', () => {
  it('is open for the time of the fence after a heartbeat was sent that the secondary has answered', async () => {
    const { clock, made } = await fence();
    expect(made.status, 'it has not answered yet').to.include({ state: 'closed', secondary: 'west' });
    made.answered('west', 99_000, epoch);
    expect(made.status).to.include({ state: 'open', silentMs: 1_000 });
    clock.nowMs = 103_999;
    expect(made.status.state).to.equal('open');
    clock.nowMs = 104_000;
    expect(made.status.state).to.equal('closed');
  });

  it('does not count an answer from before the machine was suspended, since its age is unknown', async () => {
    const { clock, made } = await fence();
    made.answered('west', 99_000, epoch);
    clock.jumpedMs = 99_500;
    expect(made.status.state).to.equal('closed');
    made.answered('west', 99_600, epoch);
    expect(made.status.state).to.equal('open');
  });

  it('counts no answer of another epoch', async () => {
    const { made } = await fence();
    made.answered('west', 99_000, { number: 1, id: set });
    expect(made.status.state).to.equal('closed');
  });

  it('still refuses to acknowledge a write when a demotion was applied together with it', async () => {
    const { clock, made } = await fence('demoted');
    const write = { conditions: [], writes: [{ path: 'a', value: Buffer.of(1) }] };
    made.answered('west', 99_000, epoch);
    expect(made.refusal(write)).to.equal(undefined);
    clock.nowMs = 104_000;
    expect(made.refusal(write)).to.contain('the secondary west has not answered for 5000 ms');
    expect(made.status, 'a demoted cluster accepts no writes').to.deep.equal({ state: 'off' });
  });

  it('is closed in a new term until the node has read which secondaries there are', async () => {
    const { clock, made } = await fence();
    made.answered('west', 99_000, epoch);
    clock.term = 4;
    expect(made.status.state).to.equal('closed');
    await made.activated(4);
    expect(made.status.state).to.equal('open');
  });
});
