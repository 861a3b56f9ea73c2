// @live
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FetchedKeys } from '@transitd/access';
import { expect } from 'chai';
import { pino } from 'pino';
import { makeCertificate } from '../../../process/test/certificate.ts';
import { keySources } from '../../src/providers/key-sources.ts';
import { FakeProvider } from './fake-provider.ts';

const documentPath = '/.well-known/openid-configuration';

describe('the sources of keys', () => {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-sources-'));
  let provider: FakeProvider;
  let lines: string[] = [];
  let token = '';
  let ca = '';

  before(async () => {
    provider = await FakeProvider.start(folder);
    provider.publish('one');
  });
  after(async () => {
    await provider.end();
    rmSync(folder, { recursive: true });
  });
  beforeEach(() => {
    provider.document = {};
    provider.answers.clear();
    provider.requests.length = 0;
    lines = [];
    token = 'pod-token-1';
    ca = provider.ca;
  });

  const wrongCa = readFileSync(makeCertificate(folder, 'other').cert_file, 'utf8');
  const file = join(folder, 'jwks.json');
  const sources = () =>
    keySources({
      files: { one: file },
      log: pino({}, { write: (line: string) => lines.push(line) }),
      podFile: (name) => (name === 'token' ? token : ca),
      env: { KUBERNETES_SERVICE_HOST: 'localhost', KUBERNETES_SERVICE_PORT: new URL(provider.url).port },
    });
  const discovery = (change: object = {}): FetchedKeys => ({ kind: 'discovery', url: provider.url, ca: provider.ca, ...change });
  const outcome = async (source: FetchedKeys): Promise<string | undefined> =>
    sources()
      .fetch(source)
      .catch((error: NodeJS.ErrnoException) => `refused: ${error.code ?? error.message}`);
  const paths = () => provider.requests.map(({ path }) => path);

  it('are files only by the names in the configuration', async () => {
    writeFileSync(file, '{"keys":[]}');
    expect(await outcome({ kind: 'file', name: 'one' })).to.equal('{"keys":[]}');
    for (const name of ['two', file, 'toString', '../one'])
      expect(await outcome({ kind: 'file', name }), name).to.equal(undefined);
  });

  it('are a URL, or what the document of an issuer names', async () => {
    expect(await outcome({ kind: 'url', url: `${provider.url}/keys`, ca: provider.ca })).to.equal(provider.keySet);
    expect(await outcome(discovery())).to.equal(provider.keySet);
    expect(paths()).to.deep.equal(['/keys', documentPath, '/keys']);
  });

  it('are the cluster of the pod, with the token and the CA of the moment, at no address from a document', async () => {
    provider.document = { jwks_uri: 'https://elsewhere.example/keys' };
    expect(await outcome({ kind: 'kubernetes' })).to.equal(provider.keySet);
    token = 'pod-token-2';
    expect(await outcome({ kind: 'kubernetes' })).to.equal(provider.keySet);
    expect(provider.requests).to.deep.equal(
      [1, 2].map((n) => ({
        path: '/openid/v1/jwks',
        authorization: `Bearer pod-token-${n}`,
        accept: 'application/jwk-set+json, application/json',
      })),
    );
    ca = wrongCa;
    expect(await outcome({ kind: 'kubernetes' })).to.equal('refused: DEPTH_ZERO_SELF_SIGNED_CERT');
  });

  it('send no credentials anywhere else', async () => {
    await outcome(discovery());
    expect(provider.requests.every(({ authorization }) => authorization === undefined)).to.equal(true);
  });

  it('may be at another port of the host of the issuer', async () => {
    const other = await FakeProvider.start(folder);
    try {
      other.publish('two');
      provider.document = { jwks_uri: `${other.url}/keys` };
      expect(await outcome(discovery({ ca: provider.ca + other.ca }))).to.equal(other.keySet);
    } finally {
      await other.end();
    }
  });

  for (const host of [
    ...[
      '127.0.0.1',
      '127.1',
      '0x7f.1',
      '2130706433',
      '0',
      '10.0.0.1',
      '192.168.1.1',
      '172.16.0.1',
      '100.64.0.1',
      '169.254.169.254',
    ],
    ...['[::1]', '[::]', '[::ffff:127.0.0.1]', '[::ffff:a9fe:a9fe]', '[::127.0.0.1]', '[fe80::1]', '[fd00:ec2::254]'],
    ...['[64:ff9b::7f00:1]', '[2002:7f00:1::]'],
  ])
    it(`are not at ${host} because a document says so`, async () => {
      const port = new URL(provider.url).port;
      provider.document = { jwks_uri: `https://${host}:${port}/keys` };
      expect(await outcome(discovery())).to.equal('refused: the host has a private address');
      expect(paths()).to.deep.equal([documentPath]);
    });

  it('are not at a name with a private address because a document says so', async () => {
    const issuer = provider.url.replace('localhost', '127.0.0.1');
    provider.document = { issuer, jwks_uri: `${issuer}/keys` };
    expect(await outcome(discovery({ url: issuer }))).to.equal(provider.keySet);
    provider.document = { issuer, jwks_uri: `${provider.url}/keys` };
    expect(await outcome(discovery({ url: issuer }))).to.equal('refused: the host has a private address');
    expect(paths()).to.deep.equal([documentPath, '/keys', documentPath]);
  });

  for (const path of [documentPath, '/keys'])
    for (const [what, respond, why] of [
      ['redirects to itself', (url: string) => ({ status: 302, location: `${url}/keys` }), 'the response has status 302'],
      ['redirects elsewhere', () => ({ status: 307, location: 'https://127.0.0.2/keys' }), 'the response has status 307'],
      ['fails', () => ({ status: 500 }), 'the response has status 500'],
    ] as const)
      it(`are refused if ${path} ${what}`, async () => {
        const { status, ...headers } = respond(provider.url);
        provider.answers.set(path, (_req, res) => res.writeHead(status, headers).end(provider.keySet));
        expect(await outcome(discovery())).to.equal(`refused: ${why}`);
        expect(paths().filter((one) => one === path)).to.have.length(1);
      });

  it('are refused if the document names another issuer, or is none', async () => {
    provider.document = { issuer: 'https://issuer.example' };
    expect(await outcome(discovery())).to.equal('refused: the discovery document has another issuer');
    provider.answers.set(documentPath, (_req, res) => res.end('<html></html>'));
    expect(await outcome(discovery())).to.equal('refused: the discovery document is not JSON');
    expect(paths()).to.not.include('/keys');
  });

  it('are refused if the answer does not end, or is too slow', async function () {
    this.timeout(60_000);
    provider.answers.set('/keys', (_req, res) => {
      const more = (): void => {
        while (!res.destroyed && res.write(Buffer.alloc(64 * 1024, 0x20)));
        if (!res.destroyed) res.once('drain', more);
      };
      more();
    });
    expect(await outcome(discovery())).to.equal('refused: the response is too long');
    provider.answers.set('/keys', (_req, res) => res.write('{'));
    expect(await outcome(discovery())).to.equal('refused: no answer within 5 s');
    provider.answers.set(documentPath, (_req, res) => res.write('{'));
    expect(await outcome(discovery())).to.equal('refused: no answer within 5 s');
  });

  it('are refused from a server with another certificate', async () => {
    for (const ca of ['', wrongCa]) expect(await outcome(discovery({ ca }))).to.equal('refused: DEPTH_ZERO_SELF_SIGNED_CERT');
  });

  it('are named in the log when they fail, once a minute, without path and query', () => {
    const source = { kind: 'url', url: 'https://issuer.example/secret?token=s', ca: '' } as const;
    const { failed } = sources();
    for (let n = 0; n < 5; n++) failed(source, new Error('no keys', { cause: new Error('connect ECONNREFUSED') }));
    failed({ kind: 'kubernetes' }, new Error('x'));
    const shown = lines.map((line) => JSON.parse(line) as { provider: string; reason: string; msg: string });
    expect(shown.map(({ provider, reason, msg }) => [provider, reason, msg])).to.deep.equal([
      ['https://issuer.example', 'no keys: connect ECONNREFUSED', 'could not get the keys that verify tokens'],
      ['kubernetes', 'x', 'could not get the keys that verify tokens'],
    ]);
    expect(lines.join()).to.not.include('secret');
  });
});
