// @live
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { builtFiles, securityHeaders } from '@transitd/console';
import { attachFront } from '@transitd/http';
import { expect } from 'chai';
import { withConsole } from '../src/console.ts';

describe('the console at /ui/', () => {
  let server: Server;
  let origin = '';
  before(async () => {
    server = createServer({ requireHostHeader: false });
    attachFront(
      server,
      await withConsole((req, res) => void res.setHeader('x-front', '1').end(`the API answers ${req.method} ${req.url}`)),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.close();
    server.closeAllConnections();
  });

  /** Sends bytes and returns everything that the server sends until it closes. */
  const raw = (request: string): Promise<string> => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.end(request);
    return text(socket);
  };
  const get = (path: string, init: RequestInit = {}) => fetch(`${origin}${path}`, { redirect: 'manual', ...init });

  it('has the page, its script, its style and its icon, each with its content type and the security headers', async () => {
    expect(builtFiles.map(({ name }) => name)).to.deep.equal(['icon.svg', 'index.css', 'index.html', 'index.js']);
    for (const { name, type, content } of builtFiles) {
      const answer = await get(`/ui/${name === 'index.html' ? '' : name}`);
      expect(answer.status).to.equal(200);
      expect(await answer.text()).to.equal(content);
      expect(answer.headers.get('content-type')).to.equal(type);
      for (const [header, value] of Object.entries(securityHeaders)) expect(answer.headers.get(header)).to.equal(value);
    }
  });

  it('answers HEAD with the headers of GET and no content', async () => {
    const answer = await raw('HEAD /ui/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(answer).to.match(/^HTTP\/1\.1 200 /);
    expect(answer).to.match(/\r\nContent-Length: [1-9]\d+\r\n/);
    expect(answer.endsWith('\r\n\r\n')).to.equal(true);
  });

  it('compresses for clients that accept gzip, and sends 304 for the tag of either form', async () => {
    const packed = await raw('GET /ui/index.js HTTP/1.1\r\nHost: x\r\nAccept-Encoding: br, gzip\r\nConnection: close\r\n\r\n');
    expect(packed).to.match(/\r\nContent-Encoding: gzip\r\n/);
    const plain = await get('/ui/index.js', { headers: { 'Accept-Encoding': 'identity' } });
    expect(plain.headers.get('content-encoding')).to.equal(null);
    const zipped = await get('/ui/index.js', { headers: { 'Accept-Encoding': 'gzip' } });
    expect(zipped.headers.get('etag')).not.to.equal(plain.headers.get('etag'));
    for (const { headers } of [plain, zipped]) {
      const again = await get('/ui/index.js', { headers: { 'If-None-Match': headers.get('etag') ?? '' } });
      expect(again.status).to.equal(304);
      expect(await again.text()).to.equal('');
      expect(again.headers.get('content-security-policy')).to.equal(securityHeaders['Content-Security-Policy']);
    }
    const body = await fetch(`${origin}/ui/index.js`).then((answer) => answer.arrayBuffer());
    expect(() => gunzipSync(new Uint8Array(body))).to.throw(); // fetch has unpacked it
  });

  it('redirects /ui to /ui/, whatever the query, and nowhere else', async () => {
    for (const path of ['/ui', '/ui?next=//evil.example/', '/ui?\\evil.example']) {
      const answer = await get(path);
      expect(answer.status).to.equal(308);
      expect(answer.headers.get('location')).to.equal('/ui/');
    }
    expect((await get('/ui/?a=b')).status).to.equal(200);
  });

  for (const target of [
    '/ui/../v1/sys/health',
    '/ui/..',
    '/ui/.',
    '/ui/./index.js',
    '/ui//index.js',
    '/ui/index.html',
    '/ui/%2e%2e/%2e%2e/etc/passwd',
    '/ui/..%2f..%2fetc/passwd',
    '/ui/..\\..\\etc\\passwd',
    '/ui/index.js/',
    '/ui/index.js%00',
    '/ui/index.js;x',
    '/ui/index.js#x',
    '/ui/\\index.js',
    '/ui/INDEX.JS',
    '/ui/%69ndex.js',
    '/ui/__proto__',
    '/ui/constructor',
    '/ui/package.json',
    '/ui/index.js.map',
  ])
    it(`answers 404 to ${target}`, async () => {
      const answer = await raw(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect(answer).to.match(/^HTTP\/1\.1 404 /);
      expect(answer).to.include('\r\n\r\n{"errors":[]}\n');
      expect(answer).to.match(/\r\nContent-Security-Policy: default-src 'none'/);
    });

  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND'])
    it(`answers 405 to ${method}`, async () => {
      const answer = await raw(`${method} /ui/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect(answer).to.match(/^HTTP\/1\.1 405 /);
      expect(answer).to.match(/\r\nAllow: GET, HEAD\r\n/);
    });

  it('answers 405 to LIST', async () => {
    expect(await raw('LIST /ui/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')).to.match(/^HTTP\/1\.1 405 /);
  });

  it('refuses a GET with a body, so that the body is not read as a request', async () => {
    const smuggled = 'GET /v1/secret HTTP/1.1\r\nHost: x\r\n\r\n';
    const answer = await raw(`GET /ui/ HTTP/1.1\r\nHost: x\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`);
    expect(answer).to.match(/^HTTP\/1\.1 405 /);
    expect(answer).not.to.include('the API answers');
  });

  for (const target of ['/', '/v1/sys/health', '/uix', '/UI/', '/v1/ui/', '//ui/', '/%75i/', 'http://x/ui/', '*'])
    it(`leaves ${target} to the API`, async () => {
      const method = target === '*' ? 'OPTIONS' : 'GET';
      const answer = await raw(`${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect(answer).to.include(`the API answers ${method} ${target}`);
      expect(answer).not.to.match(/Content-Security-Policy/i);
    });

  it('answers pipelined requests in their order', async () => {
    const one = (path: string, last = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${last}\r\n`;
    const answer = await raw(one('/v1/a') + one('/ui/icon.svg') + one('/v1/b', 'Connection: close\r\n'));
    expect(answer).to.match(/GET \/v1\/a[\s\S]+<svg[\s\S]+GET \/v1\/b/);
  });
});
