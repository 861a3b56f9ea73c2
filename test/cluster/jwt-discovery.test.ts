// A jwt method that finds its keys at an OpenID provider follows the provider, through any node.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { FakeProvider } from '../../packages/node/test/providers/fake-provider.ts';
import type { Answer } from '../process/live-server.ts';
import type { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';
import { until } from './harness/until.ts';

describe('a jwt method with a discovery URL', function () {
  this.timeout(scenarioMs);
  const folder = mkdtempSync(join(tmpdir(), 'transitd-provider-'));
  after(() => rmSync(folder, { recursive: true }));

  it('follows a change of keys, and survives the loss of its provider and of the active node, through a standby', () =>
    withCluster({}, async (cluster) => {
      const provider = await FakeProvider.start(folder);
      try {
        provider.publish('one');
        const leader = await cluster.settled();
        const [standby = leader] = cluster.others(leader);
        await configured(cluster, standby, provider);

        for (const node of cluster.nodes) expect((await login(cluster, node, provider.signed('one'))).status).to.equal(200);
        expect((await login(cluster, standby, provider.signed('unknown'))).status, 'a stranger').to.equal(400);
        for (const claims of [{ iss: 'https://localhost' }, { aud: 'elsewhere' }, { exp: 1 }, { nbf: 4_000_000_000 }])
          expect((await login(cluster, standby, provider.signed('one', claims))).status, JSON.stringify(claims)).to.equal(400);

        provider.publish('two');
        await until('the new key is known', async () => (await login(cluster, standby, provider.signed('two'))).status === 200);
        for (const node of cluster.nodes) {
          const { status, text } = await login(cluster, node, provider.signed('one'));
          expect(status, 'a key that was withdrawn').to.equal(400);
          expect(text).to.include('ERR_JWKS_NO_MATCHING_KEY');
        }

        await leader.kill();
        await leader.start();
        const next = await cluster.settled();
        expect((await login(cluster, next, provider.signed('two'))).status, 'after a change of leader').to.equal(200);

        await provider.end();
        for (const node of cluster.nodes) expect((await login(cluster, node, provider.signed('two'))).status).to.equal(200);
        await until('new keys are refused', async () => {
          const { status, headers } = await cluster.ask(standby, 'POST', 'auth/jwt/login', {
            role: 'ci',
            jwt: provider.signed('three'),
          });
          return status === 503 && headers.get('Retry-After') !== null;
        });
        const lines = next.log.split('\n').filter((line) => line.includes('could not get the keys that verify tokens'));
        expect(lines.join()).to.include(`"provider":"${provider.url}"`);

        const refused = await cluster.askWhenLed(standby, 'POST', 'auth/jwt/config', configOf(provider));
        expect([refused.status, refused.at('errors')]).to.deep.equal([400, ['error checking oidc discovery URL: ECONNREFUSED']]);
        for (const node of cluster.nodes) expect((await login(cluster, node, provider.signed('two'))).status).to.equal(200);
      } finally {
        await provider.end();
      }
    }));
});

const configOf = ({ url, ca }: FakeProvider) => ({ oidc_discovery_url: url, oidc_discovery_ca_pem: ca });

async function configured(cluster: LiveCluster, node: LiveNode, provider: FakeProvider): Promise<void> {
  for (const [path, body] of [
    ['sys/auth/jwt', { type: 'jwt' }],
    ['auth/jwt/config', configOf(provider)],
    ['auth/jwt/role/ci', { user_claim: 'sub', bound_audiences: ['transitd'] }],
  ] as const) {
    const { status, text } = await cluster.askWhenLed(node, 'POST', path, body);
    expect(status, `${path}: ${text}`).to.be.oneOf([200, 204]);
  }
}

const login = (cluster: LiveCluster, node: LiveNode, jwt: string): Promise<Answer> =>
  cluster.askWhenLed(node, 'POST', 'auth/jwt/login', { role: 'ci', jwt });
