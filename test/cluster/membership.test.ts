// Nodes leave, return, are replaced, and catch up.
import { execFileSync } from 'node:child_process';
import { renameSync, rmSync } from 'node:fs';
import { expect } from 'chai';
import { damageLog, generationsIn } from './harness/disk-damage.ts';
import { expectHealthBody } from './harness/health-body.ts';
import { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { attempt, type Outcome } from './harness/outcome.ts';
import { readmit, remove } from './harness/removal.ts';
import { scenarioMs, sharedCluster, withCluster, withNodes } from './harness/scenario.ts';
import { caughtUp, expectNothingLost } from './harness/survivors.ts';
import { until } from './harness/until.ts';
import { Workload } from './harness/workload.ts';

/** Expects that the node reports 530 and is sealed, and that no request changes that. */
async function isOut(cluster: LiveCluster, node: LiveNode, member: LiveNode): Promise<void> {
  expectHealthBody(await node.reaches(530));
  for (const [method, path] of [
    ['GET', 'transit/keys/any'],
    ['POST', 'transit/encrypt/any'],
    ['POST', 'transit/keys/any'],
    ['GET', 'auth/token/lookup-self'],
  ] as const) {
    const answer = await cluster.ask(node, method, path, method === 'POST' ? { plaintext: 'AAAA' } : undefined);
    expect(answer.status, `${method} ${path}: ${answer.text}`).to.equal(503);
  }
  const join = await cluster.joinAnswer(node, member);
  expect(join.status, join.text).to.be.within(400, 499);
  expect(join.text, 'the reason').to.match(/"errors":\["[^"]*remove/i);
  const status = await node.ask('GET', 'sys/seal-status');
  expect(status.at('sealed'), status.text).to.equal(true);
  expect(status.at('removed_from_cluster'), status.text).to.equal(true);
  expect((await node.health())?.code).to.equal(530);
}

describe('a node that is removed', function () {
  this.timeout(scenarioMs);
  const onShared = sharedCluster();

  for (const through of ['the active node', 'another standby', 'itself'] as const) {
    it(`while it runs, through ${through}: reports 530, is sealed, and cannot return with its data`, () =>
      onShared(async (cluster) => {
        const leader = await cluster.settled();
        const [gone = leader, stays = leader] = cluster.others(leader);
        await remove(cluster, gone, { through: through === 'itself' ? gone : through === 'another standby' ? stays : leader });
        await isOut(cluster, gone, leader);
        expect(await cluster.settled([leader, stays])).to.equal(leader);
        expect(await cluster.voters(leader)).to.have.members([leader.name, stays.name]);
        expect((await cluster.askWhenLed(stays, 'POST', 'transit/keys/after', {})).status).to.equal(200);
        await gone.restart();
        await isOut(cluster, gone, leader);
        // After another start, the node knows of its removal although no peer can report it.
        await gone.stop();
        cluster.isolate(gone, 'cut');
        await gone.start();
        await isOut(cluster, gone, leader);
        await stays.kill(); // a removed node has no vote, and one of two voters is not a quorum
        await leader.reaches(474);
        cluster.heal();
        await stays.start();
        await readmit(cluster, gone, { through: await cluster.settled([leader, stays]) });
      }));
  }

  it('while it is down: learns of its removal from a peer when it returns', () =>
    onShared(async (cluster) => {
      const leader = await cluster.settled();
      const [gone = leader, stays = leader] = cluster.others(leader);
      await gone.kill();
      await remove(cluster, gone, { through: leader });
      await cluster.settled([leader, stays]);
      await gone.start();
      await isOut(cluster, gone, leader);
      expect(await cluster.settled([leader, stays])).to.equal(leader);
      await readmit(cluster, gone, { through: leader });
    }));

  it('while it is active: another becomes active, and it reports 530', () =>
    onShared(async (cluster) => {
      const leader = await cluster.settled();
      const others = cluster.others(leader);
      await remove(cluster, leader, { through: others[0] ?? leader });
      const next = await cluster.leader(others);
      await isOut(cluster, leader, next);
      await cluster.settled(others);
      await readmit(cluster, leader, { through: next });
    }));

  it('is the only one that reports 530: a node that cannot reach the others does not', () =>
    onShared(async (cluster) => {
      const leader = await cluster.settled();
      const [away = leader] = cluster.others(leader);
      await away.kill();
      cluster.isolate(away, 'cut');
      await away.start();
      await away.reaches(474);
      cluster.heal();
      await cluster.settled();
    }));
});

describe('a majority of the members elects a leader', function () {
  this.timeout(scenarioMs);

  it('although one of them has started to remove the other, and no other node knows of it', () =>
    withCluster({}, async (cluster) => {
      // A leader that reaches nobody refuses a removal after a moment. If the machine stalls for that long, the test tries again.
      const { leader, gone, dies, abandoned } = await until(
        'the removal is in the log of a leader that reaches nobody',
        async () => {
          const leader = await cluster.settled();
          const [gone = leader, dies = leader] = cluster.others(leader);
          cluster.isolate(leader, 'cut');
          let outcome: Outcome | undefined;
          const abandoned = attempt(cluster.ask(leader, 'POST', 'sys/storage/raft/remove-peer', { server_id: gone.name })).then(
            (ended) => {
              outcome = ended;
            },
          );
          const started = await until('the leader has the removal in its log, or refuses it', async () => {
            const ended = outcome?.kind;
            return (await cluster.voters(leader)).length === 2 ? 'logged' : ended;
          });
          if (started === 'logged') return { leader, gone, dies, abandoned };
          expect(started).to.equal('refused');
          cluster.heal();
          return false;
        },
      );
      await cluster.leader([gone, dies]);
      await dies.kill();
      cluster.heal();
      expect(await cluster.voters(await cluster.settled([leader, gone]))).to.have.members(['n1', 'n2', 'n3']);
      await abandoned;
    }));

  it('although one of them was away while the other joined and a third was removed', () =>
    withNodes({ size: 4 }, async (cluster) => {
      const [first, second, away, last] = [cluster.node(1), cluster.node(2), cluster.node(3), cluster.node(4)];
      await cluster.initialize(first);
      for (const node of [second, away]) await cluster.join(node, first);
      await cluster.settled([first, second, away]);
      await away.kill();
      await cluster.join(last, first);
      await cluster.settled([first, second, last]);
      await remove(cluster, first, { through: second });
      await first.reaches(530);
      await first.stop();
      await until('the node that joined last leads', async () => {
        const leader = await cluster.settled([second, last]);
        if (leader === last) return true;
        await cluster.ask(leader, 'PUT', 'sys/step-down');
        return false;
      });
      await away.start();
      expect(await cluster.settled([second, away, last])).to.equal(last);
      await second.kill();
      await cluster.settled([away, last]);
    }));
});

describe('a member whose configuration file was changed', function () {
  this.timeout(scenarioMs);

  it('is refused in one sentence, with exit code 1, under the name of another or without its cluster port', () =>
    withCluster({}, async (cluster) => {
      const leader = await cluster.settled();
      const [changed = leader, other = leader] = cluster.others(leader);
      await changed.stop();
      for (const { change, says } of [
        {
          change: { node_id: other.name },
          says: `node_id is ${other.name}, but data_dir belongs to the member ${changed.name} of a cluster`,
        },
        { change: { cluster_addr: undefined, cluster_listen: undefined }, says: 'cluster_addr is missing' },
      ]) {
        const before = changed.configure(change);
        const server = changed.launch();
        expect(await server.exited, changed.tail()).to.deep.equal({ code: 1, signal: null });
        expect(server.stderr)
          .to.include(says)
          .and.not.match(/^ +at /m);
        changed.configure(before);
      }
      await changed.start();
      await cluster.settled();
      expect(await cluster.voters(leader)).to.have.members(['n1', 'n2', 'n3']);
    }));
});

describe('a node that is replaced', function () {
  this.timeout(scenarioMs);
  const onShared = sharedCluster();

  it('by an empty one: it joins under the same name after the removal, and has everything', () =>
    onShared(async (cluster) => {
      const workload = await Workload.start(cluster, { clients: 4, label: 'empty' });
      const leader = await cluster.settled();
      const [lost = leader, stays = leader] = cluster.others(leader);
      await workload.nextWrite([lost]);
      await lost.replace();
      expectHealthBody(await lost.reaches(501));
      await remove(cluster, lost, { through: leader });
      await cluster.join(lost, stays);
      await cluster.settled();
      expect(await cluster.voters(leader)).to.have.members(['n1', 'n2', 'n3']);
      await workload.nextWrite([lost]);
      await workload.stop();
      await expectNothingLost(cluster, workload);
    }));

  it('because its log is damaged: it reports that in one sentence, exits with 74, and is replaced', () =>
    onShared(async (cluster) => {
      const workload = await Workload.start(cluster, { clients: 4, label: 'damaged' });
      const leader = await cluster.settled();
      const [hurt = leader] = cluster.others(leader);
      for (let i = 0; i < 50; i++) await workload.nextWrite([leader]);
      await hurt.stop();
      damageLog(hurt.dataDir);
      expect(await hurt.launch().exited).to.deep.equal({ code: 74, signal: null });
      expect(lastWords(hurt)).to.match(/^[^\n]+\.$/);
      await isReplaced(cluster, { hurt, leader, workload });
    }));

  it('because its disk was rolled back: the others refuse it, it reports that, exits with 74, and is replaced', () =>
    onShared(async (cluster) => {
      const workload = await Workload.start(cluster, { clients: 4, label: 'earlier' });
      const leader = await cluster.settled();
      const [hurt = leader] = cluster.others(leader);
      await workload.nextWrite([hurt]);
      await hurt.stop();
      const earlier = `${hurt.dataDir}-earlier`;
      execFileSync('cp', ['-a', hurt.dataDir, earlier]); // with its modes
      await hurt.start();
      await caughtUp(cluster, hurt);
      await workload.nextWrite([hurt]);
      await hurt.kill();
      rmSync(hurt.dataDir, { recursive: true });
      renameSync(earlier, hurt.dataDir);
      expect(await hurt.launch().exited).to.deep.equal({ code: 74, signal: null });
      expect(lastWords(hurt)).to.match(
        /^node \d+ knows a later incarnation of this node: .*\.$|^The log ends at entry \d+ but entry \d+ was acknowledged .*\.$/,
      );
      // The next start of the node raises its incarnation to a number that the other nodes have not seen yet.
      expect(await hurt.launch().exited).to.deep.equal({ code: 74, signal: null });
      await isReplaced(cluster, { hurt, leader, workload });
    }));
});

describe('a voter whose disk was rolled back while no node runs that knew it better', function () {
  this.timeout(scenarioMs);

  it('can lose acknowledged writes for the others, and the node that has them stops with 74 and says so', async () => {
    const cluster = await LiveCluster.formed();
    try {
      const has = await cluster.settled();
      const [rolledBack, away] = cluster.others(has) as [LiveNode, LiveNode];
      await rolledBack.stop();
      const earlier = `${rolledBack.dataDir}-earlier`;
      execFileSync('cp', ['-a', rolledBack.dataDir, earlier]); // with its modes
      await rolledBack.start();
      await cluster.settled();
      await away.stop();
      expect((await cluster.askWhenLed(has, 'POST', 'transit/keys/acknowledged', {})).status).to.equal(200);
      await Promise.all([has.kill(), rolledBack.kill()]);
      rmSync(rolledBack.dataDir, { recursive: true });
      renameSync(earlier, rolledBack.dataDir);
      const others = [away, rolledBack];
      await Promise.all(others.map((node) => node.start()));
      const leader = await cluster.leader(others);
      expect((await cluster.askWhenLed(leader, 'GET', 'transit/keys/acknowledged')).status).to.equal(404);
      expect(await has.launch().exited).to.deep.equal({ code: 74, signal: null });
      expect(has.log).to.match(/"level":"fatal"[^\n]*a committed entry is contradicted: [^\n]* empty no data_dir/);
      await cluster.leader(others);
    } finally {
      await cluster.end();
    }
  });
});

/** Replaces the node by one with an empty disk that joins again. Expects that no acknowledged write was lost. */
async function isReplaced(
  cluster: LiveCluster,
  { hurt, leader, workload }: { readonly hurt: LiveNode; readonly leader: LiveNode; readonly workload: Workload },
): Promise<void> {
  await remove(cluster, hurt, { through: leader });
  await readmit(cluster, hurt, { through: leader });
  await cluster.settled();
  await workload.stop();
  await expectNothingLost(cluster, workload);
}

/** Returns the reason that an ended node logged last. */
function lastWords({ server }: LiveNode): string {
  const line = server.stderr.split('\n').find((text) => text.includes('"level":"fatal"'));
  return String(JSON.parse(line ?? '{}').reason);
}

describe('a node that was away for long', function () {
  this.timeout(scenarioMs);

  it('gets a snapshot if the log that it misses was compacted, and has every acknowledged write', () =>
    withCluster({ config: { raft: { snapshot_threshold: 200, trailing_logs: 50 } } }, async (cluster) => {
      const leader = await cluster.settled();
      const [away = leader, stays = leader] = cluster.others(leader);
      await away.kill();
      expect(generationsIn(away.dataDir)).to.deep.equal(['generation-1']);
      // The leader keeps log entries for a node that it heard recently.
      await until('the leader considers the node dead', async () => {
        const state = await cluster.ask(leader, 'GET', 'sys/storage/raft/autopilot/state');
        return state.at(`data.servers.${away.name}.node_status`) === 'failed';
      });
      const keys = 400; // more entries than the log keeps
      const names = Array.from({ length: keys }, (_, i) => `key-${i}`);
      const clients = Array.from({ length: 20 }, async () => {
        for (let name = names.shift(); name !== undefined; name = names.shift()) {
          const path = `transit/keys/${name}`;
          await until(`${name} is created`, async () => (await attempt(cluster.ask(leader, 'POST', path, {}))).kind === 'done');
        }
      });
      await Promise.all(clients);
      await away.start();
      await away.reaches(473);
      await caughtUp(cluster, away);
      await until('a new copy is in the place of the old one', () => !generationsIn(away.dataDir).includes('generation-1'));
      for (let i = 0; i < keys; i += 7)
        expect((await cluster.askWhenLed(away, 'GET', `transit/keys/key-${i}`)).status, `key-${i}`).to.equal(200);
      // The new node votes and leads like any other.
      await leader.kill();
      const next = await cluster.leader([away, stays]);
      expect((await cluster.askWhenLed(next, 'POST', 'transit/keys/later', {})).status).to.equal(200);
      await leader.start();
      await cluster.settled();
    }));
});

describe('a voter that was away while all members that it knew were replaced', function () {
  this.timeout(scenarioMs);

  it('is admitted again by the signed membership list, also after a restart, and votes', () =>
    withNodes({ size: 5 }, async (cluster) => {
      const [first, second, away] = [cluster.node(1), cluster.node(2), cluster.node(3)];
      const later = [cluster.node(4), cluster.node(5)];
      await cluster.initialize(first);
      for (const node of [second, away]) await cluster.join(node, first);
      await cluster.settled([first, second, away]);
      await away.kill();
      for (const node of later) await cluster.join(node, first);
      await cluster.settled([first, second, ...later]);
      await until('one of those that joined last leads', async () => {
        const leader = await cluster.leader([first, second, ...later]);
        if (later.includes(leader)) return true;
        await cluster.ask(leader, 'PUT', 'sys/step-down');
        return false;
      });
      const leader = await cluster.leader(later);
      for (const node of [first, second]) {
        await remove(cluster, node, { through: leader });
        await node.reaches(530);
        await node.stop();
      }
      await cluster.settled(later);
      await until('the active node warns of that', () =>
        leader.log.includes('a voter that cannot be reached may know only nodes that have left'),
      );
      expect((await cluster.askWhenLed(leader, 'POST', 'transit/keys/while-away', {})).status).to.equal(200);
      await away.start();
      await cluster.settled([away, ...later]);
      expect((await cluster.askWhenLed(away, 'GET', 'transit/keys/while-away')).status).to.equal(200);
      expect(away.log).to.contain('a signed membership list names members that the log of this node does not hold yet');
      // The vote of this node counts: without it, the leader would have only one of three votes.
      await leader.kill();
      const [stays = leader] = later.filter((node) => node !== leader);
      await cluster.settled([away, stays]);
      expect((await cluster.askWhenLed(away, 'POST', 'transit/keys/after', {})).status).to.equal(200);
    }));
});
