// Single links fail, fail in one direction, or are slow. A node that cannot reach the active node reports that and serves nothing.
import { expect } from 'chai';
import type { LinkMode } from './harness/link-proxy.ts';
import type { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { attempt } from './harness/outcome.ts';
import { scenarioMs, sharedCluster } from './harness/scenario.ts';
import { expectNothingLost } from './harness/survivors.ts';
import { until } from './harness/until.ts';
import { Workload } from './harness/workload.ts';

let serial = 0;
/** The key of the current test. */
const key = (): string => `rotating-${serial}`;

/** Returns the version with which this node encrypts now; undefined if it does not. */
async function versionAt(cluster: LiveCluster, node: LiveNode): Promise<number | undefined> {
  const outcome = await attempt(cluster.ask(node, 'POST', `transit/encrypt/${key()}`, { plaintext: 'AAAA' }));
  if (outcome.kind === 'done') return Number(outcome.answer.at('data.key_version'));
  if (outcome.kind === 'refused') expect(outcome.status, outcome.text).to.equal(503);
  return undefined;
}

/** Rotates through the active node and returns the new version. */
async function rotate(cluster: LiveCluster, leader: LiveNode): Promise<number> {
  const answer = await cluster.askWhenLed(leader, 'POST', `transit/keys/${key()}/rotate`, {});
  expect(answer.status, answer.text).to.equal(200);
  return Number(answer.at('data.latest_version'));
}

/** Returns how often this node has asked for votes, by its own metric. Such requests could disturb the other nodes. */
const campaigns = (cluster: LiveCluster, node: LiveNode): Promise<number> =>
  until(`${node.name} shows its metrics`, async () => {
    const { text } = await cluster.ask(node, 'GET', 'sys/metrics?format=prometheus');
    const [, count] = /^svc_raft_state_candidate (\d+)$/m.exec(text) ?? [];
    return count === undefined ? undefined : Number(count);
  });

/** Waits until this partitioned node has asked for votes more often than before. */
const hasCampaigned = (cluster: LiveCluster, node: LiveNode, before: number): Promise<true> =>
  until(`${node.name} asks for votes`, async () => (await campaigns(cluster, node)) > before, { explain: () => node.tail() });

type RotatingTask = (cluster: LiveCluster, leader: LiveNode, standby: LiveNode) => Promise<void>;

/** Runs the task with a new key at version 2. */
const withRotatingKey =
  (run: ReturnType<typeof sharedCluster>) =>
  (task: RotatingTask): Promise<void> =>
    run(async (cluster) => {
      serial += 1;
      const leader = await cluster.settled();
      const [standby = leader] = cluster.others(leader);
      expect((await cluster.askWhenLed(leader, 'POST', `transit/keys/${key()}`, {})).status).to.equal(200);
      expect(await rotate(cluster, leader)).to.equal(2);
      await task(cluster, leader, standby);
    });

describe('a cluster with broken links', function () {
  this.timeout(scenarioMs);
  const onShared = withRotatingKey(sharedCluster({ workers: 1 }));

  describe('a partitioned standby', () => {
    for (const mode of ['cut', 'blackhole', 'hold'] as const satisfies readonly LinkMode[]) {
      it(`serves nothing older than an acknowledged change, reports 474, and recovers (${mode})`, () =>
        onShared(async (cluster, leader, standby) => {
          expect(await versionAt(cluster, standby)).to.equal(2);
          const before = await campaigns(cluster, standby);
          cluster.isolate(standby, mode);
          const newest = await rotate(cluster, leader);
          expect(await versionAt(cluster, standby), 'after the rotation was answered').to.be.oneOf([undefined, newest]);
          await standby.reaches(474);
          expect(await versionAt(cluster, standby)).to.equal(undefined);
          const last = await rotate(cluster, leader);
          await hasCampaigned(cluster, standby, before);
          cluster.heal();
          // Delayed bytes may arrive now; they must not make the node fresh.
          for (;;) {
            const [code, version] = [(await standby.health())?.code, await versionAt(cluster, standby)];
            expect(version).to.be.oneOf([undefined, last]);
            if (code === 473 && version !== undefined) break;
          }
          expect(await cluster.settled(), 'it did not disturb the active node').to.equal(leader);
        }));
    }

    it('serves exactly when its health says that it serves', () =>
      onShared(async (cluster, leader, standby) => {
        cluster.isolate(standby);
        for (let code: number | undefined = 473; code !== 474; code = (await standby.health())?.code) {
          expect(code).to.be.oneOf([473, 429]);
          await versionAt(cluster, standby);
        }
        // No heartbeat can have been answered since then, so 474 and the refusal are stable.
        expect(await versionAt(cluster, standby)).to.equal(undefined);
        expect(await cluster.leader(cluster.others(standby))).to.equal(leader);
        cluster.heal();
      }));
  });

  describe('a link that loses bytes in one direction', () => {
    it('from the active node to one standby: the standby reports 474 and does not disturb the others', () =>
      onShared(async (cluster, leader, standby) => {
        const before = await campaigns(cluster, standby);
        cluster.loseOneWay(leader, standby);
        await standby.reaches(474);
        await rotate(cluster, leader);
        await hasCampaigned(cluster, standby, before);
        expect((await leader.health())?.code).to.equal(200);
        cluster.heal();
        expect(await cluster.settled()).to.equal(leader);
      }));

    it('from one standby to the active node: the standby reports 474 and does not disturb the others', () =>
      onShared(async (cluster, leader, standby) => {
        cluster.loseOneWay(standby, leader);
        await standby.reaches(474);
        await rotate(cluster, leader);
        expect((await leader.health())?.code).to.equal(200);
        cluster.heal();
        expect(await cluster.settled()).to.equal(leader);
      }));

    for (const { way, lose } of [
      {
        way: 'from the active node to all others',
        lose: (cluster: LiveCluster, a: LiveNode, b: LiveNode) => cluster.loseOneWay(a, b),
      },
      {
        way: 'from all others to the active node',
        lose: (cluster: LiveCluster, a: LiveNode, b: LiveNode) => cluster.loseOneWay(b, a),
      },
    ]) {
      it(`${way}: another node becomes active, and no acknowledged write is lost`, () =>
        onShared(async (cluster, leader) => {
          const workload = await Workload.start(cluster, { clients: 4, label: `run${serial}x` });
          await workload.nextWrite([leader]);
          const others = cluster.others(leader);
          for (const other of others) lose(cluster, leader, other);
          await cluster.leader(others);
          await workload.nextWrite(others);
          await leader.reaches(474);
          cluster.heal();
          await workload.nextWrite([leader]);
          await workload.stop();
          await expectNothingLost(cluster, workload);
        }));
    }

    it('between two standbys: has no effect', () =>
      onShared(async (cluster, leader, standby) => {
        const [other = standby] = cluster.others(leader, standby);
        cluster.link(standby, other, 'blackhole');
        cluster.link(other, standby, 'blackhole');
        const newest = await rotate(cluster, leader);
        for (const node of [standby, other]) expect(await versionAt(cluster, node)).to.equal(newest);
        expect(await cluster.settled()).to.equal(leader);
        cluster.heal();
      }));

    it('or slow links everywhere: health shows it, and the standby serves every acknowledged write', () =>
      onShared(async (cluster, leader, standby) => {
        cluster.isolate(standby, { delayMs: 150 });
        const newest = await rotate(cluster, leader);
        expect(await versionAt(cluster, standby)).to.equal(newest);
        let health = await standby.reaches(473);
        while (Number(health.body['echo_duration_ms']) < 300) health = await standby.reaches(473);
        expect(await cluster.settled()).to.equal(leader);
        cluster.heal();
      }));
  });
});
