// @live
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import pino from 'pino';
import { makeCertificate } from '../../../process/test/certificate.ts';
import { kubernetes } from '../../src/providers/kubernetes.ts';

let lines: string[];
const log = pino({}, { write: (line: string) => lines.push(line) });
beforeEach(() => {
  lines = [];
});

describe('an API server of Kubernetes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-api-server-'));
  const { cert_file, key_file } = makeCertificate(folder, 'localhost');
  const other = readFileSync(makeCertificate(folder, 'other').cert_file, 'utf8');
  const [ca, key] = [readFileSync(cert_file, 'utf8'), readFileSync(key_file)];
  let server: Server;
  let asked = 0;
  let answer: RequestListener;
  let url = '';

  before(async () => {
    server = createServer({ cert: ca, key }, (req, res) => {
      asked += 1;
      answer(req, res);
    }).listen(0, 'localhost');
    await once(server, 'listening');
    url = `https://localhost:${(server.address() as AddressInfo).port}/base/reviews`;
  });
  beforeEach(() => {
    asked = 0;
  });
  after(() => {
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true });
  });

  const post = (given = {}, withinMs?: number): Promise<unknown> =>
    kubernetes({ log, ...(withinMs !== undefined && { withinMs }) })
      .post(url, { ca, token: 'a.b.c', json: { spec: 1 }, ...given })
      .catch(({ code, message }: NodeJS.ErrnoException) => `failed: ${code ?? message}`);

  it('gets JSON with a bearer token, and its answer counts whatever the status is', async () => {
    let seen: readonly unknown[] = [];
    answer = async (req: IncomingMessage, res) => {
      const { 'content-type': type, authorization } = req.headers;
      seen = [req.method, req.url, type, authorization, await text(req)];
      res.writeHead(418).end('{"a":1}');
    };
    expect(await post()).to.deep.equal({ status: 418, json: { a: 1 } });
    expect(seen).to.deep.equal(['POST', '/base/reviews', 'application/json', 'Bearer a.b.c', '{"spec":1}']);
  });

  for (const [what, given, failure] of [
    ['with a certificate of an unknown authority', { ca: '' }, /^failed: (?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED)/],
    ['with a certificate of another authority', { ca: other }, /^failed: (?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED|UNABLE)/],
  ] as const)
    it(`gets neither the token nor the request ${what}`, async () => {
      answer = (_req, res) => res.end('{}');
      expect(await post(given)).to.match(failure);
      expect(asked).to.equal(0);
    });

  it('gets neither the token nor the request with a certificate for another name', async () => {
    const one = await new Promise<Server>((resolve) => {
      const named = createServer({ cert: other, key: readFileSync(join(folder, 'other.key')) }, () => (asked += 1));
      named.listen(0, 'localhost', () => resolve(named));
    });
    const at = `https://localhost:${(one.address() as AddressInfo).port}/`;
    const failure = await kubernetes({ log })
      .post(at, { ca: other, token: 't', json: {} })
      .catch(({ code }: NodeJS.ErrnoException) => code);
    one.close();
    expect(failure).to.equal('ERR_TLS_CERT_ALTNAME_INVALID');
    expect(asked).to.equal(0);
  });

  for (const [what, respond, outcome] of [
    [
      'is not followed to another place',
      (_req, res) => res.writeHead(307, { location: url }).end(),
      { status: 307, json: undefined },
    ],
    ['may not be JSON', (_req, res) => res.end('<html>'), { status: 200, json: undefined }],
    ['may not be long', (_req, res) => res.end(Buffer.alloc(70_000, 0x20)), 'failed: its answer has more than 65536 bytes'],
    ['must come', (req) => req.socket.destroy(), 'failed: ECONNRESET'],
  ] as readonly (readonly [string, RequestListener, unknown])[])
    it(`answers, and the answer ${what}`, async () => {
      answer = respond;
      expect(await post()).to.deep.equal(outcome);
      expect(asked).to.equal(1);
    });

  for (const [what, respond] of [
    ['come', () => undefined],
    ['be complete', (_req, res) => res.writeHead(200, { 'content-length': 100 }).write('{')],
  ] as readonly (readonly [string, RequestListener])[])
    it(`answers, and the answer must ${what} in time`, async () => {
      answer = respond;
      expect(await post({}, 500)).to.equal('failed: no answer within 0.5 s');
    });

  it('is named in the log when it refuses or fails, once a minute, without a token', async () => {
    const server = kubernetes({ log });
    const ask = () => server.post(url, { ca, token: 'a.b.c', json: {} }).catch(() => undefined);
    answer = (_req, res) => res.end('{}');
    await ask();
    expect(lines).to.deep.equal([]);
    answer = (_req, res) => res.writeHead(403).end('{"message":"a.b.c"}');
    await ask();
    answer = (_req, res) => res.destroy();
    await ask();
    const { origin } = new URL(url);
    expect(lines).to.have.length(1);
    expect(JSON.parse(lines[0] ?? '')).to.include({ server: origin, reason: 'it answered with status 403' });
    expect(lines[0]).not.to.contain('a.b.c');
  });

  it('is not asked with a token that is no header', async () => {
    expect(await post({ token: 'a\r\nb: c' })).to.equal('failed: ERR_INVALID_CHAR');
    expect(asked).to.equal(0);
  });
});

describe('the service account of the pod', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-pod-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('is read through the links of Kubernetes, again each time', () => {
    const { podFile } = kubernetes({ log, folder });
    const mount = (name: string, token: string): void => {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, 'token'), token);
      symlinkSync(name, join(folder, '..new'));
      renameSync(join(folder, '..new'), join(folder, '..data'));
    };
    mount('..first', 'one');
    symlinkSync('..data/token', join(folder, 'token'));
    expect(podFile('token')).to.equal('one');
    mount('..second', 'two');
    expect(podFile('token')).to.equal('two');
  });

  it('is missing outside of a pod', () => {
    expect(kubernetes({ log, folder }).podFile('token')).to.equal(undefined);
    expect(kubernetes({ log, folder: join(folder, 'none/at/all') }).podFile('ca.crt')).to.equal(undefined);
    writeFileSync(join(folder, 'file'), '');
    expect(kubernetes({ log, folder: join(folder, 'file') }).podFile('ca.crt')).to.equal(undefined);
  });

  it('is not read if it is no file, or too long', () => {
    mkdirSync(join(folder, 'token'));
    writeFileSync(join(folder, 'ca.crt'), Buffer.alloc(70_000));
    const { podFile } = kubernetes({ log, folder });
    expect(() => podFile('token')).to.throw('is not a regular file');
    expect(() => podFile('ca.crt')).to.throw('has more than 65536 bytes');
  });
});
