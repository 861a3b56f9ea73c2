// The active node fails in every possible way, and every acknowledged write survives.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { base64 } from '../process/live-server.ts';
import type { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { attempt, type Outcome } from './harness/outcome.ts';
import { scenarioMs, sharedCluster, withCluster } from './harness/scenario.ts';
import { expectNothingLost } from './harness/survivors.ts';
import { until } from './harness/until.ts';
import { Workload } from './harness/workload.ts';

let serial = 0;
/** Creates one more key through this node. */
const write = (cluster: LiveCluster, node: LiveNode): Promise<Outcome> => {
  serial += 1;
  return attempt(cluster.ask(node, 'POST', `transit/keys/write-${serial}`, {}));
};
/** Returns a label for a workload, so that its key names are not used by any other workload on the cluster. */
const label = (): string => `run${++serial}x`;
const told = (outcome: Outcome): string => JSON.stringify(outcome);

/**
 * At least so long after the end of the active node, standbys let their callers wait: two election timeouts (5 s in these clusters), one
 * heartbeat interval and 1 s after the last contact, which was at most one interval (1 s) before that end.
 */
const waitMs = 2 * 5_000 + 1_000;

/** Runs a load through all nodes during a change of leader, and checks its history. */
async function underLoad(cluster: LiveCluster, change: (leader: LiveNode) => Promise<void>): Promise<void> {
  const workload = await Workload.start(cluster, { label: label() });
  const leader = await cluster.settled();
  await workload.nextWrite([leader]);
  await change(leader);
  await workload.nextWrite(cluster.others(leader));
  await workload.stop();
  await expectNothingLost(cluster, workload);
}

describe('a cluster of three nodes', function () {
  this.timeout(scenarioMs);
  const onShared = sharedCluster({ workers: 1 });

  describe('another node becomes active', () => {
    for (const by of ['the active node', 'a standby'] as const) {
      it(`after a step-down through ${by}`, () =>
        onShared((cluster) =>
          underLoad(cluster, async (leader) => {
            const through = by === 'a standby' ? cluster.others(leader)[0] : leader;
            const answer = await cluster.ask(through ?? leader, 'PUT', 'sys/step-down');
            expect(answer.status, answer.text).to.equal(204);
            await cluster.leader(cluster.others(leader));
            await leader.reaches(473);
          }),
        ));
    }

    it('and accepts every write from the moment at which the step-down is answered, even if it was a standby before', () =>
      onShared(async (cluster) => {
        for (let handover = 0; handover < 8; handover++) {
          const leader = await cluster.settled();
          const answer = await cluster.ask(leader, 'PUT', 'sys/step-down');
          expect(answer.status, answer.text).to.equal(204);
          const writes = cluster.nodes.map((node) => ({ node, calls: Array.from({ length: 8 }, () => write(cluster, node)) }));
          const next = await cluster.leader();
          for (const { node, calls } of writes) {
            for (const outcome of await Promise.all(calls)) {
              if (node === next) expect(outcome.kind, `${node.name}: ${told(outcome)}`).to.equal('done');
            }
          }
        }
      }));

    it('when the leader is killed; the killed node returns as a standby', () =>
      onShared((cluster) =>
        underLoad(cluster, async (leader) => {
          await leader.kill();
          await cluster.leader(cluster.others(leader));
          await leader.start();
          await leader.reaches(473);
        }),
      ));

    it('when the leader is stopped: it transfers leadership first and exits with 0', () =>
      onShared((cluster) =>
        underLoad(cluster, async (leader) => {
          expect(await leader.stop()).to.deep.equal({ code: 0, signal: null });
          await cluster.leader(cluster.others(leader));
          await leader.start();
          await leader.reaches(473);
        }),
      ));

    it('when the leader is sealed: it transfers leadership first, answers 503, and keeps voting', () =>
      withCluster({ workers: 1, seal: 'shamir' }, async (cluster) => {
        await underLoad(cluster, async (leader) => {
          const answer = await cluster.ask(leader, 'PUT', 'sys/seal');
          expect(answer.status, answer.text).to.equal(204);
          expect((await leader.health())?.code).to.equal(503);
          const next = await cluster.leader(cluster.others(leader));
          // The sealed node still votes: the last unsealed node needs its vote for a majority.
          await next.kill();
          const last = await cluster.leader(cluster.others(leader, next));
          expect((await write(cluster, last)).kind).to.equal('done');
          await next.start();
          for (const node of [leader, next]) await cluster.unseal(node);
          await cluster.settled();
        });
      }));

    it('when the leader is frozen: the standby answers requests that hang with 503, and the old leader returns as a standby', () =>
      onShared(async (cluster) => {
        const workload = await Workload.start(cluster, { clients: 4, label: label() });
        const leader = await cluster.settled();
        const [through = leader] = cluster.others(leader);
        leader.pause();
        const hanging = write(cluster, through);
        const asked = write(cluster, leader); // received by the kernel, read when the process continues
        await cluster.leader(cluster.others(leader));
        const outcome = await hanging;
        if (outcome.kind === 'refused') expect(outcome.status, told(outcome)).to.equal(503);
        if (outcome.kind === 'unknown') expect(outcome.text, 'an answer, not a time-out of the caller').to.match(/^50[34] /);
        await workload.nextWrite(cluster.others(leader));
        leader.resume();
        expect((await leader.reaches(200, 429, 473, 474)).code, 'at once after it continues').not.to.equal(200);
        await leader.reaches(473);
        await asked;
        await workload.stop();
        await expectNothingLost(cluster, workload);
      }));

    it('when the leader is frozen, while the standbys refuse nobody who encrypts, even if the election takes long', () =>
      onShared(async (cluster) => {
        const leader = await cluster.settled();
        const others = cluster.others(leader);
        expect((await cluster.askWhenLed(leader, 'POST', 'transit/keys/encrypts-on', {})).status).to.equal(200);
        const done = new Map(others.map((node) => [node, 0]));
        const failed: string[] = [];
        let [pausedMs, isOver] = [Number.POSITIVE_INFINITY, false];
        const encrypt = async (node: LiveNode): Promise<void> => {
          while (!isOver) {
            const outcome = await attempt(
              cluster.ask(node, 'POST', 'transit/encrypt/encrypts-on', { plaintext: base64('text') }),
            );
            if (outcome.kind === 'done') done.set(node, (done.get(node) ?? 0) + 1);
            // On a machine that stalls, an election may take longer than standbys wait for it.
            else if (performance.now() - pausedMs < waitMs) failed.push(`${node.name}: ${told(outcome)}`);
            await nextTurn();
          }
        };
        const callers = others.map(encrypt);
        const more = async (count: number): Promise<void> => {
          const wanted = new Map([...done].map(([node, before]) => [node, before + count]));
          await until('each standby encrypts', () => others.every((node) => (done.get(node) ?? 0) >= (wanted.get(node) ?? 0)));
        };
        try {
          await more(10);
          leader.pause();
          pausedMs = performance.now();
          await cluster.leader(others);
          await more(10);
        } finally {
          isOver = true;
          await Promise.all(callers);
          leader.resume();
        }
        expect(failed).to.deep.equal([]);
        await leader.reaches(473);
      }));

    it('when the leader is partitioned: it accepts no more writes, and its acknowledged writes survive', () =>
      onShared(async (cluster) => {
        const workload = await Workload.start(cluster, { clients: 6, label: label() });
        const leader = await cluster.settled();
        const others = cluster.others(leader);
        await workload.nextWrite([leader]);
        cluster.isolate(leader);
        const hanging = write(cluster, leader);
        const next = await cluster.leader(others);
        await until('the other side takes writes', async () => (await write(cluster, next)).kind === 'done');
        // The node may not know yet that it lost leadership. Until it does, requests hang and have no effect; then it refuses them.
        expect((await write(cluster, leader)).kind, 'once another one leads').not.to.equal('done');
        expect((await hanging).kind, 'the write that hung when it was cut off').not.to.equal('done');
        expect((await leader.reaches(474)).body['standby']).to.equal(true);
        for (let i = 0; i < 20; i++) expect((await write(cluster, leader)).kind).to.equal('refused');
        cluster.heal();
        await leader.reaches(473);
        await workload.stop();
        await expectNothingLost(cluster, workload);
      }));
  });

  describe('without a quorum', () => {
    /** Nothing is served: reads, cryptography and writes get 503 with Retry-After. */
    async function servesNothing(cluster: LiveCluster, node: LiveNode): Promise<void> {
      for (const [method, path, body] of [
        ['GET', 'transit/keys/old', undefined],
        ['POST', 'transit/encrypt/old', { plaintext: 'AAAA' }],
        ['POST', 'transit/random/8', {}],
        ['POST', 'transit/keys/old/rotate', {}],
        ['POST', 'transit/keys/new', {}],
        ['GET', 'auth/token/lookup-self', undefined],
      ] as const) {
        const answer = await cluster.ask(node, method, path, body);
        expect(answer.status, `${method} ${path}: ${answer.text}`).to.equal(503);
        expect(answer.headers.get('retry-after'), `${method} ${path}: ${answer.text}`).to.match(/^\d+$/);
      }
    }

    it('a standby whose two peers are killed goes from 473 to 474, stays there and serves nothing', () =>
      onShared(async (cluster) => {
        const leader = await cluster.settled();
        const [dies = leader, stays = leader] = cluster.others(leader);
        expect((await cluster.askWhenLed(leader, 'POST', 'transit/keys/old', {})).status).to.equal(200);
        await Promise.all([leader.kill(), dies.kill()]);
        await stays.reaches(474);
        await servesNothing(cluster, stays);
        for (let i = 0; i < 50; i++) expect((await stays.health())?.code).to.equal(474);
        await Promise.all([leader.start(), dies.start()]);
        await cluster.settled();
        expect((await cluster.askWhenLed(stays, 'GET', 'transit/keys/old')).status).to.equal(200);
      }));

    it('a leader whose followers are killed steps down; its hanging write gets 503, and it accepts no more', () =>
      onShared(async (cluster) => {
        const leader = await cluster.settled();
        expect((await cluster.askWhenLed(leader, 'POST', 'transit/keys/old', {})).status).to.equal(200);
        await Promise.all(cluster.others(leader).map((node) => node.kill()));
        const hanging = await write(cluster, leader);
        expect(hanging.kind, told(hanging)).not.to.equal('done');
        if (hanging.kind === 'unknown') expect(hanging.text).to.match(/^50[34] .*outcome unknown/i);
        if (hanging.kind === 'refused') expect(hanging.status, told(hanging)).to.equal(503);
        await leader.reaches(474);
        await servesNothing(cluster, leader);
        await Promise.all(cluster.others(leader).map((node) => node.start()));
        await cluster.settled();
      }));
  });
});
