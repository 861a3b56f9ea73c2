import { configOf } from '@transitd/raft-sim';
import { expect } from 'chai';
import { hunt, mutated } from '../../../../scripts/sim-mutant.ts';
import { commandOf, type Outcome, playSeeds, seedsFrom } from '../../../../scripts/sim-pool.ts';
import { playsAll } from '../../../../test/runs.ts';
import { storageMutants } from './mutants.ts';
import { playStorage } from './play.ts';

const EVENTS = 5_000;

async function play(first: number, count: number, { extra }: { readonly extra: boolean }): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  await playSeeds(
    seedsFrom(first, count, { profile: 'storage', events: EVENTS, extra }),
    (outcome) => {
      outcomes.push(outcome);
      return outcome.failure === undefined ? undefined : 'stop';
    },
    { batch: 1 },
  );
  const failed = outcomes.find(({ failure }) => failure !== undefined);
  if (failed !== undefined) {
    expect.fail(
      [`${failed.failure?.message}`, commandOf({ ...failed, events: EVENTS }), ...(failed.failure?.last ?? [])].join('\n'),
    );
  }
  return outcomes;
}

const countOf = (outcomes: readonly Outcome[], event: Outcome['coverage'][number][0]): number =>
  outcomes.reduce((sum, { coverage }) => sum + (new Map(coverage).get(event) ?? 0), 0);

describe('the simulator with the real log and state machine', () => {
  it('finds nothing in 24 fixed seeds, which crash, damage, compact and replace the storage', async () => {
    const outcomes = await play(64, 24, { extra: false });
    expect(outcomes).to.have.length(24);
    for (const event of [
      'unsynced write lost in a crash',
      'sync failed',
      'a start found an unreadable vote slot',
      'damage quarantined',
      'log compacted',
      'snapshot installed',
      'log truncated',
    ] as const) {
      expect(countOf(outcomes, event), event).to.be.above(0);
    }
  });

  const base = Number(process.env['SIM_SEED'] ?? crypto.getRandomValues(new Uint32Array(1))[0]) % 2 ** 31;
  const plain = playsAll ? 4 : 0;
  it(`finds nothing in ${plain + 10} fresh seeds (from ${base} on), ten of them with the extra faults`, async () => {
    expect(await play(base, plain, { extra: false })).to.have.length(plain);
    const outcomes = await play(base + plain, 10, { extra: true });
    expect(outcomes).to.have.length(10);
    expect(countOf(outcomes, 'power lost after a kill'), 'power lost after a kill').to.be.above(0);
  });

  for (const [seed, what] of [
    [2_600_777, 'a list is read from a disk that has just failed'],
    [3_700_428, 'a disk fails while only an incoming snapshot is written to it'],
    [30_000_459, 'configurations are applied again after one that added a node'],
  ] as const)
    it(`finds nothing in a run in which ${what}`, async () => {
      const { failure } = await playStorage(configOf(seed, 'storage', 10_000));
      expect(failure?.message).to.equal(undefined);
    });

  it('plays a seed the same way twice, although the log uses promises', async () => {
    for (const seed of [3, 17]) {
      const [once, twice] = [
        await playStorage(configOf(seed, 'storage', 2_000)),
        await playStorage(configOf(seed, 'storage', 2_000)),
      ];
      expect([once.hash, once.events]).to.deep.equal([twice.hash, twice.events]);
    }
    const [one, other] = [await playStorage(configOf(3, 'storage', 500)), await playStorage(configOf(4, 'storage', 500))];
    expect(one.hash).not.to.equal(other.hash);
  });
});

describe('a fault planted in the log or the state machine', () => {
  it('still applies to the sources, for every fault in the list', () => {
    for (const mutant of storageMutants) expect(mutated(mutant), mutant.name).to.be.a('string');
  });

  for (const name of [
    'a batch is acknowledged without a sync',
    'a condition reads the disk instead of the applied state',
    'a restart forgets the feature level',
  ]) {
    it(`is found: ${name}`, async () => {
      const mutant = storageMutants.find((each) => each.name === name);
      if (mutant === undefined) throw new Error('no such fault');
      expect(await hunt(mutant, { seeds: 50, events: EVENTS, threads: 1 })).not.to.equal(undefined);
    });
  }
});
