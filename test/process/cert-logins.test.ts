// @live
// Logins by client certificates and tokens that are bound to one, on every thread of a node with gateways.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { padding, TestAuthority, type TestIdentity } from '../../packages/cluster/test/test-authority.ts';
import { answeredByGateways, type GatewayNode, startNode } from './gateways/clients.ts';
import { Connection } from './gateways/connection.ts';
import { entry, processMs, Workbench } from './live-server.ts';
import { expectCode, run } from './transitd-command.ts';

/** Connections that are not all on the same one of three threads, except in one of 200,000 runs. */
const many = Array.from({ length: 12 }, (_, i) => i);

describe('a node with gateways that asks for client certificates', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let folder = '';
  let node: GatewayNode;
  let authority: TestAuthority;
  let client: TestIdentity;
  let other: TestIdentity;
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  before(async () => {
    folder = bench.folder();
    authority = await TestAuthority.make();
    const names = [{ type: 'ip', value: '127.0.0.1' }] as const;
    const server = await authority.certify({ subject: 'CN=server', usages: ['serverAuth'], names: [...names] });
    [client, other] = [await authority.certify({ subject: 'CN=web' }), await authority.certify({ subject: 'CN=web' })];
    const tls = {
      cert_file: file('server.crt', server.cert),
      key_file: file('server.key', server.key),
      client_ca_file: file('ca.crt', authority.cert),
      client_crl_file: file('ca.crl', await authority.revocations()),
      client_auth: 'optional',
    };
    node = await startNode(bench, entry, { folder, listeners: [{ address: '127.0.0.1:0', tls }] });
    const admin = new Connection(node.server.url, node.rootToken);
    await admin.data('POST', 'sys/auth/cert', { type: 'cert' });
    const role = { certificate: authority.cert, token_policies: ['user'] };
    await admin.data('POST', 'auth/cert/certs/web', role);
    await admin.data('POST', 'auth/cert/certs/bound', { ...role, token_bound_certificate: true });
    admin.close();
  });
  after(() => bench.clean());

  /** Runs a task on new connections to all threads, and returns its different results. */
  const onAll = async <T>(identity: TestIdentity | undefined, task: (each: Connection) => Promise<T>): Promise<readonly T[]> => {
    const all = many.map(() => new Connection(node.server.url, '', { ...(identity && { identity }) }));
    const results = await Promise.all(all.map(task));
    for (const each of all) each.close();
    return [...new Set(results)];
  };
  const refused = '400 {"errors":["client certificate must be supplied"]}\n';
  const login = async (each: Connection, headers: Readonly<Record<string, string>> = {}): Promise<string> => {
    const { status, text } = await each.call('POST', 'auth/cert/login', { name: 'web' }, { headers });
    return status === 200 ? 'in' : `${status} ${text}`;
  };
  const boundToken = async (): Promise<string> => {
    const connection = new Connection(node.server.url, '', { identity: client });
    const { text } = await connection.call('POST', 'auth/cert/login', { name: 'bound' });
    connection.close();
    node.server.secrets.learn(text);
    return JSON.parse(text).auth.client_token;
  };
  const encrypt = (token: string) => async (each: Connection) =>
    (await each.call('POST', 'transit/encrypt/shared', { plaintext: 'aGVsbG8=' }, { token })).status;

  it('logs in with a verified certificate on every thread, and never by the headers of a client', async () => {
    const { cert } = client;
    const imitations = {
      'X-Transitd-Certificate': Buffer.from(cert).toString('base64'),
      'X-Transitd-Gateway': `x 0 1 127.0.0.1 9999999999999.${Buffer.from(cert).toString('base64url')}.aa`,
      'X-Forwarded-Client-Cert': encodeURIComponent(cert),
    };
    const stranger = await (await TestAuthority.make()).certify({ subject: 'CN=web' });
    // At the same time: connections between the threads serve one client after another.
    const [known, none, imitated, unverified] = await Promise.all([
      onAll(client, (each) => login(each)),
      onAll(undefined, (each) => login(each)),
      onAll(undefined, (each) => login(each, imitations)),
      onAll(stranger, (each) => login(each)),
    ]);
    expect(known).to.deep.equal(['in']);
    for (const each of [none, imitated, unverified]) expect(each).to.deep.equal([refused]);
  });

  it('logs in on every thread with a large certificate, and a head that is almost too long without it', async () => {
    const large = await authority.certify({ subject: 'CN=large', extensions: [padding(7_500)] });
    expect(await onAll(large, (each) => login(each, { 'X-Long': 'x'.repeat(15 * 1024) }))).to.deep.equal(['in']);
  });

  it('accepts a bound token on every thread, and only with its certificate', async () => {
    const token = await boundToken();
    const before = await answeredByGateways(node);
    expect(await onAll(client, encrypt(token))).to.deep.equal([200]);
    expect(await answeredByGateways(node)).to.be.above(before);
    expect(await onAll(undefined, encrypt(token))).to.deep.equal([403]);
    expect(await onAll(other, encrypt(token))).to.deep.equal([403]);
    expect(await onAll(client, encrypt(token))).to.deep.equal([200]);
  });

  it('is logged in to by the command line', async () => {
    const env = {
      HOME: folder,
      TRANSITD_ADDR: node.server.url,
      TRANSITD_CACERT: join(folder, 'ca.crt'),
      VAULT_CLIENT_CERT: file('client.crt', client.cert),
      VAULT_CLIENT_KEY: file('client.key', client.key),
    };
    const { stdout } = expectCode(await run(['login', '-method=cert', '-token-only', 'name=web'], { env }), 0);
    node.server.secrets.learn(stdout);
    expect(stdout).to.match(/^s\./);
    const { VAULT_CLIENT_CERT: _cert, VAULT_CLIENT_KEY: _key, ...without } = env;
    expect(expectCode(await run(['login', '-method=cert'], { env: without }), 2).stderr).to.include('client certificate must be');
  });

  it('refuses a revoked certificate on new connections of every thread after a reload', async () => {
    const token = await boundToken();
    file('ca.crl', await authority.revocations([client.cert]));
    node.server.child.kill('SIGHUP');
    await node.server.log(/"msg":"reloaded"/);
    expect(await onAll(client, (each) => login(each))).to.deep.equal([refused]);
    expect(await onAll(client, encrypt(token))).to.deep.equal([403]);
    expect(await onAll(other, (each) => login(each))).to.deep.equal(['in']);
  });

  it('shows when its revocation list expires, and warns in the log within six hours of that and afterwards', async () => {
    const reloadWith = async (crl: string, warning: RegExp): Promise<void> => {
      file('ca.crl', crl);
      node.server.child.kill('SIGHUP');
      await node.server.log(warning);
    };
    const expiry = async (): Promise<number> => {
      const [, telemetry] = await node.server.log(/"telemetry":"(http[^"]+)"/);
      const metrics = await (await fetch(`${telemetry}/metrics`)).text();
      return Number(/^svc_revocation_list_expiry_timestamp_seconds\{address="[^"]+"\} (\d+)$/m.exec(metrics)?.[1]);
    };
    const [soon, past] = [3600, -3600].map((s) => Math.floor(Date.now() / 1000) + s) as [number, number];
    for (const at of [soon, past]) {
      const end = new Date(at * 1000);
      await reloadWith(
        await authority.revocations([], end),
        new RegExp(`"expires":"${end.toISOString()}","msg":"a revocation list of client_crl_file expires within six hours`),
      );
      expect(await expiry()).to.equal(at);
    }
    expect(await onAll(client, (each) => login(each)), 'an expired list').to.deep.equal([refused]);
  });
});
