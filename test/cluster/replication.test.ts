// A primary cluster is lost under load, and its secondary takes over.
import { setTimeout as delay } from 'node:timers/promises';
import { indexIn } from '@transitd/http';
import { expect } from 'chai';
import { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs } from './harness/scenario.ts';
import { until } from './harness/until.ts';

const dr = 'sys/replication/dr';

const site = (): Promise<LiveCluster> => LiveCluster.formed({ size: 2, seal: 'shamir', links: 'direct' });

const codesOf = (cluster: LiveCluster): Promise<readonly (number | undefined)[]> =>
  Promise.all(cluster.nodes.map(async (node) => (await node.health('?standbyok=true&perfstandbyok=true'))?.code));

/** Waits until every node, active or standby, answers with this code. */
const reach = (cluster: LiveCluster, code: number): Promise<boolean> =>
  until(`all nodes answer ${code}`, async () => (await codesOf(cluster)).every((seen) => seen === code), {
    explain: () => cluster.tails(),
  });

const positionOf = async (node: LiveNode, name: string): Promise<number> =>
  Number((await node.ask('GET', `${dr}/status`)).at(`data.${name}`));

/** Takes a backup. */
async function backupOf({ apiAddress }: LiveNode, token: string): Promise<ArrayBuffer> {
  const response = await fetch(`${apiAddress}/v1/sys/storage/raft/snapshot`, { headers: { 'X-Service-Token': token } });
  expect(response.status).to.equal(200);
  return response.arrayBuffer();
}

async function restore({ apiAddress }: LiveNode, token: string, body: ArrayBuffer): Promise<string> {
  const headers = { 'X-Service-Token': token };
  const response = await fetch(`${apiAddress}/v1/sys/storage/raft/snapshot`, { method: 'POST', headers, body });
  return `${response.status} ${await response.text()}`;
}

/** Leaves the processors to the nodes. */
const writePauseMs = 20;

/** Creates keys one after another until the cluster no longer answers. */
class Load {
  readonly acknowledged: { readonly name: string; readonly index: number }[] = [];
  readonly ended: Promise<void>;
  #isStopped = false;

  constructor(cluster: LiveCluster, node: LiveNode) {
    this.ended = this.#run(cluster, node);
  }

  stop(): Promise<void> {
    this.#isStopped = true;
    return this.ended;
  }

  async #run(cluster: LiveCluster, node: LiveNode): Promise<void> {
    for (let at = 0; !this.#isStopped; at++) {
      const name = `k${at}`;
      try {
        const { status, headers } = await cluster.ask(node, 'POST', `transit/keys/${name}`, {});
        const index = indexIn(headers.get('x-service-index') ?? undefined)?.index;
        if (status < 300 && index !== undefined) this.acknowledged.push({ name, index });
        await delay(writePauseMs);
      } catch {
        return;
      }
    }
  }
}

describe('a primary cluster and its secondary', function () {
  this.timeout(scenarioMs);
  const clusters: LiveCluster[] = [];
  after(async () => {
    for (const cluster of clusters) await cluster.end();
  });

  it('lose at most what comes after the position of the promotion', async () => {
    const east = await site();
    clusters.push(east);
    const west = await site();
    clusters.push(west);
    const [active, target] = [await east.leader(), await west.leader()];
    const control = (cluster: LiveCluster, node: LiveNode, path: string, body: object = {}, token = cluster.rootToken) =>
      cluster.askWhenLed(node, 'POST', `${dr}/${path}`, body, { token });

    expect((await control(east, active, 'primary/enable')).status).to.equal(204);
    const token = await until('the members are listed', async () => {
      const answer = await control(east, active, 'primary/secondary-token', { id: 'west' });
      return answer.status === 200 && answer.string('data.token');
    });
    const enabled = await control(west, target, 'secondary/enable', { token });
    expect(enabled.status, enabled.text).to.equal(204);
    await reach(west, 503); // the shares of the primary now unseal this cluster too
    for (const node of west.nodes) await west.unseal(node, east.shares);
    await reach(west, 472);
    await reach(east, 200);
    const raised = await west.askWhenLed(target, 'POST', 'sys/feature-level/raise', {}, { token: east.rootToken });
    expect(raised.status, `in an upgrade, the secondary raises its level first: ${raised.text}`).to.equal(200);

    const follower = west.others(target)[0] ?? target;
    const standby = east.others(active)[0] ?? active;
    const digestOf = async (node: LiveNode) => (await node.ask('GET', `${dr}/status`)).at('data.merkle_root');
    const backup = await backupOf(standby, east.rootToken);
    expect((await east.askWhenLed(active, 'POST', 'transit/keys/undone', {})).status).to.be.lessThan(300);
    expect(await restore(target, east.rootToken, backup)).to.match(/^400 .*path disabled/);
    expect(await restore(standby, east.rootToken, backup)).to.match(/^200 /);
    for (const node of east.nodes) expect((await east.askWhenLed(node, 'GET', 'transit/keys/undone')).status).to.equal(404);
    await until(
      'the secondary has the restored state',
      async () => (await digestOf(target)) !== undefined && (await digestOf(target)) === (await digestOf(active)),
      { explain: () => west.tails() },
    );
    await reach(west, 472); // its nodes still have the root key

    const load = new Load(east, active);
    east.bears(load);
    await until(
      'the load is replicated',
      async () => (await positionOf(target, 'last_remote_wal')) > (load.acknowledged[20]?.index ?? 1e9),
    );
    const refused = await follower.ask('GET', 'transit/keys/k0', { token: east.rootToken });
    expect([refused.status, refused.text]).to.deep.equal([
      400,
      '{"errors":["path disabled in replication DR secondary mode: ask the primary cluster"]}\n',
    ]);

    await Promise.all(east.nodes.map((node) => node.kill()));
    await load.stop();
    const promoted = await control(west, target, 'secondary/promote', { force: true }, east.rootToken);
    expect(promoted.status, promoted.text).to.equal(200);
    const [position, known, missing] = ['position', 'primary_position', 'missing'].map((name) =>
      Number(promoted.at(`data.${name}`)),
    ) as [number, number, number];
    expect(missing, 'as far as this secondary has heard').to.equal(Math.max(0, known - position));
    await reach(west, 200);
    expect(await codesOf(east), 'the lost site').to.deep.equal([undefined, undefined]);

    const keys: unknown = (await target.ask('LIST', 'transit/keys', { token: east.rootToken })).at('data.keys');
    const present = new Set(Array.isArray(keys) ? keys : []);
    const lost = load.acknowledged.filter(({ name }) => !present.has(name));
    expect([...present], 'what the restore has undone').not.to.include('undone');
    expect(load.acknowledged.length).to.be.greaterThan(20);
    expect(
      lost.filter(({ index }) => index <= position),
      'nothing up to the position is lost',
    ).to.deep.equal([]);
    expect(lost.filter(({ index }) => index <= known).length, 'of those that were known to be missing').to.be.at.most(missing);
    const written = await target.ask('POST', 'transit/encrypt/k0', { token: east.rootToken, body: { plaintext: 'eA==' } });
    expect(written.status, written.text).to.equal(200);
    const created = await follower.ask('POST', 'transit/keys/new', { token: east.rootToken, body: {} });
    expect(created.status, created.text).to.be.lessThan(300);

    // The former primary learns of the promotion and stops serving. Then it follows the new primary and drops the records that only it had.
    await Promise.all(east.nodes.map((node) => node.start()));
    for (const node of east.nodes) await east.unseal(node);
    await reach(east, 472);
    const former = await until('a node of the former primary leads', async () => {
      for (const node of east.nodes) if ((await node.ask('GET', 'sys/leader')).at('is_self') === true) return node;
      return undefined;
    });
    const back = await control(west, target, 'primary/secondary-token', { id: 'east' }, east.rootToken);
    const followed = await control(east, former, 'secondary/enable', { token: back.string('data.token') });
    expect(followed.status, followed.text).to.equal(204);
    await until(
      'the former primary has the records of the promoted cluster',
      async () => {
        const digest = await digestOf(former);
        return digest !== undefined && digest === (await digestOf(target));
      },
      {
        explain: () => `${east.tails()}
${west.tails()}`,
      },
    );
    await reach(east, 472);
    await reach(west, 200);
  });
});
