// @live
// The threads of a node with gateways and TLS: sessions and certificates on all of them, and threads that end or hang.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { connect } from 'node:tls';
import { expect } from 'chai';
import { changedCopy } from '../../changed-copy.ts';
import { until } from '../../cluster/harness/until.ts';
import { processMs, Workbench } from '../live-server.ts';
import { answeredByGateways, contradictions, type GatewayNode, startNode } from './clients.ts';
import { Connection } from './connection.ts';
import { switches, withoutSodium } from './faults.ts';

/** Connections that are not all on the same one of three threads, except in one of 200,000 runs. */
const many = Array.from({ length: 12 }, (_, i) => i);

describe('the threads of a node with two gateways and TLS', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let folder = '';
  let compiled = '';
  let node: GatewayNode;
  before(async () => {
    [folder, compiled] = [bench.folder(), bench.folder()];
    certify('before');
    const tls = { cert_file: join(folder, 'tls.crt'), key_file: join(folder, 'tls.key') };
    const listener = { address: '127.0.0.1:0', tls };
    const options = { folder, listeners: [listener, listener], env: { NODE_COMPILE_CACHE: compiled } };
    node = await startNode(bench, await changedCopy(bench.folder(), [switches, withoutSodium]), options);
  });
  after(() => bench.clean());

  /** Writes a key and a certificate for this name. */
  const certify = (name: string): void => {
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', join(folder, 'tls.key')];
    const certificate = ['-out', join(folder, 'tls.crt'), '-days', '2', '-subj', `/CN=${name}`];
    execFileSync('openssl', ['req', '-x509', ...key, ...certificate], { stdio: 'ignore' });
  };

  /** Opens a connection, with an earlier session if one is given; returns its newest session, and the name in the certificate. */
  const handshake = (
    session?: Buffer,
    url = node.server.url,
  ): Promise<{ readonly session: Buffer; readonly isResumed: boolean; readonly name: string }> =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(url);
      const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false, ...(session && { session }) });
      socket.on('error', reject);
      const done = (newest: Buffer): void => {
        resolve({ session: newest, isResumed: socket.isSessionReused(), name: String(socket.getPeerCertificate().subject?.CN) });
        socket.destroy();
      };
      socket.once('session', done);
      // The server sends no new session to a client that has resumed one.
      socket.once('secureConnect', () => session !== undefined && socket.isSessionReused() && done(session));
    });
  const handshakes = (session?: Buffer, url?: string) => Promise.all(many.map(() => handshake(session, url)));

  const statuses = async (connections: readonly Connection[]): Promise<(number | 'closed')[]> => {
    const body = { plaintext: 'aGVsbG8=' };
    const statusOf = ({ status }: { readonly status: number }): number => status;
    const ask = (each: Connection) => each.call('POST', 'transit/encrypt/shared', body).then(statusOf, () => 'closed' as const);
    return [...new Set(await Promise.all(connections.map(ask)))];
  };
  const connections = (): readonly Connection[] => many.map(() => new Connection(node.server.url, node.rootToken));
  const closing = async <T>(all: readonly Connection[], use: () => Promise<T>): Promise<T> => {
    try {
      return await use();
    } finally {
      for (const each of all) each.close();
    }
  };

  it('have stored their compiled code before they serve, so that they end without delay', () => {
    // The main thread stores its own only when it ends.
    const files = readdirSync(compiled, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    expect(files).to.have.length.above(100);
    // One folder for each set of V8's flags. Below such a folder, no other thread or process would find the code.
    for (const { parentPath } of files) expect(dirname(parentPath)).to.equal(compiled);
  });

  it('resume each other’s TLS sessions, until a reload replaces the certificate on all of them', async () => {
    const { session } = await handshake();
    for (const { isResumed } of await handshakes(session)) expect(isResumed).to.equal(true);
    certify('after');
    node.server.child.kill('SIGHUP');
    await node.server.log(/"msg":"reloaded"/);
    for (const { isResumed, name } of await handshakes(session)) expect([isResumed, name]).to.deep.equal([false, 'after']);
    const later = await handshake();
    for (const { isResumed } of await handshakes(later.session)) expect(isResumed).to.equal(true);
  });

  it('do not resume the session of another listener, which may have checked the certificate of the client', async () => {
    const { session } = await handshake();
    const [, url = ''] = await node.server.log(/"listening"[\s\S]+?"address":"(https[^"]+)","msg":"listening"/);
    for (const { isResumed } of await handshakes(session, url)) expect(isResumed).to.equal(false);
  });

  it('are replaced when they end, while the others serve, and the new ones have the present certificate and state', async () => {
    const all = connections();
    await closing(all, async () => {
      expect(await statuses(all)).to.deep.equal([200]);
      writeFileSync(join(node.dataDir, 'slow-1'), ''); // a slow start is no lag, although changes are made meanwhile
      for (const row of [1, 2]) writeFileSync(join(node.dataDir, `end-${row}`), '');
      for (const row of [1, 2])
        await node.server.log(new RegExp(`"gateway":${row},"reason":"ended by the test[^}]+"a gateway thread ended`));
      const admin = new Connection(node.server.url, node.rootToken);
      await closing([admin], () => admin.data('POST', 'transit/keys/shared/rotate'));
      for (const row of [1, 2])
        await node.server.log(new RegExp(`a gateway thread ended[^]*"gateway":${row},"msg":"a gateway thread listens"`));
    });
    expect(node.server.stderr).not.to.contain('did not follow the changes');
    for (const { name } of await handshakes()) expect(name).to.equal('after');
    const answeredBefore = await answeredByGateways(node);
    expect(
      await contradictions(node, { rounds: 1, only: ['a rotated key', 'a revoked token', 'a changed policy'] }),
    ).to.deep.equal([]);
    expect(await answeredByGateways(node)).to.be.above(answeredBefore + 20);
  });

  it('log warnings as lines of the log, with their number', async () => {
    const lines = ['', '"gateway":1,', '"gateway":2,'].map(
      (gateway) =>
        new RegExp(
          `^\\{"level":"warn","time":"[^"]+",${gateway}"warning":"LibraryWarning","msg":"libsodium cannot be loaded.*/dev/null`,
          'm',
        ),
    );
    const admin = new Connection(node.server.url, node.rootToken);
    await closing([admin], () => admin.data('POST', 'transit/keys/signing', { type: 'ed25519' }));
    // One of the three threads has none of the connections in one of 40 runs.
    await until('each thread has logged it', async () => {
      const all = connections();
      await closing(all, async () => {
        for (const each of all) await each.data('POST', 'transit/sign/signing', { input: 'aGVsbG8=' });
      });
      return lines.every((line) => line.test(node.server.stderr));
    });
    expect(node.server.stderr).not.to.contain('(node:');
  });

  it('answer nothing once the node is sealed, although one of them hangs', async () => {
    const all = connections();
    await closing(all, async () => {
      expect(await statuses(all)).to.deep.equal([200]);
      const wanted = join(node.dataDir, 'hang-1');
      writeFileSync(wanted, '');
      // The thread removes the file and hangs. If the seal came before that, the thread would confirm it.
      await until('the thread hangs', () => !existsSync(wanted));
      const operators = connections();
      // A connection to the thread that hangs gets no answer.
      await closing(operators, () => Promise.any(operators.map((each) => each.data('PUT', 'sys/seal'))));
      await node.server.log(/"gateway":1,"reason":"it was terminated"/);
      expect([503, 'closed']).to.include.members(await statuses(all));
    });
    const later = connections();
    await closing(later, async () => expect(await statuses(later)).to.deep.equal([503]));
  });
});
