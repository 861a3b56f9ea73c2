// Pods log in through any node, as docs/kubernetes.md describes it; an API server in this process reviews their tokens.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { StubApiServer, serveReviews } from '../../packages/api/test/auth/stub-api-server.ts';
import { makeCertificate } from '../../packages/process/test/certificate.ts';
import { runBlocks, shellBlocks } from '../docs/page.ts';
import { planted } from '../process/secret-watch.ts';
import type { LiveNode } from './harness/live-node.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';
import { until } from './harness/until.ts';

const [setUp = '', logIn = ''] = shellBlocks('docs/kubernetes.md', 'Logins of pods');
const reviewer = planted('reviewer').replaceAll(/[^\w-]/g, '-');

describe('kubernetes logins in a cluster', function () {
  this.timeout(scenarioMs);
  const folder = mkdtempSync(join(tmpdir(), 'transitd-pods-'));
  const { cert_file, key_file } = makeCertificate(folder, 'localhost');
  const [ca, key] = [readFileSync(cert_file, 'utf8'), readFileSync(key_file)];
  const cluster = new StubApiServer();
  /** Status of every answer, if it is not 0. `hang`: there is none. */
  let failure: number | 'hang' = 0;
  let server: Awaited<ReturnType<typeof serveReviews>>;
  let host = '';

  before(async () => {
    cluster.reviewers.add(reviewer);
    server = await serveReviews(cluster, { cert: ca, key }, () => failure);
    host = server.url;
  });
  after(() => {
    server.close();
    rmSync(folder, { recursive: true });
  });

  it('are the same through every node, survive a change of the active node, and end when a token or a role is taken away', () =>
    withCluster({ config: { audit: [{ type: 'stdout', name: 'out' }] } }, async (nodes) => {
      const leader = await nodes.settled();
      const [standby = leader, other = leader] = nodes.others(leader);
      const commands = (block: string, node: LiveNode, jwt = '') =>
        runBlocks([block], {
          // Outside of a pod, the authority and the token of the reviewer are settings.
          replace: {
            'kubernetes_host=https://kubernetes.default.svc': `kubernetes_host=${host} kubernetes_ca_cert=@ca.crt token_reviewer_jwt=@reviewer`,
            '/var/run/secrets/transitd/token': 'token',
          },
          files: { 'ca.crt': ca, reviewer: `${reviewer}\n`, token: `${jwt}\n` },
          env: { TRANSITD_ADDR: node.apiAddress, ...(jwt === '' && { TRANSITD_TOKEN: nodes.rootToken }) },
        });
      const login = (node: LiveNode, jwt: string) =>
        nodes.askWhenLed(node, 'POST', 'auth/kubernetes/login', { role: 'web', jwt });
      /** On a loaded machine, a standby may refuse it for another reason at first. */
      const refused = (node: LiveNode, jwt: string, says: string) =>
        until(`${node.name} refuses the login: ${says}`, async () => {
          const { status, text } = await nodes.ask(node, 'POST', 'auth/kubernetes/login', { role: 'web', jwt });
          return status !== 200 && text.includes(says);
        });
      const lookUp = async (node: LiveNode, token: string) =>
        (await nodes.askWhenLed(node, 'GET', 'auth/token/lookup-self', undefined, { token })).status;

      const done = await commands(setUp, standby);
      expect(done.code, done.stdout + done.stderr).to.equal(0);
      const jwt = await cluster.issue();
      const issued = await commands(logIn, other, jwt);
      expect(issued.code, issued.stderr).to.equal(0);
      const token = issued.stdout.trim();
      for (const node of nodes.nodes) expect(await lookUp(node, token), node.name).to.equal(200);
      const read = await nodes.askWhenLed(standby, 'GET', 'auth/kubernetes/config');
      expect(read.at('data.token_reviewer_jwt_set')).to.equal(true);

      // A review of another account, and the failures of the API server.
      const foreign = await cluster.issue({}, { uid: 'another' });
      expect((await login(standby, foreign)).status).to.equal(403);
      for (const [status, says] of [
        [403, 'permission denied: the Kubernetes API server refused the review with status 403'],
        [500, 'did not review the token: it answered with status 500'],
        ['hang', 'did not review the token: no answer within 5 s'],
      ] as const) {
        failure = status;
        await refused(standby, jwt, says);
      }
      failure = 0;
      const elsewhere = {
        kubernetes_host: host,
        kubernetes_ca_cert: readFileSync(makeCertificate(folder, 'other').cert_file, 'utf8'),
      };
      await nodes.askWhenLed(other, 'POST', 'auth/kubernetes/config', { ...elsewhere, token_reviewer_jwt: reviewer });
      await refused(other, jwt, 'did not review the token: DEPTH_ZERO_SELF_SIGNED_CERT');
      await nodes.askWhenLed(other, 'POST', 'auth/kubernetes/config', {
        ...elsewhere,
        kubernetes_ca_cert: ca,
        token_reviewer_jwt: reviewer,
      });

      await leader.kill();
      await leader.start();
      await nodes.settled();
      for (const node of nodes.nodes) {
        expect(await lookUp(node, token), node.name).to.equal(200);
        expect((await login(node, jwt)).status, node.name).to.equal(200);
      }
      cluster.accounts.delete(jwt);
      for (const node of nodes.nodes) expect((await login(node, jwt)).status, node.name).to.equal(403);
      const again = await cluster.issue();
      await nodes.askWhenLed(standby, 'DELETE', 'auth/kubernetes/role/web');
      for (const node of nodes.nodes) expect((await login(node, again)).status, node.name).to.equal(400);

      expect(nodes.nodes.map(({ log }) => log).join('')).to.contain('a Kubernetes API server did not review a token');
      for (const { name, server: process } of nodes.nodes)
        for (const secret of [reviewer, jwt, foreign])
          expect(process.stdout.includes(secret), `${name} shows a token`).to.equal(false);
    }));
});
