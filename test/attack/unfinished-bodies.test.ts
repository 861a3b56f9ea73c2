// @live
// Requests with unfinished bodies must not hold a standby's connections to the active node.
import { expect } from 'chai';
import { scenarioMs, withCluster } from '../cluster/harness/scenario.ts';
import { until } from '../cluster/harness/until.ts';
import { ask, HeldConnections, head } from './callers.ts';

const many = 300;
const stranger = '127.0.0.66';
/** Shorter than the time limit for a body (30 s), which ends what holds a connection, and longer than a stall of the machine. */
const withinMs = 20_000;

/** A long interval, so that large bodies, which keep both nodes busy, do not cut this standby off. */
const config = { cluster_heartbeat_interval: '10s' };

describe('unfinished bodies at a standby', function () {
  this.timeout(scenarioMs);

  it('do not delay writes through it, whether from callers without a token, with an unknown token or with a valid one', () =>
    withCluster({ size: 2, workers: 1, elections: 'never', config }, async (cluster) => {
      const leader = await cluster.settled();
      const [standby = leader] = cluster.others(leader);
      const held = new HeldConnections();
      const figure = async (kind: string): Promise<number> => {
        const { text } = await cluster.ask(standby, 'GET', 'sys/metrics?format=prometheus');
        return Number(new RegExp(`^svc_core_requests_executing\\{kind="${kind}"\\} (\\d+)$`, 'm').exec(text)?.[1]);
      };
      let key = 0;
      const writes = async (what: string): Promise<void> => {
        for (let n = 0; n < 5; n += 1) {
          const path = `transit/keys/k${key++}`;
          const write = await ask(standby.apiAddress, 'POST', path, { body: {}, token: cluster.rootToken, withinMs });
          expect(write.status, `${what}: ${write.text}`).to.equal(200);
        }
      };
      try {
        for (const [what, sent] of [
          ['open operations', `${head('sys/wrapping/lookup', 1000)}{"token":`],
          ['open operations, chunked', `${head('auth/userpass/login/amy', 'chunked')}1\r\n{\r\n`],
          ['unknown tokens', `${head('transit/keys/x', 1000, 'hvs.unknown')}{"type":`],
          ['unknown tokens, long bodies', `${head('transit/keys/x', 1_000_000, 'hvs.unknown')}{"type":`],
          ['unknown tokens, chunked', `${head('transit/keys/x', 'chunked', 'hvs.unknown')}1\r\n{\r\n`],
          ['a known token', `${head('transit/keys/x', 1000, cluster.rootToken)}{"type":`],
          ['a known token, long bodies', `${head('transit/keys/x', 1_000_000, cluster.rootToken)}{"type":`],
        ] as const) {
          await Promise.all(Array.from({ length: many }, () => held.open(standby.apiAddress, sent, stranger)));
          await writes(what);
          const login = { body: { token: 'none' }, withinMs };
          if (!what.startsWith('unknown') && !what.startsWith('a known'))
            expect((await ask(standby.apiAddress, 'POST', 'sys/wrapping/lookup', login)).status, what).to.equal(400);
        }
        expect(await figure('forwarded_unauthenticated_streams')).to.be.at.most(8);
        expect(await figure('forwarded_streams')).to.be.at.most(32);
        expect(await figure('forwarded_unauthenticated')).to.equal(0);
      } finally {
        held.end();
      }
      await until('nothing is left of them', async () => (await figure('forwarded_unauthenticated_streams')) === 0);
      expect(await figure('forwarded_streams')).to.equal(0);
      const large = Buffer.from(JSON.stringify({ x: 'A'.repeat(30 * 1024 * 1024) }));
      const largeWrites = Array.from({ length: 4 }, (_, n) =>
        ask(standby.apiAddress, 'POST', `transit/keys/large${n}`, { body: large, token: cluster.rootToken }),
      );
      for (const { status, text } of await Promise.all(largeWrites)) expect(status, `a large body: ${text}`).to.equal(200);
    }));
});
