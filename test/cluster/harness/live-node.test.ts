// Tests of the test harness, on single nodes.
import { expect } from 'chai';
import { safety } from '../../safety.ts';
import { LiveCluster } from './live-cluster.ts';
import { scenarioMs } from './scenario.ts';
import { losses } from './survivors.ts';
import { until } from './until.ts';
import { Workload } from './workload.ts';

describe('a node under test', () => {
  let cluster: LiveCluster;
  afterEach(() => cluster.end());

  for (const seal of ['static', 'shamir'] as const) {
    it(`is initialized with a ${seal} seal, killed and started again`, async function () {
      this.timeout(scenarioMs);
      cluster = await LiveCluster.start({ size: 1, seal });
      const node = cluster.node(1);
      expect((await node.health())?.code).to.equal(501);
      await cluster.initialize(node);
      expect(await cluster.leader()).to.equal(node);
      await node.kill();
      expect(await node.health()).to.equal(undefined);
      await node.start();
      if (seal === 'shamir') {
        await node.reaches(503);
        await cluster.unseal(node);
      }
      await node.reaches(200);
      expect(node.log.match(/"msg":"started"/g), 'both processes are in its log').to.have.length(2);
      expect(await node.stop()).to.deep.equal({ code: 0, signal: null });
    });
  }

  it('does not answer while it is frozen, and has lost everything when it is replaced', async function () {
    this.timeout(scenarioMs);
    cluster = await LiveCluster.start({ size: 1 });
    const node = cluster.node(1);
    await cluster.initialize(node);
    node.pause();
    const outcome = await node.ask('GET', 'sys/health', { withinMs: 300 }).catch((error: Error) => error.name);
    expect(outcome).to.equal('TimeoutError');
    node.resume();
    await node.reaches(200);
    await node.replace();
    await node.reaches(501);
  });

  it('ends its workload, so that a failing test leaves nothing running', async function () {
    this.timeout(scenarioMs);
    cluster = await LiveCluster.start({ size: 1 });
    await cluster.initialize(cluster.node(1));
    const workload = await Workload.start(cluster);
    await workload.nextWrite(cluster.nodes);
    void workload.nextWrite([]); // never resolves
    await cluster.end();
    const { size } = workload.history;
    await workload.stop();
    expect(workload.history.size, 'calls after the end').to.equal(size);
    expect(cluster.node(1).alive).to.equal(false);
  });

  it('keeps every acknowledged write under load and kills, as the checker confirms', async function () {
    this.timeout(scenarioMs);
    cluster = await LiveCluster.start({ size: 1 });
    const node = cluster.node(1);
    await cluster.initialize(node);
    const workload = await Workload.start(cluster);
    for (let kill = 0; kill < 3; kill++) {
      const target = workload.acknowledged + 100;
      await until('a hundred more writes', () => workload.acknowledged >= target);
      await node.kill();
      const next = workload.nextWrite([node]);
      await node.start();
      await next;
    }
    await workload.stop();
    expect(await losses(cluster, workload), safety).to.deep.equal([]);
    expect(workload.encrypted.length).to.be.greaterThan(10);

    // Both must be found: an impossible change and a missing key.
    workload.created.add('never-made');
    // With few unknown outcomes, the checker reaches a verdict within its limit of steps.
    const unknownOf = (name: string): number => workload.history.callsOf(name).filter(({ heard }) => heard === undefined).length;
    const keys = workload.history.keys.toSorted((one, other) => unknownOf(one) - unknownOf(other));
    const [key = ''] = keys.filter((name) => name.startsWith('setting'));
    workload.history.returned(workload.history.begin(key, 'setting', { kind: 'set', value: 99_999 }), 99_999);
    const [counter = ''] = keys.filter((name) => name.startsWith('counter'));
    workload.history.returned(workload.history.begin(counter, 'counter', { kind: 'rotate' }), 1);
    workload.encrypted.push({ key: counter, ciphertext: 'svc:v1:AAAA', plaintext: 'AAAA' });
    const found = (await losses(cluster, workload)).map((text) => text.split('\n')[0] ?? '');
    expect(found.filter((text) => /^setting-\d+ is violated/.test(text))).to.have.length(1);
    expect(found.filter((text) => /^counter-\d+ is violated/.test(text))).to.have.length(1);
    expect(found.filter((text) => text.includes('never-made'))).to.have.length(1);
    expect(found.filter((text) => text.includes('svc:v1:AAAA'))).to.have.length(1);
    expect(found).to.have.length(4);
  });
});
