// Raises of the feature level, joins, and nodes that change their release, in many orders. No member may be in a cluster at a level that it
// does not support, except one that went back to an earlier release without being heard since.
import { expect } from 'chai';
import { laterRelease } from '../../../storage-fsm/test/level/later-release.ts';
import { makeRequest } from '../../src/membership/authority.ts';
import { type TestCluster, testCluster } from '../credentials.ts';
import { type JoinRequests, LevelWorld, type PlantedFault } from './level-world.ts';

const stepsMax = 100;
const seeds = Array.from({ length: 40 }, (_, index) => index + 1);

describe('the feature level while releases change', () => {
  let authority: TestCluster['authority'];
  let requests: JoinRequests;

  before(async () => {
    laterRelease(3);
    ({ authority } = await testCluster());
    const ids = Array.from({ length: 10 }, (_, index) => index + 4);
    requests = new Map(await Promise.all(ids.map(async (id) => [id, (await makeRequest(id)).request] as const)));
  });

  after(() => laterRelease());

  /** Plays until a rule is broken, or to the end. */
  async function play(seed: number, fault?: PlantedFault): Promise<LevelWorld> {
    const world = new LevelWorld(seed, authority, requests, fault);
    for (let step = 0; step < stepsMax && world.violation === undefined; step++) await world.step();
    return world;
  }

  it('is one that every member supports, and rises once all members have announced the next', async () => {
    const total: Record<string, number> = {};
    for (const seed of seeds) {
      const world = await play(seed);
      expect(world.violation, `seed ${seed}`).to.equal(undefined);
      expect(await world.settles(), `seed ${seed} rises in the end`).to.equal(true);
      for (const [name, count] of Object.entries(world.seen)) total[name] = (total[name] ?? 0) + count;
    }
    for (const [name, count] of Object.entries(total)) expect(count, name).to.be.above(20);
  });

  for (const fault of ['joiner judged once', 'raise beside changes', 'only heard members count'] as const)
    it(`is found to be wrong with the fault "${fault}"`, async () => {
      let violation: string | undefined;
      for (let seed = 1; violation === undefined && seed <= seeds.length; seed++) ({ violation } = await play(seed, fault));
      expect(violation).to.match(/^node \d+ supports /);
    });
});
