// Operators read and change the membership through every kind of node.
import { expect } from 'chai';
import type { Answer } from '../process/live-server.ts';
import type { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { readmit } from './harness/removal.ts';
import { scenarioMs, sharedCluster, withCluster } from './harness/scenario.ts';
import { until } from './harness/until.ts';

const raft = 'sys/storage/raft';

interface Server {
  readonly node_id: string;
  readonly id: string;
  readonly address: string;
  readonly leader: boolean;
  readonly protocol_version: string;
  readonly voter: boolean;
  readonly non_voter: boolean;
}

function listAt<T>(answer: Answer, path: string): readonly T[] {
  const list: unknown = answer.at(path);
  if (!Array.isArray(list)) throw new Error(`no list at ${path} in ${answer.status} ${answer.text}`);
  return list;
}

async function serversOn(cluster: LiveCluster, node: LiveNode): Promise<readonly Server[]> {
  return listAt(await cluster.askWhenLed(node, 'GET', `${raft}/configuration`), 'data.config.servers');
}

async function serverOn(cluster: LiveCluster, node: LiveNode, name: string): Promise<Server | undefined> {
  return (await serversOn(cluster, node)).find(({ node_id }) => node_id === name);
}

const change = (cluster: LiveCluster, through: LiveNode, what: string, server_id?: string): Promise<Answer> =>
  cluster.askWhenLed(through, 'POST', `${raft}/${what}`, server_id === undefined ? {} : { server_id });

describe('the API of Raft', function () {
  this.timeout(scenarioMs);
  const onShared = sharedCluster({ elections: 'never' });

  describe('the members of a cluster', () => {
    it('are listed by every node, and no node is shown as leader while none leads', () =>
      withCluster({}, async (cluster) => {
        const leader = await cluster.settled();
        for (const node of cluster.nodes) {
          const servers = await serversOn(cluster, node);
          expect(servers.map(({ node_id, voter }) => `${node_id} ${voter}`)).to.have.members(['n1 true', 'n2 true', 'n3 true']);
          expect(servers.filter((one) => one.leader).map(({ node_id }) => node_id)).to.deep.equal([leader.name]);
          for (const { id, address, protocol_version, non_voter } of servers) {
            expect(id).to.match(/^[1-9]\d*$/);
            expect(address).to.match(/^127\.0\.0\.\d+:\d+$/);
            expect([protocol_version, non_voter]).to.deep.equal(['3', false]);
          }
        }
        const [last = leader, ...rest] = cluster.others(leader);
        await Promise.all([leader, ...rest].map((node) => node.kill()));
        await until('no server leads', async () => (await serversOn(cluster, last)).every((one) => !one.leader));
        expect(await serversOn(cluster, last)).to.have.length(3);
      }));

    it('are removed, demoted and promoted by name or id; an impossible change is refused with the reason', () =>
      withCluster({ elections: 'never' }, async (cluster) => {
        const leader = await cluster.settled();
        const [b = leader, c = leader] = cluster.others(leader);
        for (const { what, id, status, says } of [
          { what: 'remove-peer', id: undefined, status: 400, says: /no server id provided/ },
          { what: 'remove-peer', id: 'nobody', status: 400, says: /no member has the name or the id nobody/ },
          { what: 'promote', id: 'nobody', status: 400, says: /no member has the name or the id nobody/ },
          { what: 'demote', id: 'nobody', status: 400, says: /no member has the name or the id nobody/ },
          { what: 'demote', id: undefined, status: 400, says: /no server id provided/ },
        ]) {
          const answer = await change(cluster, b, what, id);
          expect(answer.status, `${what} ${id}: ${answer.text}`).to.equal(status);
          expect(answer.text).to.match(says);
        }
        expect((await change(cluster, b, 'demote', c.name)).status).to.equal(204);
        await until('c is seen not to vote', async () => {
          const seen = await serverOn(cluster, b, c.name);
          return seen !== undefined && !seen.voter && seen.non_voter;
        });
        expect((await change(cluster, leader, 'demote', c.name)).status, 'once more').to.equal(204);
        await c.reaches(473);
        await cluster.ask(leader, 'POST', 'transit/keys/between', {});
        expect((await serverOn(cluster, leader, c.name))?.voter, 'it stays one').to.equal(false);
        const byId = (await serverOn(cluster, leader, c.name))?.id;
        expect((await change(cluster, c, 'promote', byId)).status).to.equal(204);
        await cluster.settled();

        await c.kill();
        await until('c is missed', async () => {
          const state = await cluster.ask(leader, 'GET', `${raft}/autopilot/state`);
          return state.at(`data.servers.${c.name}.node_status`) === 'failed';
        });
        const refused = await change(cluster, leader, 'remove-peer', b.name);
        expect([refused.status, refused.text]).to.satisfy(
          ([status, text]: [number, string]) => status === 400 && /of the 2 remaining voters, only 1 are reachable/.test(text),
        );
        for (const what of ['removed', 'removed already'])
          expect((await change(cluster, leader, 'remove-peer', c.name)).status, what).to.equal(204);
        expect((await change(cluster, leader, 'remove-peer', b.name)).status).to.equal(204);
        await b.reaches(530);
        const lastVoter = await change(cluster, leader, 'remove-peer', leader.name);
        expect(lastVoter.status).to.equal(400);
        expect(lastVoter.text).to.match(/last voter/);
        expect((await cluster.askWhenLed(leader, 'POST', 'transit/keys/alone', {})).status).to.equal(200);
      }));

    it('no longer serve anything when their removal is acknowledged', () =>
      withCluster({ workers: 1 }, async (cluster) => {
        const leader = await cluster.settled();
        const [gone = leader] = cluster.others(leader);
        await cluster.ask(leader, 'POST', 'transit/keys/k', {});
        // The node is partitioned, but its last heartbeat was answered a moment ago.
        cluster.isolate(gone);
        expect((await change(cluster, leader, 'remove-peer', gone.name)).status).to.equal(204);
        const answer = await cluster.ask(gone, 'GET', 'transit/keys/k');
        expect(answer.status, answer.text).to.equal(503);
      }));

    for (const by of ['itself', 'the standby that takes over', 'another standby'] as const) {
      it(`transfer leadership first when the active node is demoted or removed through ${by}`, () =>
        onShared(async (cluster) => {
          let leader = await cluster.settled();
          let through = by === 'itself' ? leader : (cluster.others(leader)[by === 'another standby' ? 1 : 0] ?? leader);
          const demoted = await change(cluster, through, 'demote', leader.name);
          expect(demoted.status, demoted.text).to.equal(204);
          const next = await cluster.leader(cluster.others(leader));
          expect((await serverOn(cluster, next, leader.name))?.voter).to.equal(false);
          expect((await change(cluster, next, 'promote', leader.name)).status).to.equal(204);
          await cluster.settled();
          leader = await cluster.leader();
          through = by === 'itself' ? leader : (cluster.others(leader)[by === 'another standby' ? 1 : 0] ?? leader);
          const removed = await change(cluster, through, 'remove-peer', leader.name);
          expect(removed.status, removed.text).to.equal(204);
          await leader.reaches(530);
          await readmit(cluster, leader, { through: await cluster.settled(cluster.others(leader)) });
        }));
    }
  });

  describe('the state of a cluster', () => {
    it('is reported as by autopilot, and follows changes of the members', () =>
      onShared(async (cluster) => {
        const leader = await cluster.settled();
        const [b = leader, c = leader] = cluster.others(leader);
        const state = (through: LiveNode): Promise<Answer> => cluster.askWhenLed(through, 'GET', `${raft}/autopilot/state`);
        const well = await until('all are healthy', async () => {
          const answer = await state(c);
          return answer.at('data.healthy') === true && answer;
        });
        expect(well.at('data.failure_tolerance')).to.equal(1);
        expect(well.at('data.leader')).to.equal(leader.name);
        expect(well.at('data.voters')).to.have.members(['n1', 'n2', 'n3']);
        expect(well.at(`data.servers.${b.name}`)).to.include({
          id: b.name,
          name: b.name,
          node_status: 'alive',
          healthy: true,
          status: 'voter',
        });
        expect(well.string(`data.servers.${b.name}.last_contact`)).to.match(/^\d+(\.\d+)?s$/);
        expect(well.string(`data.servers.${b.name}.stable_since`)).to.match(/^20\d\d-.*Z$/);
        expect(well.at(`data.servers.${leader.name}.status`)).to.equal('leader');
        expect((await cluster.askWhenLed(c, 'PUT', 'sys/seal')).status).to.equal(204);
        await until('a sealed node is not healthy', async () => {
          const answer = await state(b);
          return answer.at(`data.servers.${c.name}.healthy`) === false && answer.at('data.failure_tolerance') === 0;
        });
        expect((await state(leader)).at(`data.servers.${c.name}.node_status`)).to.equal('alive');
        expect((await state(leader)).at('data.healthy')).to.equal(false);
        await c.restart();
      }));

    it('has settings that are the same on every node, and refuses settings that could cost the quorum', () =>
      onShared(async (cluster) => {
        const leader = await cluster.settled();
        const [b = leader, c = leader] = cluster.others(leader);
        const path = `${raft}/autopilot/configuration`;
        expect((await cluster.askWhenLed(b, 'GET', path)).at('data')).to.deep.equal({
          cleanup_dead_servers: false,
          dead_server_last_contact_threshold: '24h0m0s',
          last_contact_threshold: '10s',
          max_trailing_logs: 1000,
          min_quorum: 0,
          server_stabilization_time: '10s',
        });
        for (const body of [
          { cleanup_dead_servers: true },
          { cleanup_dead_servers: true, min_quorum: 2 },
          { dead_server_last_contact_threshold: '59s' },
          { last_contact_threshold: 0 },
          { max_trailing_logs: -1 },
        ])
          expect((await cluster.askWhenLed(b, 'POST', path, body)).status, JSON.stringify(body)).to.equal(400);
        const body = { cleanup_dead_servers: 'true', min_quorum: 3, dead_server_last_contact_threshold: '90s' };
        expect((await cluster.askWhenLed(b, 'POST', path, body)).status).to.equal(204);
        for (const node of [leader, b, c]) {
          const read = await cluster.askWhenLed(node, 'GET', path);
          expect([read.at('data.cleanup_dead_servers'), read.at('data.min_quorum')]).to.deep.equal([true, 3]);
          expect(read.at('data.dead_server_last_contact_threshold')).to.equal('1m30s');
        }
        expect((await cluster.askWhenLed(b, 'POST', path, { min_quorum: 1 })).status, 'beside what is stored').to.equal(400);
        expect((await cluster.askWhenLed(b, 'POST', path, { cleanup_dead_servers: false, min_quorum: 0 })).status).to.equal(204);
      }));

    it('is reported by ha-status and leader, and a step-down through any node transfers leadership', () =>
      onShared(async (cluster) => {
        let leader = await cluster.settled();
        for (const by of [0, 1, 2]) {
          const through = by === 0 ? leader : (cluster.others(leader)[by - 1] ?? leader);
          interface Seen {
            readonly api_address: string;
            readonly active_node: boolean;
            readonly hostname: string;
            readonly last_echo: string | null;
            readonly version: string;
            readonly upgrade_version: string;
          }
          const status = await until('all have sent a heartbeat', async () => {
            const nodes = listAt<Seen>(await cluster.askWhenLed(through, 'GET', 'sys/ha-status'), 'data.nodes');
            return nodes.filter(({ last_echo }) => last_echo !== null).length === 2 && nodes;
          });
          expect(status.map(({ api_address }) => api_address)).to.have.members(cluster.nodes.map((node) => node.apiAddress));
          expect(status.filter((one) => one.active_node).map((one) => one.api_address)).to.deep.equal([leader.apiAddress]);
          for (const one of status) {
            expect(one.hostname).not.to.equal('');
            expect(one.version).to.match(/^\d+\./);
            expect(one.upgrade_version).to.equal(one.version);
          }
          for (const node of cluster.nodes) {
            const told = await node.ask('GET', 'sys/leader');
            expect(told.at('leader_address')).to.equal(leader.apiAddress);
            expect(told.at('is_self')).to.equal(node === leader ? true : undefined);
            expect(told.at('active_time') !== undefined).to.equal(node === leader);
          }
          const answer = await cluster.askWhenLed(through, 'PUT', 'sys/step-down');
          expect([answer.status, answer.text]).to.deep.equal([204, '']);
          const before = leader;
          leader = await cluster.leader(cluster.others(before));
          await cluster.settled();
        }
        const token = await cluster.askWhenLed(leader, 'POST', 'auth/token/create', { policies: ['default'] });
        const denied = await leader.ask('PUT', 'sys/step-down', { token: token.string('auth.client_token') });
        expect(denied.status).to.equal(403);
        expect(await cluster.leader()).to.equal(leader);
      }));
  });
});
