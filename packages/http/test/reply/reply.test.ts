import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import {
  dataReply,
  envelope,
  envelopeInPieces,
  errorsBody,
  longDataReply,
  noContentReply,
  replyWithRequestId,
  topLevelDataReply,
} from '../../src/reply/envelope.ts';
import { bodyText, type Reply, sendReply } from '../../src/reply/reply.ts';

describe('sendReply', () => {
  let server: Server;
  let reply: Reply;
  before(async () => {
    server = createServer((req, res) => sendReply(res, reply, { head: req.method === 'HEAD' })).listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  async function ask(method = 'GET') {
    const call = request({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', method }).end();
    const [answer] = await once(call, 'response');
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk);
    return { status: answer.statusCode, headers: answer.headers, body: Buffer.concat(chunks).toString('utf8') };
  }

  it('sends long data while it is read, in the usual envelope', async () => {
    const rest = async function* () {
      for (let i = 1; i < 5; i++) yield `,"é${i}"`;
      yield ']}';
    };
    reply = longDataReply('{"keys":["a"', rest(), ['a warning']);
    const { headers, body } = await ask();
    expect(JSON.parse(body)).to.include({ auth: null, wrap_info: null });
    expect(JSON.parse(body).data.keys).to.deep.equal(['a', 'é1', 'é2', 'é3', 'é4']);
    expect(JSON.parse(body).warnings).to.deep.equal(['a warning']);
    expect(headers).to.include({ 'content-type': 'application/json', 'transfer-encoding': 'chunked' });
    expect(headers).to.not.have.property('content-length');
  });

  it('closes the connection when long data cannot be read to its end', async () => {
    const rest = async function* () {
      yield ',"b"';
      await new Promise<void>((resolve) => setImmediate(resolve));
      throw new Error('sealed');
    };
    reply = longDataReply('{"keys":["a"', rest());
    expect(await ask().catch((error: NodeJS.ErrnoException) => error.code)).to.equal('ECONNRESET');
  });

  for (const { name, text } of [
    { name: 'ASCII', text: '0123456789abcdef'.repeat(2 ** 19) },
    { name: 'other characters', text: `é${'0123456789abcdef'.repeat(2 ** 19)}` },
  ])
    it(`sends long content of ${name} with its length, and keeps the connection`, async () => {
      reply = { status: 200, body: text };
      const { headers, body } = await ask();
      expect(headers['content-length']).to.equal(String(Buffer.byteLength(text)));
      expect(headers.connection).to.equal('keep-alive');
      expect(body === text).to.equal(true);
    });

  for (const length of [300_000, 5_000_000])
    it(`sends a body that consists of pieces of up to ${length} bytes, with its length`, async () => {
      const pieces = ['{"a":"é', 'x'.repeat(length), '"}\n'];
      reply = { status: 200, body: pieces.map((piece) => Buffer.from(piece)) };
      const { headers, body } = await ask();
      expect(body === pieces.join('')).to.equal(true);
      expect(headers).to.include({ 'content-type': 'application/json', connection: 'keep-alive' });
      expect(headers['content-length']).to.equal(String(Buffer.byteLength(pieces.join(''))));
      expect(await ask('HEAD')).to.include({ status: 200, body: '' });
    });

  it('sends the same envelope in pieces, and replaces its request id', () => {
    const data = '{"a":[1,2]}';
    const id = '00000000-0000-4000-8000-000000000000';
    const pieces = envelopeInPieces([Buffer.from('{"a":['), Buffer.from('1,2]}')], ['w']);
    const [long, short] = [pieces, envelope(data, ['w'])].map((body) => replyWithRequestId({ status: 200, body }, id));
    expect(bodyText(long ?? reply)).to.equal(bodyText(short ?? reply));
    expect(bodyText(short ?? reply)).to.contain(id);
    expect(replyWithRequestId({ status: 204 }, id)).to.deep.equal({ status: 204 });
  });

  it('writes long content in pieces, each after the caller has read the previous piece', async () => {
    reply = { status: 200, body: '0'.repeat(32 * 1024 * 1024) };
    let buffered = 0;
    const watch = (_req: IncomingMessage, res: ServerResponse): void => {
      setImmediate(() => {
        buffered = res.writableLength;
      });
    };
    server.once('request', watch);
    await ask();
    expect(buffered).to.be.below(1024 * 1024);
  });

  it('sends JSON with its length, no-store and HSTS', async () => {
    reply = { status: 200, body: '{"a":1}\n' };
    const { status, headers, body } = await ask();
    expect([status, body]).to.deep.equal([200, '{"a":1}\n']);
    expect(headers).to.include({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'content-length': '8',
      'strict-transport-security': 'max-age=31536000; includeSubDomains',
    });
    expect(headers).to.not.have.property('transfer-encoding');
  });

  for (const body of ['{"a":"ü"}\n', '{"a":"\u0080"}\n', '{"a":"🔑"}\n', `{"a":"${'x'.repeat(2_000_000)}ÿ"}\n`]) {
    it(`sends text beyond ASCII as UTF-8 (${body.slice(0, 12).trim()}…)`, async () => {
      reply = { status: 200, body };
      const answer = await ask();
      expect(answer.body).to.equal(body);
      expect(answer.headers['content-length']).to.equal(String(Buffer.byteLength(body)));
    });
  }

  it('sends no content and no content type with 204', async () => {
    reply = noContentReply;
    const { status, headers, body } = await ask('POST');
    expect([status, body]).to.deep.equal([204, '']);
    expect(headers).to.not.have.any.keys('content-type', 'content-length', 'transfer-encoding');
    expect(headers).to.include({ 'cache-control': 'no-store' });
  });

  for (const status of [204, 205, 304]) {
    it(`drops the body of a ${status}, which a health parameter can set`, async () => {
      reply = { status, body: '{"initialized":true}\n' };
      const answer = await ask();
      expect([answer.status, answer.body]).to.deep.equal([status, '']);
    });
  }

  it('answers HEAD with the code and headers of the GET, without content and length', async () => {
    reply = { status: 503, body: '{"sealed":true}\n' };
    const { status, headers, body } = await ask('HEAD');
    expect([status, body]).to.deep.equal([503, '']);
    expect(headers).to.include({ 'content-type': 'application/json', 'cache-control': 'no-store' });
    expect(headers).to.not.have.property('content-length');
  });

  it('sends the headers and the content type that a reply sets', async () => {
    reply = { status: 200, body: 'svc_up 1\n', headers: { 'Content-Type': 'text/plain; version=0.0.4', 'X-Service-Index': '7' } };
    const { headers } = await ask();
    expect(headers).to.include({ 'content-type': 'text/plain; version=0.0.4', 'x-service-index': '7' });
  });

  it('does not fail if the caller has disconnected', async () => {
    const failures: unknown[] = [];
    const gone = createServer((_req, res) => {
      res.destroy();
      try {
        sendReply(res, { status: 200, body: '{}' }, { head: false });
      } catch (error) {
        failures.push(error);
      }
    }).listen(0, '127.0.0.1');
    await once(gone, 'listening');
    const call = request({ port: (gone.address() as AddressInfo).port, host: '127.0.0.1' }).end();
    await once(call, 'error');
    gone.close();
    await once(gone, 'close');
    expect(failures).to.deep.equal([]);
  });
});

describe('the envelope', () => {
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

  it('has the members that clients expect, in order, with a newline', () => {
    const text = envelope('{"a":1}');
    const { request_id, ...rest } = JSON.parse(text);
    expect(request_id).to.match(uuid);
    expect(rest).to.deep.equal({
      lease_id: '',
      renewable: false,
      lease_duration: 0,
      data: { a: 1 },
      wrap_info: null,
      warnings: null,
      auth: null,
    });
    expect(text.replace(request_id, 'ID')).to.equal(
      '{"request_id":"ID","lease_id":"","renewable":false,"lease_duration":0,"data":{"a":1},"wrap_info":null,"warnings":null,"auth":null}\n',
    );
  });

  it('has a new request id each time', () => {
    const ids = Array.from({ length: 1000 }, () => JSON.parse(envelope('null')).request_id);
    expect(new Set(ids).size).to.equal(1000);
  });

  it('carries warnings as an array, whatever they contain', () => {
    expect(JSON.parse(bodyText(dataReply('{}', ['a "b"\n', 'c'])) ?? '').warnings).to.deep.equal(['a "b"\n', 'c']);
  });

  for (const data of [{}, { a: 1 }])
    it(`has ${JSON.stringify(data)} at the top level and in data`, () => {
      const { data: inside, ...top } = JSON.parse(bodyText(topLevelDataReply(data)) ?? '');
      expect(inside).to.deep.equal(data);
      expect(top).to.deep.include(data);
    });

  it('has an errors body, empty for a missing resource', () => {
    expect(errorsBody([])).to.equal('{"errors":[]}\n');
    expect(JSON.parse(errorsBody(['a "b"']))).to.deep.equal({ errors: ['a "b"'] });
  });
});
