// @live
// Rotates the authority that signs the nodes' certificates while the cluster serves.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { remove } from './harness/removal.ts';
import { scenarioMs, withCluster, withNodes } from './harness/scenario.ts';
import { expectNothingLost } from './harness/survivors.ts';
import { until } from './harness/until.ts';
import { Workload } from './harness/workload.ts';

interface Rotation {
  readonly phase: string;
  readonly authority: string;
  readonly waits_for: readonly string[];
}

async function rotation(cluster: LiveCluster, through: LiveNode): Promise<Rotation> {
  const answer = await cluster.askWhenLed(through, 'GET', 'sys/storage/raft/authority');
  expect(answer.status, answer.text).to.equal(200);
  return answer.at('data') as Rotation;
}

async function rotate(cluster: LiveCluster, through: LiveNode): Promise<void> {
  const answer = await cluster.askWhenLed(through, 'POST', 'sys/storage/raft/authority/rotate', {});
  expect(answer.status, answer.text).to.equal(204);
}

const reaches = (cluster: LiveCluster, through: LiveNode, phase: string): Promise<Rotation> =>
  until(
    `the rotation is ${phase}`,
    async () => {
      const state = await rotation(cluster, through);
      return state.phase === phase && state;
    },
    { explain: () => cluster.tails() },
  );

const authorityOn = (node: LiveNode): unknown => JSON.parse(readFileSync(join(node.dataDir, 'identity.json'), 'utf8')).authority;

/** Starts a rotation and kills the active node. Returns undefined, with all nodes alive, if the rotation had ended before that. */
async function diesInTheMiddle(cluster: LiveCluster) {
  const leader = await cluster.settled();
  const [other = leader, third = leader] = cluster.others(leader);
  const before = await rotation(cluster, other);
  const old = authorityOn(leader);
  expect([before.phase, before.waits_for]).to.deep.equal(['none', []]);
  await rotate(cluster, other);
  const isAnnounced = ({ phase, authority }: Rotation): boolean => phase !== 'switched' && authority === before.authority;
  await until('the new authority signs', async () => !isAnnounced(await rotation(cluster, other)), {
    explain: () => cluster.tails(),
  });
  await leader.kill();
  // A member is away, so the rotation does not end unless it has.
  if ((await rotation(cluster, other)).phase === 'switched') return { leader, other, third, before, old };
  await leader.start();
  return undefined;
}

describe("the cluster's authority is rotated", function () {
  this.timeout(scenarioMs);

  it('under load, while the active node dies in the middle and a member restarts; then a new node joins', () =>
    withCluster({}, async (cluster) => {
      const workload = await Workload.start(cluster, { clients: 4 });
      const { leader, other, third, before, old } = await until('the active node dies in the middle', () =>
        diesInTheMiddle(cluster),
      );
      await third.restart();
      await until('the others have certificates of the new one', () => ![other, third].map(authorityOn).includes(old), {
        explain: () => cluster.tails(),
      });
      await leader.start(); // the node knows no certificate of a member until a member has sent it the membership list
      const after = await reaches(cluster, other, 'none');
      expect(after.authority)
        .to.match(/^[0-9a-f]{64}$/)
        .and.not.equal(before.authority);
      const now = cluster.nodes.map(authorityOn);
      expect(new Set(now).size, 'one authority').to.equal(1);
      expect(now).to.not.include(old);
      for (const node of cluster.nodes) await node.restart();
      await cluster.settled();
      await workload.stop();
      await expectNothingLost(cluster, workload);
      await rotate(cluster, other);
      const again = await reaches(cluster, other, 'none');
      expect([before.authority, after.authority]).to.not.include(again.authority);
      const active = await cluster.settled();
      const [lost = active] = cluster.others(active);
      await lost.replace();
      await remove(cluster, lost, { through: active });
      await cluster.join(lost, active);
      await cluster.settled();
      expect(authorityOn(lost)).to.equal(authorityOn(active));
    }));

  it('only after every member trusts the new one: it waits for an absent member, and continues when the member returns', () =>
    withCluster({ elections: 'never' }, async (cluster) => {
      const leader = await cluster.settled();
      const [away = leader, other = leader] = cluster.others(leader);
      await away.kill();
      await rotate(cluster, other);
      const { phase, waits_for } = await until('it waits', async () => {
        const state = await rotation(cluster, other);
        return state.waits_for.length === 1 && state;
      });
      expect([phase, waits_for]).to.deep.equal(['announced', [away.name]]);
      const again = await cluster.ask(other, 'POST', 'sys/storage/raft/authority/rotate', {});
      expect([again.status, again.text]).to.satisfy(
        ([status, text]: [number, string]) => status === 400 && /in progress/.test(text),
      );
      await away.start();
      await reaches(cluster, other, 'none');
      expect(new Set(cluster.nodes.map(authorityOn)).size).to.equal(1);
      await cluster.settled();
    }));

  it('and is kept when an older snapshot is restored: its key is available, and a node can join', () =>
    withNodes({ elections: 'never' }, async (cluster) => {
      const [leader, standby, late] = [cluster.node(1), cluster.node(2), cluster.node(3)];
      await cluster.initialize(leader);
      await cluster.join(standby, leader);
      await cluster.settled([leader, standby]);
      const url = `${leader.apiAddress}/v1/sys/storage/raft/snapshot`;
      const headers = { 'X-Service-Token': cluster.rootToken };
      const snapshot = Buffer.from(await (await fetch(url, { headers })).arrayBuffer());
      await rotate(cluster, standby);
      const { authority } = await reaches(cluster, standby, 'none');
      expect((await cluster.askWhenLed(leader, 'POST', 'sys/rotate')).status).to.equal(204);
      const restored = await fetch(url, { method: 'POST', headers, body: snapshot });
      expect(restored.status, await restored.text()).to.equal(200);
      expect(await rotation(cluster, standby)).to.deep.equal({ phase: 'none', authority, waits_for: [] });
      await rotate(cluster, standby);
      expect((await reaches(cluster, standby, 'none')).authority).to.not.equal(authority);
      await cluster.join(late, standby);
      await cluster.settled();
      expect(new Set(cluster.nodes.map(authorityOn)).size).to.equal(1);
    }));
});
