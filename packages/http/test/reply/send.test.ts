// @live
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { dataReply, noContentReply, Rendered, type Reply } from '../../src/reply/reply.ts';
import { sendReply } from '../../src/reply/send.ts';

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
    reply = dataReply(new Rendered('{"keys":["a"', rest()), ['a warning']);
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
    reply = dataReply(new Rendered('{"keys":["a"', rest()));
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
      const [begin = '', long = '', end = ''] = pieces;
      for (const content of [pieces.map((piece) => Buffer.from(piece)), [Buffer.from(begin), long, end]]) {
        reply = { status: 200, body: content };
        const { headers, body } = await ask();
        expect(body === pieces.join('')).to.equal(true);
        expect(headers).to.include({ 'content-type': 'application/json', connection: 'keep-alive' });
        expect(headers['content-length']).to.equal(String(Buffer.byteLength(pieces.join(''))));
        expect(await ask('HEAD')).to.include({ status: 200, body: '' });
      }
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
