// @live
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { installListVerb, type ListVerbOptions } from '../../src/connection/list-verb.ts';
import { sendReply } from '../../src/reply/send.ts';

const head = 'LIST /v1/transit/keys HTTP/1.1\r\nHost: node\r\nX-Service-Token: t\r\n\r\n';
const post = 'POST /v1/x HTTP/1.1\r\nHost: node\r\nContent-Length: 2\r\n\r\n{}';

/** Reads the body, then responds with the request as the listener saw it, so that a test can tell which request a response belongs to. */
const echo: RequestListener = (req, res) => {
  const { 'x-service-token': token = null } = req.headers;
  const body = `${JSON.stringify({ method: req.method, url: req.url, token, from: req.socket.remoteAddress })}\n`;
  const answer = () => sendReply(res, { status: 200, body }, { head: false });
  if (req.readableEnded) answer();
  else req.resume().once('end', answer);
};

describe('the LIST verb on node:http', () => {
  let server: Server;
  const sockets: Socket[] = [];

  async function start(options: ListVerbOptions = {}, handle: RequestListener = echo): Promise<void> {
    server = createServer({ maxHeaderSize: 16_384 }, handle);
    installListVerb(server, handle, options);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  }

  /** Returns everything that arrives on a connection until the server ends it. Each part is sent as one packet. */
  async function exchange(parts: readonly string[], { halfClose = false } = {}): Promise<string> {
    const socket = await dial();
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
    const closed = once(socket, 'close');
    for (const part of parts) {
      await sent(socket, part);
    }
    if (halfClose) socket.end();
    await closed;
    return received;
  }

  async function dial(): Promise<Socket> {
    const socket = connect({
      port: (server.address() as AddressInfo).port,
      host: '127.0.0.1',
      noDelay: true,
      allowHalfOpen: true,
    });
    sockets.push(socket);
    socket.on('error', () => undefined).on('end', () => socket.end());
    await once(socket, 'connect');
    return socket;
  }

  /** Waits until the server has read the packet, so that the next part arrives as a separate packet. */
  async function sent(socket: Socket, part: string): Promise<void> {
    const peer = [...connections].find(({ remotePort }) => remotePort === socket.localPort);
    const before = peer?.bytesRead ?? 0;
    socket.write(part, 'latin1');
    await until(() => peer === undefined || peer.destroyed || peer.bytesRead >= before + part.length);
  }

  const connections = new Set<Socket>();
  beforeEach(() => connections.clear());
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  const watched = async (options?: ListVerbOptions, handle?: RequestListener) => {
    await start(options, handle);
    server.on('connection', (socket: Socket) => {
      connections.add(socket);
      socket.on('close', () => connections.delete(socket));
    });
  };
  const connected = async (parts: readonly string[], options?: { halfClose?: boolean }) => exchange(parts, options);

  const statuses = (text: string): string[] => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status ?? '');

  it('reaches the listener of all requests with its method, path, headers and address', async () => {
    await watched();
    const answer = await connected([head]);
    expect(answer)
      .to.match(/^HTTP\/1\.1 200 OK\r\n/)
      .and.match(/\r\nConnection: close\r\n/);
    expect(answer).to.contain('{"method":"LIST","url":"/v1/transit/keys","token":"t","from":"127.0.0.1"}');
  });

  it('may be split at every byte, also within its verb', async () => {
    await watched();
    for (let at = 1; at < head.length; at += 1) {
      const answer = await connected([head.slice(0, at), head.slice(at)]);
      expect(answer, `split before byte ${at}`).to.contain('"method":"LIST","url":"/v1/transit/keys","token":"t"');
    }
  });

  it('may arrive byte by byte', async () => {
    await watched();
    expect(await connected([...head])).to.contain('"method":"LIST"');
  });

  it('works on a kept-alive connection after other requests, wherever it is split', async () => {
    await watched();
    for (const at of [0, 1, 2, 3, 4, 5, 40]) {
      const socket = await dial();
      await sent(socket, post);
      const [first] = await once(socket, 'data');
      expect(String(first)).to.contain('"method":"POST"');
      let received = '';
      socket.on('data', (chunk) => {
        received += chunk.toString('latin1');
      });
      const closed = once(socket, 'close');
      if (at > 0) await sent(socket, head.slice(0, at));
      await sent(socket, head.slice(at));
      await closed;
      expect(received, `split before byte ${at}`).to.contain('"method":"LIST"');
    }
  });

  it('is answered after the caller has half-closed', async () => {
    await watched();
    expect(await connected([head], { halfClose: true })).to.contain('"method":"LIST"');
  });

  for (const { name, parts } of [
    { name: 'empty lines before it', parts: [`\r\n\r\n${head}`] },
    {
      name: 'an announced length of 0, as some clients send',
      parts: [head.replace('\r\n\r\n', '\r\nContent-Length: 0\r\n\r\n')],
    },
    { name: 'Expect: 100-continue', parts: [head.replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n')] },
    { name: 'HTTP/1.0', parts: [head.replace('HTTP/1.1', 'HTTP/1.0')] },
    { name: 'a long target', parts: [head.replace('keys', `keys?after=${'a'.repeat(6000)}`)] },
  ]) {
    it(`is served with ${name}`, async () => {
      await watched();
      const answer = await connected(parts);
      expect(statuses(answer)).to.deep.equal(['200']);
      expect(answer).to.contain('"method":"LIST"');
    });
  }

  for (const { name, parts, status = '400' } of [
    { name: 'a body length', parts: [head.replace('\r\n\r\n', '\r\nContent-Length: 5\r\n\r\nhello')] },
    { name: 'a body length before the body has come', parts: [head.replace('\r\n\r\n', '\r\nContent-Length: 5\r\n\r\n')] },
    { name: 'Transfer-Encoding', parts: [head.replace('\r\n\r\n', '\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n')] },
    {
      name: 'both lengths',
      parts: [head.replace('\r\n\r\n', '\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n')],
    },
    { name: 'two lengths', parts: [head.replace('\r\n\r\n', '\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello')] },
    { name: 'two Hosts', parts: [head.replace('\r\n\r\n', '\r\nHost: other\r\n\r\n')] },
    { name: 'two Hosts in other spellings', parts: [head.replace('\r\n\r\n', '\r\nhOST: node\r\n\r\n')] },
    { name: 'no Host', parts: [head.replace('Host: node\r\n', '')] },
    { name: 'a folded header', parts: [head.replace('\r\n\r\n', '\r\nX: a\r\n b: c\r\n\r\n')] },
    { name: 'a space before a colon', parts: [head.replace('Host:', 'Host :')] },
    { name: 'bare line feeds in its headers', parts: [head.replaceAll('\r\n', '\n')] },
    { name: 'no version', parts: ['LIST /v1/transit/keys\r\n\r\n'] },
    { name: 'another protocol', parts: [head.replace('HTTP/1.1', 'HTTQ/1.1')] },
    { name: 'a tab after the verb', parts: [head.replace('LIST ', 'LIST\t')] },
    { name: 'a NUL in a header', parts: [head.replace(': t', ': t\0')] },
    { name: 'headers above 16 KiB', parts: [head.replace('\r\n\r\n', `\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`)], status: '431' },
    { name: 'a target above 16 KiB', parts: [head.replace('keys', 'a'.repeat(20_000))], status: '431' },
    { name: 'a head that is cut off', parts: [head.slice(0, 40)], halfClose: true },
    { name: 'a verb that is cut off', parts: ['LIS'], halfClose: true },
  ] as { name: string; parts: string[]; status?: string; halfClose?: boolean }[]) {
    it(`is refused with ${status} and the connection closed: ${name}`, async () => {
      let handled = 0;
      await watched({}, (req, res) => {
        handled += 1;
        echo(req, res);
      });
      const answer = await connected(parts, {
        halfClose: parts.some((part) => !part.includes('\r\n\r\n') && !part.includes('\n\n')),
      });
      expect(statuses(answer)).to.deep.equal([status]);
      expect(answer.toLowerCase()).to.contain('connection: close');
      expect(answer).to.match(/\{"errors":\[".+"\]\}\n$/);
      expect(handled).to.equal(0);
    });
  }

  it('allows no smuggling: bytes after it on the connection are not served', async () => {
    const seen: string[] = [];
    await watched({}, (req, res) => {
      seen.push(`${req.method} ${req.url}`);
      echo(req, res);
    });
    const answer = await connected([head + post]);
    expect(statuses(answer)[0]).to.equal('200');
    expect(seen).to.deep.equal(['LIST /v1/transit/keys']);
  });

  it('is refused after a request in the same packet, once that request is answered', async () => {
    await watched();
    const answer = await connected([post + head]);
    expect(statuses(answer)).to.deep.equal(['200', '400']);
    expect(answer).to.contain('"method":"POST"').and.not.contain('"method":"LIST"');
  });

  it('is refused after a request that is still open; the open request gets its response, because it may have taken effect', async () => {
    const open: (() => void)[] = [];
    await watched({}, (req, res) => {
      req.resume();
      open.push(() => echo(req, res));
    });
    const socket = await dial();
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
    const closed = once(socket, 'close');
    await sent(socket, post);
    await until(() => open.length > 0);
    await sent(socket, head);
    expect(received).to.equal('');
    open[0]?.();
    await closed;
    expect(statuses(received)).to.deep.equal(['200', '400']);
    expect(open).to.have.length(1);
  });

  it('ends the connection if a body is malformed while the response is being sent', async () => {
    await watched({}, (req, res) => {
      if (req.method === 'POST') return void req.resume();
      res.writeHead(200, { 'Content-Length': '10' });
      res.write('half');
    });
    const answer = await connected([
      'GET /v1/a HTTP/1.1\r\nHost: node\r\n\r\n',
      'POST /v1/b HTTP/1.1\r\nHost: node\r\nTransfer-Encoding: chunked\r\n\r\n',
      'zz\r\n',
    ]);
    expect(answer).to.match(/\r\n\r\nhalf$/);
  });

  it('answers a malformed body with 400 when nothing has been answered yet', async () => {
    await watched({}, (req) => void req.resume());
    const answer = await connected(['POST /v1/b HTTP/1.1\r\nHost: node\r\nTransfer-Encoding: chunked\r\n\r\n', 'zz\r\n']);
    expect(statuses(answer)).to.deep.equal(['400']);
  });

  for (const garbage of ['GEST', 'FOO', 'LISTS', 'list', 'LST', 'IST', 'ST', 'LIT', 'XLIST', 'LISP', '{}']) {
    it(`still refuses the method ${garbage}`, async () => {
      await watched();
      const answer = await connected([head.replace('LIST', garbage)]);
      const isMethod = garbage !== '{}'; // a well-formed method that no server has
      expect(statuses(answer)).to.deep.equal([isMethod ? '405' : '400']);
      expect(answer).to.contain(`{"errors":["${isMethod ? 'unsupported operation' : 'malformed HTTP request'}"]}\n`);
    });
  }

  it('still refuses bytes that are not HTTP', async () => {
    await watched();
    expect(statuses(await connected(['\x16\x03\x01\x02\x00\x01\x00']))).to.deep.equal(['400']);
  });

  it('still serves the methods that share its first letters', async () => {
    await watched();
    const answer = await connected(['LI', 'NK /v1/x HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n']);
    expect(answer).to.contain('"method":"LINK"');
  });

  it('answers other oversized heads with 431', async () => {
    await watched();
    expect(statuses(await connected([`GET /v1/x HTTP/1.1\r\nHost: node\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`]))).to.deep.equal([
      '431',
    ]);
  });

  it('closes a half-sent head at its deadline, so that silent callers hold nothing', async () => {
    await watched({ headMs: 20 });
    expect(statuses(await connected([head.slice(0, 30)]))).to.deep.equal(['408']);
    expect(statuses(await connected(['LIS']))).to.deep.equal(['408']);
    await until(() => connections.size === 0);
  });

  it('closes an exchange without a response at its deadline', async () => {
    await watched({ exchangeMs: 20 }, () => undefined);
    expect(await connected([head])).to.equal('');
    await until(() => connections.size === 0);
  });

  it('drops a caller that disconnects during its head', async () => {
    await watched();
    const socket = await dial();
    await sent(socket, head.slice(0, 30));
    socket.destroy();
    await until(() => connections.size === 0);
  });

  it('sends a response of many megabytes', async () => {
    const body = `"${'k'.repeat(8_000_000)}"`;
    await watched({}, (_req, res) => sendReply(res, { status: 200, body }, { head: false }));
    const answer = await connected([head]);
    expect(answer.length).to.be.above(body.length);
    expect(answer.endsWith(body)).to.equal(true);
  });
});
