// Guarantees for a client that talks to one node, to several nodes, or to a lagging node.
import { expect } from 'chai';
import type { Answer } from '../process/live-server.ts';
import type { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, sharedCluster } from './harness/scenario.ts';

const rounds = 25;
const indexHeader = 'X-Service-Index';

async function ok(answer: Promise<Answer>): Promise<Answer> {
  const told = await answer;
  expect(told.status, told.text).to.be.oneOf([200, 204]);
  return told;
}

/** A token with every right on keys. */
async function newToken(cluster: LiveCluster, through: LiveNode): Promise<string> {
  const body = { policies: ['keys'], ttl: '1h' };
  return (await ok(cluster.askServing(through, 'POST', 'auth/token/create', body))).string('auth.client_token');
}

const keysPolicy = { policy: 'path "transit/*" { capabilities = ["create", "read", "update", "delete", "list"] }' };
/** A standby that stalled asks the active node; if that fails, it refuses at once, because it does not know a revoked token. */
const randomBytes = (cluster: LiveCluster, node: LiveNode, token: string): Promise<Answer> =>
  cluster.askUntilKnown(node, 'POST', 'transit/random/8', {}, { token });
const randomBytesOnce = (node: LiveNode, token: string): Promise<Answer> =>
  node.ask('POST', 'transit/random/8', { token, body: {} });
/** Returns the version that is the newest now. */
const rotate = async (cluster: LiveCluster, node: LiveNode, key: string): Promise<unknown> =>
  (await ok(cluster.askServing(node, 'POST', `transit/keys/${key}/rotate`, {}))).at('data.latest_version');

for (const { storage, workers } of [
  { storage: 'raft', workers: 1 },
  { storage: 'etcd', workers: 0 },
] as const) {
  describe(`with the records in ${storage}`, function () {
    this.timeout(scenarioMs);
    const onShared = sharedCluster({ storage, workers });

    describe('a client', () => {
      it('of one standby reads its own writes at once', () =>
        onShared(async (cluster) => {
          const leader = await cluster.settled();
          for (const node of cluster.nodes) {
            for (let i = 0; i < rounds; i++) {
              const key = `${node.name}-${i}`;
              await ok(cluster.askServing(node, 'POST', `transit/keys/${key}`, {}));
              await ok(cluster.askServing(node, 'GET', `transit/keys/${key}`));
              const newest = await rotate(cluster, node, key);
              expect(newest).to.be.at.least(2);
              const encrypted = await ok(cluster.askServing(node, 'POST', `transit/encrypt/${key}`, { plaintext: 'AAAA' }));
              expect(encrypted.at('data.key_version'), node.name).to.equal(newest);
            }
          }
          expect(await cluster.settled()).to.equal(leader);
        }));

      it('that sends the index of its write reads it on every other node', () =>
        onShared(async (cluster) => {
          await cluster.settled();
          for (const [n, writer] of cluster.nodes.entries()) {
            for (let i = 0; i < rounds; i++) {
              const key = `carried-${n}-${i}`;
              const written = await ok(cluster.askServing(writer, 'POST', `transit/keys/${key}`, {}));
              const index = written.headers.get(indexHeader);
              expect(index, 'the index of the write').to.be.a('string');
              for (const reader of cluster.others(writer))
                await ok(
                  cluster.askServing(reader, 'GET', `transit/keys/${key}`, undefined, {
                    headers: { [indexHeader]: index ?? '' },
                  }),
                );
            }
          }
        }));

      it('gets the same error through any standby as from the active node', () =>
        onShared(async (cluster) => {
          const leader = await cluster.settled();
          for (const [method, path, body] of [
            ['POST', 'transit/keys/missing/rotate', {}],
            ['GET', 'transit/keys/missing', undefined],
            ['POST', 'transit/keys/bad', { type: 'nonsense' }],
            ['POST', 'nowhere/keys/k', {}],
          ] as const) {
            const [there, ...here] = await Promise.all(
              [leader, ...cluster.others(leader)].map((node) => cluster.askServing(node, method, path, body)),
            );
            for (const { status, text } of here)
              expect({ status, text }, path).to.deep.equal({ status: there?.status, text: there?.text });
          }
        }));

      it('can use a token on every node at once, whichever node created it', () =>
        onShared(async (cluster) => {
          const leader = await cluster.settled();
          await ok(cluster.askServing(leader, 'PUT', 'sys/policies/acl/keys', keysPolicy));
          for (const maker of cluster.nodes) {
            for (let i = 0; i < rounds; i++) {
              const token = await newToken(cluster, maker);
              await Promise.all(cluster.nodes.map((node) => ok(randomBytes(cluster, node, token))));
            }
          }
        }));
    });

    describe('a change that takes rights or keys away', () => {
      it('is in force on every node when it is acknowledged: revocation of a token', () =>
        onShared(async (cluster) => {
          const leader = await cluster.settled();
          await ok(cluster.askServing(leader, 'PUT', 'sys/policies/acl/keys', keysPolicy));
          for (const through of cluster.nodes) {
            for (let i = 0; i < rounds; i++) {
              const token = await newToken(cluster, leader);
              await Promise.all(cluster.nodes.map((node) => ok(randomBytes(cluster, node, token))));
              await ok(cluster.askServing(through, 'POST', 'auth/token/revoke', { token }));
              const answers = await Promise.all(cluster.nodes.map((node) => randomBytes(cluster, node, token)));
              expect(
                answers.map(({ status }) => status),
                `revoked through ${through.name}`,
              ).to.deep.equal([403, 403, 403]);
            }
          }
        }));

      it('is in force on every node when it is acknowledged: policy, rotation, minimum version, deletion', () =>
        onShared(async (cluster) => {
          const leader = await cluster.settled();
          await ok(cluster.askServing(leader, 'PUT', 'sys/policies/acl/keys', keysPolicy));
          for (let i = 0; i < rounds; i++) {
            const key = `k-${i}`;
            const index =
              (await ok(cluster.askServing(leader, 'POST', `transit/keys/${key}`, {}))).headers.get(indexHeader) ?? '';
            const headers = { [indexHeader]: index };
            const everywhere = (path: string, body: unknown) =>
              Promise.all(cluster.nodes.map((node) => cluster.askServing(node, 'POST', path, body, { headers })));
            const [first] = await everywhere(`transit/encrypt/${key}`, { plaintext: 'AAAA' });
            const newest = await rotate(cluster, leader, key);
            expect(newest).to.be.at.least(2);
            for (const answer of await everywhere(`transit/encrypt/${key}`, { plaintext: 'AAAA' }))
              expect(answer.at('data.key_version')).to.equal(newest);
            await ok(
              cluster.askServing(leader, 'POST', `transit/keys/${key}/config`, {
                min_decryption_version: 2,
                deletion_allowed: true,
              }),
            );
            const ciphertext = first?.string('data.ciphertext');
            for (const { status, text } of await everywhere(`transit/decrypt/${key}`, { ciphertext }))
              expect(status, text).to.equal(400);
            await ok(cluster.askServing(leader, 'DELETE', `transit/keys/${key}`));
            for (const { status, text } of await everywhere(`transit/decrypt/${key}`, { ciphertext }))
              expect(status, text).to.equal(400);
            for (const node of cluster.nodes)
              expect((await cluster.askServing(node, 'GET', `transit/keys/${key}`)).status).to.equal(404);
          }
          const token = await newToken(cluster, leader);
          await Promise.all(cluster.nodes.map((node) => ok(randomBytes(cluster, node, token))));
          await ok(cluster.askServing(leader, 'DELETE', 'sys/policies/acl/keys'));
          const answers = await Promise.all(cluster.nodes.map((node) => randomBytes(cluster, node, token)));
          expect(answers.map(({ status }) => status)).to.deep.equal([403, 403, 403]);
        }));

      it('is not acknowledged until a partitioned standby no longer serves', () =>
        onShared(async (cluster) => {
          const leader = await cluster.settled();
          const [standby = leader] = cluster.others(leader);
          await ok(cluster.askServing(leader, 'PUT', 'sys/policies/acl/keys', keysPolicy));
          let served = 0;
          for (let round = 0; round < 3; round++) {
            const token = await newToken(cluster, leader);
            await Promise.all(cluster.nodes.map((node) => ok(randomBytes(cluster, node, token))));
            cluster.isolate(standby);
            let revoked = false;
            const revoking = ok(cluster.askServing(leader, 'POST', 'auth/token/revoke', { token })).then(() => {
              revoked = true;
            });
            while (!revoked) {
              const { status } = await randomBytesOnce(standby, token);
              if (status === 200) served += 1;
            }
            for (let i = 0; i < 20; i++) {
              const { status } = await randomBytesOnce(standby, token);
              expect(status, 'after the revocation was answered').to.be.oneOf([403, 503]);
            }
            await revoking;
            cluster.heal();
            await standby.reaches(473);
            expect((await randomBytes(cluster, standby, token)).status).to.equal(403);
          }
          expect(served, 'it served for as long as it might').to.be.greaterThan(0);
        }));
    });
  });
}
