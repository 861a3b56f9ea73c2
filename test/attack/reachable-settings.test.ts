// @live
// One node behind a proxy, with TLS and an audit file: forged addresses, weak ciphers, and text in unexpected places.
import { readFileSync } from 'node:fs';
import { connect } from 'node:tls';
import { expect } from 'chai';
import { makeCertificate } from '../../packages/process/test/certificate.ts';
import { startAudited } from '../process/audited-server.ts';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';

describe('a node behind a proxy, with TLS and an audit', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  let rootToken: string;
  let auditFile: string;
  const call = (method: string, path: string, body?: object) => server.call(method, path, body, rootToken);

  before(async () => {
    const certificate = makeCertificate(bench.folder(), 'node');
    const settings = {
      workers: 1,
      trusted_proxies: ['127.0.0.0/8'],
      listeners: [
        { address: '127.0.0.1:0', tls_disable: true },
        { address: '127.0.0.1:0', tls: { ...certificate, min_version: '1.2' } },
      ],
    };
    ({ server, rootToken, auditFile } = await startAudited(bench, { settings }));
  });
  after(() => bench.clean());

  it('treats all forms of an address that the proxy sends as one caller', async () => {
    await call('POST', 'sys/quotas/rate-limit/q', { path: 'transit/', rate: 1, interval: '10m' });
    const statusFrom = async (address: string): Promise<number> => {
      const headers = { 'X-Service-Token': rootToken, 'X-Forwarded-For': address };
      return (await fetch(`${server.url}/v1/transit/keys/k`, { headers })).status;
    };
    expect(await statusFrom('198.51.100.7')).to.equal(404);
    for (const form of ['198.51.100.7', '198.51.100.7:4711', '::ffff:198.51.100.7', '[::ffff:198.51.100.7]:443'])
      expect(await statusFrom(form), form).to.equal(429);
    expect(await statusFrom('198.51.100.8:4711'), 'another caller').to.equal(404);
    await call('DELETE', 'sys/quotas/rate-limit/q');
  });

  it("does not write a caller's text into the audit as a member name", async () => {
    const [form, member, inner, query] = ['password-as-a-form', 'password-as-a-member', 'password-inside', 'password-in-a-query'];
    const headers = { 'X-Service-Token': rootToken, 'Content-Type': 'application/x-www-form-urlencoded' };
    const sent = await fetch(`${server.url}/v1/transit/keys/a`, { method: 'POST', headers, body: form });
    expect(sent.status).to.be.below(500);
    await call('POST', 'transit/keys/b', { [member]: 1 });
    await call('POST', 'transit/encrypt/b', { batch_input: [{ plaintext: 'AAAA', [inner]: 1 }] });
    await call('GET', `transit/keys/b?${query}=1`);
    const written = readFileSync(auditFile, 'utf8');
    expect(written).to.include('transit/encrypt/b');
    for (const secret of [form, member, inner, query]) expect(written, secret).not.to.include(secret);
  });

  it('offers no CBC suite in TLS 1.2', async () => {
    const [, port] = await server.log(/"address":"https:\/\/127\.0\.0\.1:(\d+)"/);
    const outcome = (suite: string): Promise<string> =>
      new Promise((resolve) => {
        const ciphers = `${suite}:@SECLEVEL=0`;
        const socket = connect({
          port: Number(port),
          host: '127.0.0.1',
          rejectUnauthorized: false,
          maxVersion: 'TLSv1.2',
          ciphers,
        });
        const end = (found: string): void => {
          resolve(found);
          socket.destroy();
        };
        socket.once('secureConnect', () => end(socket.getCipher().name));
        socket.once('error', () => end('refused'));
      });
    expect(await outcome('ECDHE-ECDSA-AES128-GCM-SHA256')).to.equal('ECDHE-ECDSA-AES128-GCM-SHA256');
    for (const suite of [
      'ECDHE-ECDSA-AES128-SHA',
      'ECDHE-ECDSA-AES256-SHA',
      'ECDHE-ECDSA-AES128-SHA256',
      'ECDHE-ECDSA-AES256-SHA384',
    ])
      expect(await outcome(suite), suite).to.equal('refused');
  });

  it('never answers 500 on a path that monitoring of Vault and OpenBao requests', async () => {
    for (const path of [
      'plugins/catalog',
      'config/state/sanitized',
      'config/cors',
      'host-info',
      'ha-status',
      'internal/counters/tokens',
    ])
      expect((await call('GET', `sys/${path}`)).status, path).to.equal(200);
    for (const path of ['loggers', 'locked-users', 'version-history', 'in-flight-req', 'pprof'])
      expect((await call('GET', `sys/${path}`)).status, path).to.equal(404);
    expect((await call('GET', 'sys/monitor?log_level=all')).status, 'sys/monitor, whose answer has no end').to.equal(400);
  });

  it('keeps running after SIGUSR2', async () => {
    server.child.kill('SIGUSR2');
    await server.log(/ignored SIGUSR2/);
    expect((await call('POST', 'transit/keys/after', {})).status).to.equal(200);
  });
});
