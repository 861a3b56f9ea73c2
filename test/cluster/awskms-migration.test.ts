// A cluster moves from one key of a key service to another, by the name of its seal, under load, and the active node is killed during the
// migration. Afterwards nothing needs the first key any more.
import { expect } from 'chai';
import { parse } from 'yaml';
import { awsMock, awsRegion } from '../../packages/seals/test/awskms/aws-mock.ts';
import { LiveCluster } from './harness/live-cluster.ts';
import { scenarioMs } from './harness/scenario.ts';
import type { Seal } from './harness/seal-chain.ts';
import { migrate, statusOf } from './harness/seal-moves.ts';
import { blocksOf } from './harness/seals-page.ts';
import { expectNothingLost } from './harness/survivors.ts';
import { until } from './harness/until.ts';
import { Workload } from './harness/workload.ts';

const secret = 'the+secret+of+the+move';

describe('a cluster that moves between two keys of AWS KMS', function () {
  this.timeout(2 * scenarioMs);
  this.bail(true); // each test uses the cluster that the test before it leaves
  let mock: Awaited<ReturnType<typeof awsMock>>;
  let cluster: LiveCluster;
  let seals: readonly [Seal, Seal];

  before(async () => {
    mock = await awsMock();
    Object.defineProperty(mock.state, 'nowMs', { get: () => Date.now() });
    mock.state.credentials.set('AKIDEXAMPLE', { secret, session: undefined });
    const example = blocksOf('yaml', 'Migration').map((block) => parse(block) as { seal: Seal; migrate_seal_from: Seal });
    const { seal, migrate_seal_from: before } = example.find((one) => one.seal.type === one.migrate_seal_from.type) ?? {};
    if (seal === undefined || before === undefined) throw new Error('docs/seals.md shows no move between two seals of one type');
    const here = { region: awsRegion, endpoint: mock.address };
    seals = [
      { ...before, ...here, kms_key_id: 'one' },
      { ...seal, ...here, kms_key_id: 'two' },
    ];
    cluster = await LiveCluster.formed({
      seal: 'shamir',
      config: { raft: { election_timeout: '2s' } },
      env: () => ({ AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: secret }),
    });
    await migrate(cluster, { type: 'shamir' }, seals[0]);
  });
  after(async () => {
    await cluster?.end();
    await mock?.close();
  });

  it('loses no acknowledged write, although the active node is killed at the last share', async () => {
    const [from, to] = seals;
    const workload = await Workload.start(cluster, { clients: 2, settings: 4, counters: 2, seed: 22 });
    await migrate(cluster, from, to);
    await workload.stop();
    await expectNothingLost(cluster, workload);
    expect(workload.acknowledged).to.be.greaterThan(20);
  });

  it('starts without the first key, and gives random bytes of the service', async () => {
    mock.keys.remove('one');
    for (const node of cluster.nodes) {
      node.configure({ migrate_seal_from: undefined });
      await node.restart();
      await until(`${node.name} is unsealed`, async () => (await statusOf(node)).at('sealed') === false, {
        explain: () => node.tail(),
      });
      await cluster.settled();
    }
    for (const node of cluster.nodes) {
      const answer = await cluster.askWhenLed(node, 'POST', 'transit/random/seal/32');
      expect([answer.status, answer.at('warnings')], answer.text).to.deep.equal([200, null]);
    }
  });
});
