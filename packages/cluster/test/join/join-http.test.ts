// @live
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeCertificate } from '../../../process/test/certificate.ts';
import { sendByHttp } from '../../src/join/join-http.ts';
import { clientOf, codeOf, makeJoiner, messageOf, sendTo, startLeader, staticSeal } from './join-fixtures.ts';

describe('a message of a join by HTTP', () => {
  const servers: Server[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    }
  });

  async function listen(server: Server): Promise<number> {
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }

  const serve = async (answer: RequestListener): Promise<string> => `http://127.0.0.1:${await listen(createServer(answer))}`;

  const answering =
    (status: number, body: string, headers: Record<string, string> = {}): RequestListener =>
    (_, response) =>
      void response.writeHead(status, headers).end(body);

  async function readAll(request: IncomingMessage): Promise<string> {
    let text = '';
    for await (const chunk of request) text += chunk;
    return text;
  }

  it('is posted as JSON, and its answer is JSON', async () => {
    let seen: unknown;
    const address = await serve(async (request: IncomingMessage, response: ServerResponse) => {
      const { method, url, headers } = request;
      seen = [method, url, headers['content-type'], JSON.parse(await readAll(request))];
      response.end('{"b":"é"}');
    });
    expect(await sendByHttp()(address, '/v1/x', { a: 'ü' })).to.deep.equal({ b: 'é' });
    expect(seen).to.deep.equal(['POST', '/v1/x', 'application/json', { a: 'ü' }]);
  });

  it('carries a whole join', async () => {
    const seal = staticSeal();
    const leader = await startLeader(seal);
    const local = sendTo(leader);
    const address = await serve(async (request: IncomingMessage, response: ServerResponse) => {
      response.end(JSON.stringify(await local('', request.url ?? '', JSON.parse(await readAll(request)))));
    });
    const { identity } = await clientOf(await makeJoiner(), sendByHttp(), { leaders: [address] }).complete(seal);
    expect(identity.membersAtJoin).to.have.lengthOf(2);
  });

  const long = 'x'.repeat(1000);
  for (const [what, answer, code, message] of [
    [
      'a redirect',
      answering(307, '', { location: 'http://127.0.0.1:1/' }),
      'leader_refused',
      'it answered with a redirect, which is not followed',
    ],
    [
      'a refusal',
      answering(409, '{"errors":["the name n2 is taken"]}'),
      'leader_refused',
      'it answered with status 409: the name n2 is taken',
    ],
    [
      'a refusal for now',
      answering(503, '{"errors":["no leader"]}'),
      'leader_unavailable',
      'it answered with status 503: no leader',
    ],
    ['too many requests', answering(429, ''), 'leader_unavailable', 'it answered with status 429'],
    ['a refusal without a reason', answering(400, '{"errors":[]}'), 'leader_refused', 'it answered with status 400'],
    ['a refusal that is not JSON', answering(404, '<html>'), 'leader_refused', 'it answered with status 404'],
    ['a refusal of unknown form', answering(404, '{"errors":[{"a":1}]}'), 'leader_refused', 'it answered with status 404'],
    [
      'a refusal with control characters',
      answering(400, '{"errors":["a\\u001b[2J\\nb\\u202e"]}'),
      'leader_refused',
      'it answered with status 400: a?[2J?b?',
    ],
    [
      'a refusal without end',
      answering(400, `{"errors":["${long}"]}`),
      'leader_refused',
      `it answered with status 400: ${long.slice(0, 300)}`,
    ],
    ['text instead of JSON', answering(200, 'hello'), 'leader_untrusted', 'its answer is not JSON'],
    [
      'no UTF-8',
      (_: IncomingMessage, response: ServerResponse) => void response.end(Buffer.of(0x22, 0xff, 0x22)),
      'leader_untrusted',
      'its answer is not JSON',
    ],
    ['nothing', answering(204, ''), 'leader_refused', 'it answered with status 204'],
    ['too much', answering(200, `"${'x'.repeat(128 * 1024)}"`), 'leader_untrusted', 'its answer has more than 131072 bytes'],
    ['a closed connection', (request: IncomingMessage) => void request.socket.destroy(), 'leader_unavailable', 'socket hang up'],
  ] as [string, RequestListener, string, string][])
    it(`that is answered with ${what}: ${message.slice(0, 60)}`, async () => {
      const send = sendByHttp();
      const address = await serve(answer);
      expect(await codeOf(send(address, '/', {}))).to.equal(code);
      expect(await messageOf(send(address, '/', {}))).to.equal(message);
    });

  for (const [what, answer] of [
    ['never answered', () => undefined],
    ['answered without end', (_: IncomingMessage, response: ServerResponse) => void response.writeHead(200).write('{')],
  ] as [string, RequestListener][])
    it(`that is ${what} has a deadline`, async () => {
      const attempt = sendByHttp({ deadlineMs: 50 })(await serve(answer), '/', {});
      expect(await codeOf(attempt)).to.equal('leader_unavailable');
      expect(await messageOf(attempt)).to.equal('no answer within 0.05 s');
    });

  it('that is answered by a switch of protocols ends', async () => {
    const address = await serve((_, res) => res.writeHead(101, { connection: 'Upgrade', upgrade: 'other' }).flushHeaders());
    const attempt = sendByHttp()(address, '/', {});
    expect(await codeOf(attempt)).to.equal('leader_unavailable');
    expect(await messageOf(attempt)).to.equal('the connection ended without an answer');
  });

  it('ends when the node stops', async () => {
    const stop = new AbortController();
    const address = await serve(() => stop.abort());
    expect(await messageOf(sendByHttp({ signal: stop.signal })(address, '/', {}))).to.equal('stopped');
  });

  it('reports why it could not connect', async () => {
    const server = createServer();
    const port = await listen(server);
    await new Promise((closed) => server.close(closed));
    expect(await messageOf(sendByHttp()(`http://127.0.0.1:${port}`, '/', {}))).to.equal(`connect ECONNREFUSED 127.0.0.1:${port}`);
  });

  it('checks the leader by HTTPS against the given authority', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'join-http-'));
    try {
      const { key_file, cert_file } = makeCertificate(folder, 'localhost');
      const [key, cert] = [readFileSync(key_file), readFileSync(cert_file, 'utf8')];
      const address = `https://localhost:${await listen(createTlsServer({ key, cert }, answering(200, '{}')))}`;
      expect(await sendByHttp({ ca: cert })(address, '/', {})).to.deep.equal({});
      expect(await codeOf(sendByHttp()(address, '/', {}))).to.equal('leader_unavailable');
      expect(await messageOf(sendByHttp()(address, '/', {}))).to.match(/self-signed certificate/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
