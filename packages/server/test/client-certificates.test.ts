// @live
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener, ServerResponse } from 'node:http';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { type ListenerConfig, tlsContext } from '@transitd/configuration';
import { clientCertificateOf } from '@transitd/http';
import { type ClientCertificate, clientChainMax, clientChainsMax } from '@transitd/process';
import { expect } from 'chai';
import {
  onlyHostsBelow,
  padding,
  sha256Of,
  TestAuthority,
  type TestIdentity,
  withChain,
} from '../../cluster/test/test-authority.ts';
import { until } from '../../process/test/until.ts';
import { chainsOf } from '../src/client-certificates.ts';
import { createListener, Listener } from '../src/listener.ts';

type Tls = NonNullable<ListenerConfig['tls']>;
const ago = new Date(Date.now() - 3_600_000);
const later = new Date(Date.now() + 3_600_000);

/** Answers with the verified certificate of the connection. */
const show: RequestListener = (req, res) => {
  const certificate = clientCertificateOf(req.socket);
  res.end(JSON.stringify(certificate === undefined ? null : { ...certificate, der: certificate.der.toString('base64') }));
};

describe('the certificate of a client', () => {
  let folder = '';
  let authority: TestAuthority;
  let client: TestIdentity;
  let server: Pick<Tls, 'cert_file' | 'key_file'>;
  const opened: Listener[] = [];
  const sockets: TLSSocket[] = [];
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-certificates-'));
    authority = await TestAuthority.make();
    client = await authority.certify();
    const { cert, key } = await authority.certify({ subject: 'CN=server', usages: ['serverAuth'] });
    server = { cert_file: file('server.crt', cert), key_file: file('server.key', key) };
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const listener of opened.splice(0)) await listener.drain();
  });
  after(() => rmSync(folder, { recursive: true }));

  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const tlsWith = (trusted: readonly TestAuthority[], { crl, ...more }: { crl?: string } & Partial<Tls> = {}): Tls => ({
    ...server,
    client_ca_file: file('ca.crt', trusted.map(({ cert }) => cert).join('')),
    ...(crl !== undefined && { client_crl_file: file('ca.crl', crl) }),
    client_auth: 'optional',
    min_version: '1.2',
    ...more,
  });
  const listen = async (tls: Tls): Promise<{ readonly listener: Listener; readonly port: number }> => {
    const listener = new Listener(show, (counted) => createListener({ headers_timeout: 60_000, tls }, counted));
    opened.push(listener);
    return { listener, port: Number(new URL(await listener.listen({ host: '127.0.0.1', port: 0 })).port) };
  };
  const open = (port: number, options: ConnectionOptions = {}): TLSSocket => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options });
    sockets.push(socket);
    return socket;
  };
  /** Returns the certificate that the server has verified; null for none, undefined if it has ended the connection. */
  const seen = async (
    port: number,
    options: ConnectionOptions = {},
    verb = 'GET',
  ): Promise<ClientCertificate | null | undefined> => {
    const socket = open(port, options);
    socket.end(`${verb} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    const [, body] = (await text(socket).catch(() => '')).split('\r\n\r\n');
    return body === undefined ? undefined : JSON.parse(body.replace(/^[0-9a-f]+\r\n|\r\n0$/g, ''));
  };

  for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
    for (const verb of ['GET', 'LIST'])
      it(`is seen by a ${verb} with ${version}, with its chain and its end`, async () => {
        const { port } = await listen(tlsWith([authority]));
        const { raw, validToDate } = new X509Certificate(client.cert);
        expect(await seen(port, { ...client, minVersion: version, maxVersion: version }, verb)).to.deep.equal({
          sha256: sha256Of(client.cert),
          expiresMs: validToDate.getTime(),
          der: raw.toString('base64'),
          chains: [[client.cert, authority.cert].map(sha256Of)],
        });
        expect(await seen(port, { minVersion: version, maxVersion: version }, verb)).to.equal(null);
      });

  it('is seen with the authorities of the listener in its chain, and of others only with the possible roots', async () => {
    const [middle, other] = [await TestAuthority.make('CN=middle', { parent: authority }), await TestAuthority.make('CN=other')];
    const own = await middle.certify();
    const shown = withChain(own, middle);
    const chainsWith = async (trusted: readonly TestAuthority[], identity: TestIdentity) =>
      (await seen((await listen(tlsWith(trusted))).port, identity))?.chains;
    const [leaf, between, root, second] = [own, middle, authority, other].map(({ cert }) => sha256Of(cert));
    expect(await chainsWith([authority, middle], own)).to.deep.equal([[leaf, between, root]]);
    expect(await chainsWith([authority, middle], shown)).to.deep.equal([[leaf, between, root]]);
    expect(await chainsWith([authority], shown)).to.deep.equal([[leaf, root]]);
    expect(await chainsWith([authority, other], shown)).to.deep.equal([
      [leaf, root],
      [leaf, second],
    ]);
    expect(await chainsWith([authority], own), 'without the intermediate').to.equal(undefined);
  });

  it('has the authorities of the listener in its chain, although the client sends a cross-signed one', async () => {
    const other = await TestAuthority.make('CN=other');
    const middle = await TestAuthority.make('CN=middle', { parent: authority });
    const crossed = await TestAuthority.make('CN=middle', { parent: other, keys: middle.keys });
    const own = await middle.certify();
    // If OpenSSL took the certificate that the client sent, this list would show that `other` has revoked it.
    const crl = (await authority.revocations()) + (await middle.revocations()) + (await other.revocations([crossed.cert]));
    const { port } = await listen(tlsWith([authority, other, middle], { crl }));
    const chains = [[own, middle, authority].map(({ cert }) => sha256Of(cert))];
    expect(await seen(port, withChain(own, crossed))).to.deep.include({ chains });
    expect(await seen(port, { ...withChain(own, crossed), maxVersion: 'TLSv1.2' })).to.deep.include({ chains });
    const without = await listen(tlsWith([authority, other], { crl }));
    expect(await seen(without.port, withChain(own, crossed)), 'the listener does not know the authority').to.equal(null);
  });

  const hostile: readonly {
    readonly what: string;
    readonly make: () => Promise<{
      readonly client: TestIdentity;
      readonly trusted?: readonly TestAuthority[];
      readonly crl?: string;
    }>;
  }[] = [
    {
      what: 'is of another authority with the same name',
      make: async () => ({ client: await (await TestAuthority.make()).certify() }),
    },
    {
      what: 'is of another authority with the same name, sent with the certificate of the trusted one',
      make: async () => ({ client: withChain(await (await TestAuthority.make()).certify(), authority) }),
    },
    {
      what: 'is a copy that signs itself, with another key',
      make: async () => {
        const { cert, keys } = await TestAuthority.make('CN=client');
        const key = Buffer.from(await crypto.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
        return { client: { cert, key: `-----BEGIN PRIVATE KEY-----\n${key}\n-----END PRIVATE KEY-----\n` } };
      },
    },
    { what: 'has expired', make: async () => ({ client: await authority.certify({ notAfter: ago }) }) },
    { what: 'is not valid yet', make: async () => ({ client: await authority.certify({ notBefore: later }) }) },
    { what: 'is for servers only', make: async () => ({ client: await authority.certify({ usages: ['serverAuth'] }) }) },
    { what: 'is too large', make: async () => ({ client: await authority.certify({ extensions: [padding(8_000)] }) }) },
    {
      what: 'is of an authority that has expired',
      make: async () => {
        const expired = await TestAuthority.make('CN=expired', { notAfter: ago });
        return { client: await expired.certify(), trusted: [expired] };
      },
    },
    {
      what: 'is of an intermediate authority that has expired',
      make: async () => {
        const middle = await TestAuthority.make('CN=middle', { parent: authority, notAfter: ago });
        return { client: withChain(await middle.certify(), middle) };
      },
    },
    {
      what: 'is signed by a certificate that is no authority',
      make: async () => {
        const middle = await TestAuthority.make('CN=middle', { parent: authority, isAuthority: false });
        return { client: withChain(await middle.certify(), middle) };
      },
    },
    {
      what: 'violates the name constraints of its authority',
      make: async () => {
        const middle = await TestAuthority.make('CN=middle', { parent: authority, extensions: [onlyHostsBelow('good.example')] });
        return { client: withChain(await middle.certify({ names: [{ type: 'dns', value: 'evil.example' }] }), middle) };
      },
    },
    { what: 'is revoked', make: async () => ({ client, crl: await authority.revocations([client.cert]) }) },
    {
      what: 'is of an authority that is revoked',
      make: async () => {
        const middle = await TestAuthority.make('CN=middle', { parent: authority });
        const crl = (await authority.revocations([middle.cert])) + (await middle.revocations());
        return { client: withChain(await middle.certify(), middle), crl };
      },
    },
    {
      what: 'is of an authority without a revocation list, while another one has one',
      make: async () => {
        const middle = await TestAuthority.make('CN=middle', { parent: authority });
        return { client: withChain(await middle.certify(), middle), crl: await authority.revocations() };
      },
    },
    {
      what: 'is of an authority with an old revocation list',
      make: async () => ({ client, crl: await authority.revocations([], ago) }),
    },
    {
      what: 'is of an authority whose revocation list another one of the same name has signed',
      make: async () => ({ client, crl: await (await TestAuthority.make()).revocations() }),
    },
  ];
  for (const { what, make } of hostile)
    it(`is as good as none if it ${what}`, async () => {
      const { client: shown, trusted = [authority], crl } = await make();
      const { port } = await listen(tlsWith(trusted, { ...(crl !== undefined && { crl }) }));
      expect(await seen(port, { ...shown })).to.equal(null);
      // With TLS 1.2, a wrong signature below the certificate ends the connection with 400.
      expect(await seen(port, { ...shown, maxVersion: 'TLSv1.2' }), 'TLS 1.2').to.satisfy(
        (answer: object | null) => answer === null || 'errors' in answer,
      );
    });

  it('is seen if the revocation lists of all its authorities do not have it', async () => {
    const middle = await TestAuthority.make('CN=middle', { parent: authority });
    const [revoked, own] = [await middle.certify(), await middle.certify()];
    const crl = (await authority.revocations()) + (await middle.revocations([revoked.cert]));
    const { port } = await listen(tlsWith([authority], { crl }));
    expect(await seen(port, withChain(own, middle))).to.include({ sha256: sha256Of(own.cert) });
    expect(await seen(port, withChain(revoked, middle))).to.equal(null);
  });

  it('is required without client_auth: any other connection ends', async () => {
    const { port } = await listen({ ...tlsWith([authority]), client_auth: undefined } as unknown as Tls);
    expect(await seen(port, client)).to.include({ sha256: sha256Of(client.cert) });
    expect(await seen(port)).to.equal(undefined);
    expect(await seen(port, await (await TestAuthority.make()).certify())).to.equal(undefined);
  });

  for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
    it(`is shown in each handshake of ${version}: no session is resumed`, async () => {
      const { port } = await listen(tlsWith([authority]));
      const versions = { minVersion: version, maxVersion: version };
      const sessions: Buffer[] = [];
      const first = open(port, { ...client, ...versions });
      first.on('session', (session: Buffer) => sessions.push(session));
      first.end('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      await text(first);
      const last = first.getSession();
      if (last !== undefined) sessions.push(last);
      for (const session of sessions) {
        expect(await seen(port, { ...versions, session }), 'a session without its certificate').to.equal(null);
        const again = open(port, { ...client, ...versions, session });
        await once(again, 'secureConnect');
        expect(again.isSessionReused()).to.equal(false);
      }
    });

  it('is verified against the authorities and revocation lists of the last reload', async () => {
    const other = await TestAuthority.make('CN=other');
    const theirs = await other.certify();
    const { listener, port } = await listen(tlsWith([authority]));
    const outcomes = async () => [await seen(port, client), await seen(port, theirs)].map((each) => each?.chains.length ?? 0);
    expect(await outcomes()).to.deep.equal([1, 0]);
    listener.replaceContext(tlsContext(tlsWith([other])));
    expect(await outcomes()).to.deep.equal([0, 1]);
    listener.replaceContext(tlsContext(tlsWith([other], { crl: await other.revocations([theirs.cert]) })));
    expect(await outcomes()).to.deep.equal([0, 0]);
  });

  it('is not accepted from a handshake that began before the authorities were replaced', async () => {
    const other = await TestAuthority.make('CN=other');
    const middle = await TestAuthority.make('CN=middle', { parent: authority });
    const shown = withChain(await middle.certify(), middle);
    const { listener, port } = await listen(tlsWith([authority]));
    const begun = createConnection({ port, host: '127.0.0.1' });
    await once(begun, 'connect');
    await seen(port); // the listener has accepted the connection before
    listener.replaceContext(tlsContext(tlsWith([other])));
    expect(await seen(port, { ...shown, socket: begun })).to.equal(undefined);
  });

  for (const what of ['authorities', 'revocation lists'] as const)
    it(`is shown on no connection from before other ${what} came into use`, async () => {
      const { listener, port } = await listen(tlsWith([authority]));
      const kept = open(port, client);
      kept.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      await once(kept, 'data');
      listener.replaceContext(tlsContext(tlsWith([authority])));
      kept.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      expect(String(await once(kept, 'data')), 'nothing has changed').to.include('sha256');
      const others =
        what === 'authorities'
          ? tlsWith([await TestAuthority.make('CN=other')])
          : tlsWith([authority], { crl: await authority.revocations([client.cert]) });
      listener.replaceContext(tlsContext(others));
      kept.on('error', () => undefined).write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      expect(await text(kept).catch(() => '')).to.equal('');
    });

  it('is shown on no connection whose answer was in progress before, once that has ended', async () => {
    const answers: ServerResponse[] = [];
    const waits: RequestListener = (req, res) => {
      answers.push(res);
      if (req.url === '/begun') res.write('begun');
    };
    const listener = new Listener(waits, (counted) =>
      createListener({ headers_timeout: 60_000, tls: tlsWith([authority]) }, counted),
    );
    opened.push(listener);
    const port = Number(new URL(await listener.listen({ host: '127.0.0.1', port: 0 })).port);
    const [begun, waiting] = [open(port, client), open(port, client)];
    begun.write('GET /begun HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(begun, 'data');
    waiting.write('GET /waiting HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => answers.length === 2);
    listener.replaceContext(tlsContext(tlsWith([await TestAuthority.make('CN=other')])));
    const all = [text(begun), text(waiting)];
    for (const answer of answers) answer.end('the end');
    const [first, second] = await Promise.all(all);
    expect(first).to.include('the end');
    expect(second)
      .to.match(/connection: close/i)
      .and.include('the end');
  });

  it('has no chain with the certificate of another trusted authority of the same name', async () => {
    const twin = await TestAuthority.make();
    const { port } = await listen(tlsWith([authority, twin]));
    for (const [own, issuer, sent] of [
      [client, authority, twin],
      [await twin.certify(), twin, authority],
    ] as const) {
      const certificate = await seen(port, withChain(own, sent));
      if (certificate !== null) expect(certificate).to.deep.include({ chains: [[own.cert, issuer.cert].map(sha256Of)] });
    }
  });

  describe('in chains', () => {
    const parsed = ({ cert }: { readonly cert: string }): X509Certificate => new X509Certificate(cert);
    const chains = (leaf: TestIdentity, ...authorities: readonly TestAuthority[]) =>
      chainsOf(parsed(leaf), authorities.map(parsed)).map((chain) => chain.map(({ fingerprint256 }) => fingerprint256));
    const prints = (...all: readonly { readonly cert: string }[]) => all.map((each) => parsed(each).fingerprint256);

    it('has each one that authorities with one key allow, without those that have expired', async () => {
      const other = await TestAuthority.make('CN=other');
      const middle = await TestAuthority.make('CN=middle', { parent: authority });
      const crossed = await TestAuthority.make('CN=middle', { parent: other, keys: middle.keys });
      const expired = await TestAuthority.make('CN=middle', { parent: other, keys: middle.keys, notAfter: ago });
      const own = await middle.certify();
      expect(chains(own, middle, crossed, authority, other)).to.have.deep.members([
        prints(own, middle, authority),
        prints(own, crossed, other),
      ]);
      expect(chains(own, middle, crossed, authority)).to.deep.equal([prints(own, middle, authority)]);
      expect(chains(own, middle, expired, authority, other)).to.deep.equal([prints(own, middle, authority)]);
    });

    it('has an authority of the same name only if it has signed', async () => {
      const twin = await TestAuthority.make();
      expect(chains(client, twin, authority)).to.deep.equal([prints(client, authority)]);
    });

    it('has the root that OpenSSL finds, although its two names are written differently', async () => {
      const [odd, other] = [await TestAuthority.make('CN=odd', { issuer: 'CN=ODD' }), await TestAuthority.make('CN=other')];
      const middle = await TestAuthority.make('CN=middle', { parent: odd });
      const [own, below] = [await odd.certify(), await middle.certify()];
      expect(chains(own, odd, other)).to.deep.equal([prints(own, odd)]);
      expect(chains(below, odd, other)).to.have.deep.members([prints(below, odd), prints(below, other)]);
      const { port } = await listen(tlsWith([odd, other]));
      expect((await seen(port, own))?.chains).to.deep.equal([[own, odd].map(({ cert }) => sha256Of(cert))]);
      expect((await seen(port, withChain(below, middle)))?.chains).to.have.length(2);
    });

    it('is alone if authorities that sign each other have too many beginnings of chains', async () => {
      const mesh = await Promise.all(Array.from({ length: 9 }, (_, at) => TestAuthority.make(`CN=mesh ${at}`)));
      const crossed = await Promise.all(
        mesh.flatMap(({ subject, keys }) =>
          mesh.filter((parent) => parent.keys !== keys).map((parent) => TestAuthority.make(subject, { parent, keys })),
        ),
      );
      const own = await (mesh[0] as TestAuthority).certify();
      expect(chains(own, ...crossed)).to.deep.equal([prints(own)]); // the time limit of the test ends a search without a bound
    });

    it('is alone if there is no root, if there are too many chains, or one is too long', async () => {
      expect(chains(client)).to.deep.equal([prints(client)]);
      const roots = await Promise.all(
        Array.from({ length: clientChainsMax + 1 }, () => TestAuthority.make('CN=authority', { keys: authority.keys })),
      );
      expect(chains(client, ...roots.slice(1))).to.have.length(clientChainsMax);
      expect(chains(client, ...roots)).to.deep.equal([prints(client)]);
      const line = [authority];
      while (line.length < clientChainMax)
        line.push(await TestAuthority.make(`CN=level ${line.length}`, { parent: line.at(-1) as TestAuthority }));
      const [last, before] = [line.at(-1), line.at(-2)] as readonly TestAuthority[];
      const [deep, less] = [await (last as TestAuthority).certify(), await (before as TestAuthority).certify()];
      expect(chains(deep, ...line)).to.deep.equal([prints(deep)]);
      expect(chains(less, ...line)[0]).to.have.length(clientChainMax);
    });
  });
});
