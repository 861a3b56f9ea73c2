// @live
// Client certificates in a cluster: a standby passes the one that it has verified to the active node, and no client can imitate it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { padding, sha256Of, TestAuthority, type TestIdentity } from '../../packages/cluster/test/test-authority.ts';
import { Connection } from '../process/gateways/connection.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';

describe('client certificates in a cluster', function () {
  this.timeout(scenarioMs);
  let folder = '';
  let authority: TestAuthority;
  let client: TestIdentity;
  let tls: object;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-client-certificates-'));
    const file = (name: string, content: string): string => {
      writeFileSync(join(folder, name), content);
      return join(folder, name);
    };
    authority = await TestAuthority.make();
    client = await authority.certify({ subject: 'CN=web' });
    const server = await authority.certify({ subject: 'CN=server', usages: ['serverAuth'] });
    tls = {
      cert_file: file('server.crt', server.cert),
      key_file: file('server.key', server.key),
      client_ca_file: file('ca.crt', authority.cert),
      client_auth: 'optional',
    };
  });
  after(() => rmSync(folder, { recursive: true }));

  const urlOf = async ({ server }: LiveNode): Promise<string> =>
    (await server.log(/"address":"(https:[^"]+)","msg":"listening"/))[1] ?? '';

  it('log in and use bound tokens through every node and thread, before and after a change of the active node', () =>
    withCluster({ workers: 1, listeners: (host) => [{ address: `${host}:0`, tls }] }, async (cluster) => {
      const leader = await cluster.settled();
      const urls = await Promise.all(cluster.nodes.map(urlOf));
      await cluster.ask(leader, 'POST', 'transit/keys/shared');
      await cluster.ask(leader, 'POST', 'sys/policies/acl/user', {
        policy: 'path "transit/*" { capabilities = ["read", "update"] }',
      });
      await cluster.ask(leader, 'POST', 'sys/auth/cert', { type: 'cert' });
      const role = { certificate: authority.cert, token_policies: ['user'], token_bound_certificate: true };
      const written = await cluster.ask(leader, 'POST', 'auth/cert/certs/web', role);
      expect(written.status, written.text).to.equal(204);

      const on = async <T>(identity: TestIdentity | undefined, task: (each: Connection) => Promise<T>): Promise<T[]> => {
        // Several connections to each node, so that both of its threads serve some.
        const all = urls.flatMap((url) =>
          Array.from({ length: 6 }, () => new Connection(url, '', { isPatient: true, ...(identity && { identity }) })),
        );
        const results = await Promise.all(all.map(task));
        for (const each of all) each.close();
        return results;
      };
      const large = await authority.certify({ extensions: [padding(7_500)] });
      for (const { status, text } of await on(large, (each) =>
        each.call('POST', 'auth/cert/login', {}, { headers: { 'X-Long': 'x'.repeat(15 * 1024) } }),
      ))
        expect(status, text).to.equal(200);
      const imitation = { 'X-Transitd-Certificate': `9999999999999.AA.${sha256Of(client.cert)},${sha256Of(authority.cert)}` };
      const checked = async (): Promise<void> => {
        const tokens = await on(client, async (each) => {
          const { status, text } = await each.call('POST', 'auth/cert/login', {});
          expect(status, text).to.equal(200);
          return JSON.parse(text).auth.client_token as string;
        });
        for (const refused of await on(undefined, (each) => each.call('POST', 'auth/cert/login', {}, { headers: imitation })))
          expect(refused.text).to.include('client certificate must be supplied');
        const [token = ''] = tokens;
        for (const [method, path, body] of [
          ['POST', 'transit/encrypt/shared', { plaintext: 'aGVsbG8=' }],
          ['POST', 'auth/token/renew-self', {}],
        ] as const) {
          const statuses = (identity: TestIdentity | undefined) =>
            on(identity, async (each) => (await each.call(method, path, body, { token, headers: imitation })).status);
          expect(new Set(await statuses(client)), path).to.deep.equal(new Set([200]));
          expect(new Set(await statuses(undefined)), `${path} without the certificate`).to.deep.equal(new Set([403]));
        }
      };
      await checked();
      const stepped = await cluster.ask(leader, 'POST', 'sys/step-down');
      expect(stepped.status, stepped.text).to.be.oneOf([200, 204]);
      expect(await cluster.settled()).not.to.equal(leader);
      await checked();
    }));
});
