import type { LevelRange } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { laterRelease } from '../../../storage-fsm/test/level/later-release.ts';
import { FeatureLevelControl } from '../../src/maintenance/feature-level-control.ts';
import { RaftLevels } from '../../src/maintenance/raft-levels.ts';
import { ConfigurationChanges } from '../../src/membership/configuration-changes.ts';
import { encodeMembership, type Member } from '../../src/membership/membership.ts';

const log = { info: () => undefined } as never;
const member = (id: number, levels: LevelRange = { oldest: 1, newest: 1 }): Member => ({
  id,
  name: `n${id}`,
  apiAddress: `http://10.0.0.${id}:8200`,
  clusterAddress: `10.0.0.${id}:8201`,
  certificate: String(id).repeat(64),
  nonVoter: id === 3,
  levels,
});

/** A leader (node 1) with these other members; `level` is what its state is at. */
function leader(members: readonly Member[], announced: Readonly<Record<number, LevelRange>> = {}) {
  const world = { level: 1, raises: [] as number[], conf: { context: encodeMembership({ members, removed: [] }) } };
  const driver = { consensus: () => ({ conf: world.conf }), status: () => ({ nodeId: 1 }) };
  const commit = async ({ raise = 0 }): Promise<{ index: number; outcome: 'committed' }> => {
    world.raises.push(raise);
    world.level = raise;
    return { index: 9, outcome: 'committed' };
  };
  const machine = {
    get featureLevel() {
      return world.level;
    },
  };
  const changes = new ConfigurationChanges(driver as never, { pause: async () => undefined });
  const control = new FeatureLevelControl({
    levels: new RaftLevels({ driver, machine, replica: { commit } } as never, changes, {
      report: (id) => (announced[id] === undefined ? undefined : ({ levels: announced[id] } as never)),
    }),
    config: { node_id: 'n1', feature_level_raise_after: 0 },
    log,
  });
  return { control, world, changes };
}

const refusalOf = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => expect.fail('was raised'),
    (error: Error) => error.message,
  );

describe('the control of the feature level', () => {
  before(() => laterRelease(3));
  after(() => laterRelease());

  it('takes the levels of a silent member from the member list', async () => {
    const next = { oldest: 1, newest: 1 };
    const { control } = leader([member(1), member(2, { oldest: 1, newest: 7 }), member(3)], { 3: next });
    expect(control.status.members.map(({ name, levels }) => [name, levels.newest])).to.deep.equal([
      ['n1', control.status.supported.newest],
      ['n2', 7],
      ['n3', 1],
    ]);
  });

  it('prefers what a member announced in this term: it may have gone back to an earlier release', () => {
    const { control } = leader([member(1), member(2, { oldest: 1, newest: 7 })], { 2: { oldest: 1, newest: 1 } });
    expect(control.status.members[1]?.levels.newest).to.equal(1);
    expect(control.status.waitsFor).to.include('n2');
  });

  it('proposes nothing when it refuses, and nothing at the present level', async () => {
    const { control, world } = leader([member(1), member(2)]);
    expect(await refusalOf(control.raise(2))).to.match(/n2 \(level 1\)/);
    expect(await control.raise(1)).to.equal(1);
    expect(world.raises).to.deep.equal([]);
  });

  it('admits no node between its decision and its entry', async () => {
    const { control, world, changes } = leader([member(1)]);
    const seen: number[] = [];
    await Promise.all([
      refusalOf(control.raise(99)),
      changes.make(() => {
        seen.push(world.level);
        return undefined;
      }),
      changes.between(async () => {
        world.level = 5;
        await new Promise(setImmediate);
      }),
      changes.make(() => {
        seen.push(world.level);
        return undefined;
      }),
    ]);
    expect(seen).to.deep.equal([1, 5]);
  });
});
