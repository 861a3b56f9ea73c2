// @live
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { type ListenerConfig, parseConfig, tlsContext } from '@transitd/configuration';
import { Connections } from '@transitd/http';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { makeCertificate } from '../../process/test/certificate.ts';
import { createListener, Listener } from '../src/listener.ts';

describe('a listener', () => {
  let folder = '';
  let certificate: ReturnType<typeof makeCertificate>;
  const sockets: Socket[] = [];
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-listener-'));
    certificate = makeCertificate(folder, 'test');
  });
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });
  after(() => rmSync(folder, { recursive: true }));

  const configOf = (more: object): ListenerConfig => {
    const { listeners } = parseConfig({
      node_id: 'n',
      data_dir: join(folder, 'data'),
      listeners: [{ address: '127.0.0.1:0', ...more }],
    });
    const [listener] = listeners;
    if (listener === undefined) throw new Error('no listener');
    return listener;
  };
  const start = async (more: object, handle: RequestListener): Promise<{ listener: Listener; url: URL }> => {
    const config = configOf(more);
    const listener = new Listener(handle, (counted) => createListener(config, counted), { drainMs: 3_600_000 });
    return { listener, url: new URL(await listener.listen(config.address)) };
  };
  /** Longer than any test, so that only an immediate close ends a connection in time. */
  const headers_timeout = '5m';
  const plain = { tls_disable: true, headers_timeout };
  const hello: RequestListener = (_req, res) => void res.end('hello');
  const open = async ({ port }: URL): Promise<Socket> => {
    const socket = connect(Number(port), '127.0.0.1');
    sockets.push(socket);
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.on('error', () => undefined);
    return socket;
  };
  /** Waits until the server has read all earlier input: it has answered on a later connection. */
  const roundTrip = async (url: URL): Promise<void> => {
    const other = await open(url);
    other.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(await text(other)).to.match(/hello/);
  };

  for (const { what, sent } of [
    { what: 'is silent', sent: '' },
    { what: 'has sent half a header', sent: 'GET /v1/x HTTP/1.1\r\nHo' },
    { what: 'has sent half a LIST', sent: 'LIST /v1/x HT' },
    { what: 'has sent half of the method LIST', sent: 'LI' },
  ]) {
    it(`drains at once despite a connection that ${what}`, async () => {
      const { listener, url } = await start(plain, hello);
      (await open(url)).write(sent);
      await roundTrip(url);
      await listener.drain();
    });
  }

  it('drains at once despite a silent connection on a TLS port', async () => {
    const { listener, url } = await start({ tls: certificate, headers_timeout }, hello);
    await open(url);
    const other = connectTls({ port: Number(url.port), host: '127.0.0.1', rejectUnauthorized: false });
    other.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(await text(other)).to.match(/hello/);
    await listener.drain();
  });

  for (const method of ['GET', 'POST', 'PUT', 'HEAD', 'DELETE', 'LIST', 'CONNECT'])
    it(`tells a client that sends a ${method} without TLS to a TLS port to use TLS, and closes the connection`, async () => {
      const { listener, url } = await start({ tls: certificate, headers_timeout }, hello);
      const socket = await open(url);
      socket.write(`${method} /v1/sys/health HTTP/1.1\r\nHost: x\r\n\r\n`);
      const [head, body = ''] = (await text(socket)).split('\r\n\r\n');
      expect(head).to.match(/^HTTP\/1.1 400 .*Connection: close/s);
      expect(JSON.parse(body)).to.deep.equal({ errors: ['Client sent an HTTP request to an HTTPS server.'] });
      await listener.drain();
    });

  it('says nothing to a client whose handshake fails otherwise', async () => {
    const { listener, url } = await start({ tls: certificate, headers_timeout }, hello);
    const old = connectTls({
      port: Number(url.port),
      host: '127.0.0.1',
      maxVersion: 'TLSv1.1',
      minVersion: 'TLSv1',
      ciphers: 'ALL@SECLEVEL=0',
    });
    const { code } = await new Promise<NodeJS.ErrnoException>((resolve) => old.once('error', resolve));
    expect(code).to.match(/^ERR_SSL_|ECONNRESET/);
    await listener.drain();
  });

  for (const verb of ['GET', 'LIST']) {
    it(`waits for a ${verb} in flight, sends Connection: close, and is then drained`, async () => {
      const arrived = Promise.withResolvers<() => void>();
      const { listener, url } = await start(plain, (_req, res) => arrived.resolve(() => res.end('late')));
      const silent = await open(url);
      const asking = await open(url);
      asking.write(`${verb} / HTTP/1.1\r\nHost: x\r\n\r\n`);
      const finish = await arrived.promise;
      const drained = listener.drain();
      finish();
      const answer = await text(asking);
      expect(answer).to.match(/^HTTP\/1.1 200 /);
      expect(answer).to.match(/Connection: close/i);
      expect(answer).to.match(/late/);
      await drained;
      if (!silent.closed) await new Promise((resolve) => silent.once('close', resolve));
    });
  }

  for (const method of ['GET', 'LIST'])
    it(`passes on every header of a ${method} up to 1,000, and refuses more instead of dropping the last ones`, async () => {
      const names: string[][] = [];
      const { listener, url } = await start(plain, (req, res) => {
        names.push(Object.keys(req.headers));
        res.end('hello');
      });
      const answer = async (count: number): Promise<string> => {
        const more = Array.from({ length: count - 3 }, (_, i) => `A${i}:\r\n`).join('');
        const socket = await open(url);
        socket.write(`${method} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${more}X-Last: 1\r\n\r\n`);
        return (await text(socket)).slice(9, 12);
      };
      expect([await answer(1_000), await answer(1_001), await answer(1_200)]).to.deep.equal(['200', '431', '431']);
      expect(names.map((each) => [each.length, each.includes('x-last')])).to.deep.equal([[1_000, true]]);
      await listener.drain();
    });

  it('answers 408 if a header does not arrive within headers_timeout', async () => {
    const { listener, url } = await start({ ...plain, headers_timeout: '1s' }, hello);
    const slow = await open(url);
    slow.write('GET / HTTP/1.1\r\nHo');
    expect(await text(slow)).to.match(/ 408 /);
    await listener.drain();
  });

  it('closes a TLS handshake that does not finish within headers_timeout', async () => {
    const { listener, url } = await start({ tls: certificate, headers_timeout: '1s' }, hello);
    const slow = await open(url);
    slow.resume().write(Buffer.from([0x16, 0x03, 0x01])); // the beginning of a record that never ends
    await new Promise((resolve) => slow.once('close', resolve));
    await listener.drain();
  });

  it('answers a new connection when silent connections and half bodies use the whole limit', async () => {
    const connections = new Connections({ own: 4 });
    const config = configOf(plain);
    const front: RequestListener = (req, res) => void req.resume().on('end', () => res.end('hello'));
    const listener = new Listener(front, (counted) => createListener(config, counted), { connections });
    const url = new URL(await listener.listen(config.address));
    for (const sent of ['', 'GET / HT', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf', ''])
      (await open(url)).write(sent);
    for (let n = 0; n < 6; n += 1) await roundTrip(url);
    expect(connections.evicted).to.be.at.least(1);
    expect(connections.open).to.be.at.most(4);
    await listener.drain();
  });

  for (const [suite, accepted] of [
    ['ECDHE-ECDSA-AES128-GCM-SHA256', true],
    ['ECDHE-ECDSA-AES256-GCM-SHA384', true],
    ['ECDHE-ECDSA-CHACHA20-POLY1305', true],
    ['ECDHE-ECDSA-AES128-SHA', false],
    ['ECDHE-ECDSA-AES256-SHA', false],
    ['ECDHE-ECDSA-AES128-SHA256', false],
    ['ECDHE-ECDSA-AES256-SHA384', false],
    ['ECDHE-ECDSA-AES256-CCM', false],
  ] as const) {
    it(`${accepted ? 'accepts' : 'refuses'} ${suite} in TLS 1.2, also after a certificate reload`, async () => {
      const tls = { ...certificate, min_version: '1.2' as const };
      const { listener, url } = await start({ tls }, hello);
      for (const replaced of [false, true]) {
        if (replaced) listener.replaceContext(tlsContext(tls));
        const options = { rejectUnauthorized: false, maxVersion: 'TLSv1.2', ciphers: `${suite}:@SECLEVEL=0` } as const;
        const socket = connectTls({ port: Number(url.port), host: '127.0.0.1', ...options });
        sockets.push(socket);
        const outcome = await new Promise<string>((resolve) => {
          socket.once('secureConnect', () => resolve(socket.getCipher().name));
          socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
        });
        expect(outcome).to.equal(accepted ? suite : 'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE');
        socket.destroy();
      }
      await listener.drain();
    });
  }

  it('keeps the minimum TLS version after a certificate reload', async () => {
    const tls = { ...certificate, min_version: '1.3' as const };
    const { listener, url } = await start({ tls }, hello);
    const handshake = (maxVersion: 'TLSv1.2' | 'TLSv1.3'): Promise<string> =>
      new Promise((resolve) => {
        const socket: TLSSocket = connectTls(
          { port: Number(url.port), host: '127.0.0.1', rejectUnauthorized: false, maxVersion },
          () => {
            resolve(`${socket.getProtocol()} ${socket.getPeerCertificate().subject.CN}`);
            socket.destroy();
          },
        );
        socket.on('error', () => resolve('refused'));
      });
    expect(await handshake('TLSv1.2')).to.equal('refused');
    listener.replaceContext(tlsContext({ ...makeCertificate(folder, 'next'), min_version: '1.3' }));
    expect(await handshake('TLSv1.2')).to.equal('refused');
    expect(await handshake('TLSv1.3')).to.equal('TLSv1.3 next');
    await listener.drain();
  });

  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    it(`with client_ca_file serves only clients with a certificate of that authority, by ${version} and after a reload`, async () => {
      const [first, second] = [makeCertificate(folder, 'first'), makeCertificate(folder, 'second')];
      const withAuthority = ({ cert_file }: typeof first) => ({ ...certificate, client_ca_file: cert_file });
      const { listener, url } = await start({ tls: withAuthority(first) }, hello);
      const answer = async (client?: typeof first): Promise<string> => {
        const shown = client && { cert: readFileSync(client.cert_file), key: readFileSync(client.key_file) };
        const options = { host: '127.0.0.1', rejectUnauthorized: false, minVersion: version, maxVersion: version } as const;
        const socket = connectTls({ port: Number(url.port), ...options, ...shown });
        sockets.push(socket);
        socket.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
        return text(socket).catch(() => 'refused');
      };
      const outcomes = async () => [await answer(), await answer(first), await answer(second)].map((each) => /hello/.test(each));
      expect(await outcomes()).to.deep.equal([false, true, false]);
      listener.replaceContext(tlsContext({ ...withAuthority(second), min_version: '1.2' }));
      expect(await outcomes(), 'after the reload').to.deep.equal([false, false, true]);
      await listener.drain();
    });
  }

  it('resumes a session only with a server of the same TLS context', async () => {
    const tls = { ...certificate, min_version: '1.3' as const };
    const context = tlsContext(tls);
    const [first, second, other] = await Promise.all(
      [context, context, tlsContext(tls)].map(async (each) => {
        const listener = new Listener(hello, (counted) =>
          createListener({ headers_timeout: 60_000, tls, context: each }, counted),
        );
        return { listener, url: new URL(await listener.listen({ host: '127.0.0.1', port: 0 })) };
      }),
    );
    if (first === undefined || second === undefined || other === undefined) throw new Error('no listener');
    const connectWith = ({ url }: typeof first, session?: Buffer): TLSSocket => {
      const to = { port: Number(url.port), host: '127.0.0.1', rejectUnauthorized: false, ...(session && { session }) };
      const socket = connectTls(to);
      sockets.push(socket);
      return socket;
    };
    const session = await new Promise<Buffer>((resolve) => connectWith(first).once('session', resolve));
    const resumes = (to: typeof first): Promise<boolean> =>
      new Promise((resolve) => {
        const socket = connectWith(to, session).once('secureConnect', () => resolve(socket.isSessionReused()));
      });
    expect([await resumes(first), await resumes(second), await resumes(other)]).to.deep.equal([true, true, false]);
    first.listener.replaceContext(tlsContext(tls));
    expect(await resumes(first), 'after a reload').to.equal(false);
    for (const socket of sockets) socket.destroy();
    await Promise.all([first, second, other].map(({ listener }) => listener.drain()));
  });

  it('refuses an invalid certificate or key file in one sentence', () => {
    const junk = join(folder, 'junk');
    writeFileSync(junk, 'no PEM');
    const other = makeCertificate(folder, 'other');
    const { cert_file, key_file } = certificate;
    const cert = readFileSync(cert_file, 'utf8');
    const trusting = join(folder, 'trusting');
    writeFileSync(trusting, cert + cert.replaceAll('CERTIFICATE', 'TRUSTED CERTIFICATE'));
    const [cut, withList] = [join(folder, 'cut'), join(folder, 'with-list')];
    writeFileSync(cut, cert + cert.slice(0, -40));
    writeFileSync(withList, `${cert}-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n`);
    const [torn, tornList] = [join(folder, 'torn'), join(folder, 'torn.crl')];
    writeFileSync(torn, `${readFileSync(cert_file, 'utf8')}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`);
    writeFileSync(tornList, '-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n');
    for (const [tls, says] of [
      [{ cert_file: junk, key_file }, /junk holds no certificate/],
      [{ cert_file, key_file: junk }, /junk is not the key/],
      [{ cert_file, key_file: other.key_file }, /other.key is not the key of/],
      [{ cert_file, key_file, client_ca_file: junk }, /junk must hold certificates in PEM: it has no certificate$/],
      [{ cert_file, key_file, client_ca_file: torn }, /torn must hold certificates in PEM: /],
      [{ cert_file, key_file, client_ca_file: cut }, /cut must hold certificates in PEM: /],
      [
        { cert_file, key_file, client_ca_file: trusting },
        /trusting must .*: a block "TRUSTED CERTIFICATE" is not accepted, only/,
      ],
      [{ cert_file, key_file, client_ca_file: withList }, /with-list must .*: a block "X509 CRL" is not accepted, only/],
      [{ cert_file, key_file, client_ca_file: cert_file, client_crl_file: junk }, /junk holds no certificate revocation list/],
      [
        { cert_file, key_file, client_ca_file: cert_file, client_crl_file: tornList },
        /torn.crl holds no certificate revocation list/,
      ],
      [{ cert_file, key_file: join(folder, 'none') }, /none cannot be read: ENOENT/],
    ] as const) {
      expect(() => tlsContext({ ...tls, min_version: '1.2' }))
        .to.throw(StartError, says)
        .with.property('message')
        .that.does.not.include('\n');
    }
  });
});
