// @live
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { type BodyLimits, readBody } from '../../src/body/body.ts';
import { RequestError, requestErrorReply } from '../../src/reply/request-error.ts';
import { sendReply } from '../../src/reply/send.ts';

describe('readBody', () => {
  let server: Server;
  let socket: Socket;
  let received: string;
  let outcome: Buffer | RequestError | undefined;
  let limits: BodyLimits;
  /** Waits before the body is read; undefined to read it as soon as the head was parsed. */
  let beforeRead: ((req: IncomingMessage) => Promise<void>) | undefined;
  let onRead: (read: Buffer | Promise<Buffer>, req: IncomingMessage) => void;

  beforeEach(async () => {
    received = '';
    outcome = undefined;
    limits = { bytesMax: 100, deadlineMs: 3_600_000 };
    beforeRead = undefined;
    onRead = () => undefined;
    const handle = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
      try {
        if (beforeRead !== undefined) await beforeRead(req);
        const read = readBody(req, res, limits);
        onRead(read, req);
        outcome = await read;
        sendReply(res, { status: 200, body: `${outcome.length}` }, { head: false });
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        outcome = error;
        sendReply(res, requestErrorReply(error), { head: false });
      }
    };
    server = createServer(handle).on('checkContinue', handle).listen(0, '127.0.0.1');
    await once(server, 'listening');
    socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', noDelay: true });
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
    await once(socket, 'connect');
  });

  afterEach(async () => {
    socket.destroy();
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  const head = (...headers: string[]): string =>
    `POST /v1/x HTTP/1.1\r\nHost: node\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`;
  const bodyRead = (): Buffer | undefined => (Buffer.isBuffer(outcome) ? outcome : undefined);
  const code = (): string | undefined => (outcome instanceof RequestError ? outcome.code : undefined);

  for (const { name, parts, expected } of [
    { name: 'one packet with head and body', parts: [`${head('Content-Length: 3')}abc`], expected: 'abc' },
    { name: 'a body in pieces', parts: [head('Content-Length: 6'), 'ab', 'cd', 'ef'], expected: 'abcdef' },
    { name: 'chunks', parts: [head('Transfer-Encoding: chunked'), '3\r\nabc\r\n', '3\r\ndef\r\n0\r\n\r\n'], expected: 'abcdef' },
    { name: 'no body', parts: [head()], expected: '' },
    { name: 'an announced length of 0', parts: [head('Content-Length: 0')], expected: '' },
    { name: 'chunks without content', parts: [head('Transfer-Encoding: chunked'), '0\r\n\r\n'], expected: '' },
    { name: 'exactly the limit', parts: [head('Content-Length: 100'), 'a'.repeat(100)], expected: 'a'.repeat(100) },
    {
      name: 'exactly the limit in chunks',
      parts: [head('Transfer-Encoding: chunked'), `64\r\n${'a'.repeat(100)}\r\n0\r\n\r\n`],
      expected: 'a'.repeat(100),
    },
  ]) {
    for (const isLate of [false, true])
      it(`reads ${name}${isLate ? ' that has arrived' : ''}, and the connection stays usable`, async () => {
        const arrived = async (req: IncomingMessage): Promise<void> => until(() => req.complete);
        if (isLate) beforeRead = arrived;
        for (let round = 1; round <= 2; round += 1) {
          outcome = undefined;
          for (const part of parts) {
            socket.write(part);
            await turn();
          }
          await until(() => outcome !== undefined && received.split('HTTP/1.1 200').length > round);
          expect(String(outcome)).to.equal(expected);
          expect(received).not.to.contain('Connection: close');
        }
      });
  }

  it('returns a complete small body at once, and starts no deadline for it', async () => {
    beforeRead = async (req) => {
      await until(() => req.complete);
      limits = { ...limits, deadlineMs: Number.NaN }; // setTimeout would call back at once
    };
    let isPromise: boolean | undefined;
    onRead = (read) => {
      isPromise = read instanceof Promise;
    };
    socket.write(`${head('Content-Length: 3')}abc`);
    await until(() => received.endsWith('3'));
    expect(isPromise).to.equal(false);
    expect(String(outcome)).to.equal('abc');
  });

  it('reads a small body in the packet of its head without listening to the stream', async () => {
    let isFlowing: boolean | null | undefined;
    onRead = (read, req) => {
      void Promise.resolve(read).then(() => {
        isFlowing = req.readableFlowing;
      });
    };
    socket.write(`${head('Content-Length: 3')}abc`);
    await until(() => isFlowing !== undefined);
    expect(isFlowing).to.equal(null);
    await until(() => received.endsWith('3'));
    expect(String(outcome)).to.equal('abc');
  });

  it('refuses a body whose caller disconnects in the turn of the head', async () => {
    onRead = (_, req) => void req.destroy();
    socket.write(`${head('Content-Length: 3')}ab`);
    await until(() => outcome !== undefined);
    expect(code()).to.equal('request_aborted');
  });

  it('refuses a body above the limit that has arrived', async () => {
    beforeRead = async (req) => until(() => req.readableLength === 101);
    socket.write(`${head('Transfer-Encoding: chunked')}65\r\n${'a'.repeat(101)}\r\n0\r\n\r\n`);
    await until(() => received.endsWith('}\n'));
    expect(code()).to.equal('body_too_large');
    expect(received).to.match(/^HTTP\/1\.1 413 /);
  });

  it('closes the connection after a response to a body that has arrived and was not read', async () => {
    beforeRead = async (req) => {
      await until(() => req.complete);
      throw new RequestError('permission_denied', 'no');
    };
    socket.write(`${head('Content-Length: 3')}abc`);
    await once(socket, 'close');
    expect(received).to.match(/\r\nConnection: close\r\n/);
  });

  it('refuses an announced length above the limit before reading a byte, and closes', async () => {
    socket.write(head('Content-Length: 101'));
    await until(() => received.endsWith('}\n'));
    expect(code()).to.equal('body_too_large');
    expect(received)
      .to.match(/^HTTP\/1\.1 413 /)
      .and.match(/\r\nConnection: close\r\n/);
    expect(received).to.contain('{"errors":["http: request body too large"]}\n');
    socket.write('a'.repeat(101));
    await once(socket, 'close');
  });

  it('refuses chunks as soon as they pass the limit, and closes', async () => {
    socket.write(`${head('Transfer-Encoding: chunked')}65\r\n${'a'.repeat(101)}\r\n`);
    await until(() => received.endsWith('}\n'));
    expect(received).to.match(/^HTTP\/1\.1 413 /);
    socket.end();
    await once(socket, 'close');
  });

  it('sends the whole response to a caller that keeps sending before the connection ends', async () => {
    socket.write(head('Content-Length: 20000000'));
    socket.write('a'.repeat(20_000_000));
    await once(socket, 'close');
    expect(received)
      .to.match(/^HTTP\/1\.1 413 /)
      .and.match(/too large"\]\}\n$/);
  });

  for (const coding of ['gzip, chunked', 'chunked, chunked', 'identity, chunked']) {
    it(`refuses the transfer coding ${coding}, whose body would be misread`, async () => {
      socket.write(`${head(`Transfer-Encoding: ${coding}`)}2\r\n{}\r\n0\r\n\r\n`);
      await once(socket, 'close');
      expect(outcome).to.not.be.instanceOf(Buffer);
      expect(received).to.match(/^HTTP\/1\.1 400 /);
    });
  }

  it('accepts chunked in upper and lower case', async () => {
    socket.write(`${head('Transfer-Encoding: Chunked')}2\r\n{}\r\n0\r\n\r\n`);
    await until(() => outcome !== undefined);
    expect(String(outcome)).to.equal('{}');
  });

  it('joins pieces of all sizes in order', async () => {
    const sizes = [...Array(40).fill(1), 5000, 1, 4096, 4097, 3, 70_000, ...Array(200).fill(1000), 1];
    const sent = sizes.map((size, i) => String.fromCharCode(97 + (i % 26)).repeat(size));
    limits = { ...limits, bytesMax: 1_000_000 };
    socket.write(head('Transfer-Encoding: chunked'));
    socket.write(`${sent.map((text) => `${text.length.toString(16)}\r\n${text}\r\n`).join('')}0\r\n\r\n`);
    await until(() => outcome !== undefined);
    expect(String(outcome) === sent.join('')).to.equal(true);
  });

  it('joins a long body in slices, between which the event loop runs', async () => {
    limits = { ...limits, bytesMax: 64 * 1024 * 1024 };
    const body = Buffer.alloc(48 * 1024 * 1024, 'abcdefghijklmnop');
    let turns = 0;
    let isJoining = false;
    server.once('request', (req: IncomingMessage) => {
      const count = (): void => {
        if (outcome !== undefined) return;
        turns += 1;
        setImmediate(count);
      };
      req.once('end', () => {
        isJoining = outcome === undefined;
        count();
      });
    });
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`);
    socket.write(body);
    await until(() => outcome !== undefined);
    expect(isJoining).to.equal(true);
    expect(turns).to.be.at.least(2);
    expect(Buffer.isBuffer(outcome) && outcome.equals(body)).to.equal(true);
  });

  it('uses only a small multiple of the size of a body in one-byte chunks', async () => {
    const bytes = 1_000_000;
    limits = { ...limits, bytesMax: 2 * bytes };
    socket.write(head('Transfer-Encoding: chunked'));
    const before = process.memoryUsage();
    let held = 0;
    for (let sent = 0; sent < bytes; sent += 50_000) {
      if (!socket.write('1\r\na\r\n'.repeat(50_000))) await once(socket, 'drain');
      const { heapUsed, external } = process.memoryUsage();
      held = Math.max(held, heapUsed + external - before.heapUsed - before.external);
    }
    socket.write('0\r\n\r\n');
    await until(() => outcome !== undefined);
    expect((outcome as Buffer).length).to.equal(bytes);
    // A Buffer for each piece would need 120 MB and more. The limit leaves room for the rest of the process.
    expect(held).to.be.below(80_000_000);
  });

  it('answers 408 to a body that does not arrive in time', async () => {
    limits = { ...limits, deadlineMs: 10 };
    socket.write(`${head('Content-Length: 5')}ab`);
    await until(() => received.endsWith('}\n'));
    expect(code()).to.equal('body_timeout');
    expect(received)
      .to.match(/^HTTP\/1\.1 408 /)
      .and.match(/\r\nConnection: close\r\n/);
  });

  it('answers 408 to a large body that arrives too slowly, but not to a body that waits for memory', async () => {
    const room = Promise.withResolvers<void>();
    const grown: (number | undefined)[] = [];
    const grow = (arrived: number, length: number | undefined) => {
      grown.push(length);
      return arrived > 100_000 ? undefined : room.promise;
    };
    const rate = { bytesMin: 10_000, windowMs: 20 };
    limits = { bytesMax: 1_000_000, deadlineMs: 3_600_000, rate, room: { grow, complete: () => undefined } };
    socket.write(`${head('Content-Length: 300000')}${'a'.repeat(70_000)}`);
    await until(() => grown.length > 0);
    await new Promise((resolve) => setTimeout(resolve, 50)); // longer than several rate windows
    expect(outcome).to.equal(undefined);
    room.resolve();
    await until(() => received.endsWith('}\n'));
    expect(code()).to.equal('body_timeout');
    expect(received)
      .to.match(/^HTTP\/1\.1 408 /)
      .and.contain('the request body arrives too slowly: 10000 bytes in 20 ms are needed');
    expect(grown[0]).to.equal(300_000);
  });

  const [mebibyte, mostAtOnce] = [2 ** 20, 4 * 2 ** 20];
  for (const length of [65_536, 65_537, 200_000, mebibyte, mebibyte + 1, mostAtOnce, mostAtOnce + 1, 6_000_000])
    for (const waits of [false, true])
      it(`reads ${length} bytes, for which memory ${waits ? 'is free later' : 'is free'}, as they were sent`, async () => {
        const grow = (): Promise<void> | undefined => (waits ? turn() : undefined);
        limits = { bytesMax: 10_000_000, deadlineMs: 3_600_000, room: { grow, complete: () => undefined } };
        const body = randomBytes(length);
        for (let round = 1; round <= 2; round += 1) {
          outcome = undefined;
          socket.write(head(`Content-Length: ${length}`));
          for (const part of [body.subarray(0, 10), body.subarray(10, 66_000), body.subarray(66_000)]) {
            socket.write(part);
            await turn();
          }
          await until(() => outcome !== undefined && received.split('HTTP/1.1 200').length > round);
          expect(bodyRead()?.equals(body)).to.equal(true);
        }
      });

  it('takes no memory for a body before it is reserved', async () => {
    const before = process.memoryUsage().arrayBuffers;
    let asked = false;
    const grow = (): Promise<void> => {
      asked = true;
      return new Promise(() => undefined);
    };
    limits = { bytesMax: 10_000_000, deadlineMs: 3_600_000, room: { grow, complete: () => undefined } };
    socket.write(`${head('Content-Length: 4000000')}${'a'.repeat(70_000)}`);
    await until(() => asked);
    expect(process.memoryUsage().arrayBuffers - before).to.be.below(1_000_000);
    socket.destroy();
    await until(() => outcome !== undefined);
    expect(code()).to.equal('request_aborted');
  });

  /** Sends this while the process stalls for so long that each limit of 20 ms is over. */
  const sendInStall = (bytes: string): void => {
    socket.write(bytes);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
  };

  it('counts the bytes that came within the deadline while this process stalled', async () => {
    limits = { ...limits, deadlineMs: 20 };
    onRead = () => sendInStall('2\r\ncd\r\n0\r\n\r\n');
    socket.write(`${head('Transfer-Encoding: chunked')}2\r\nab\r\n`);
    await until(() => received !== '' && outcome !== undefined);
    expect(code()).to.equal(undefined);
    expect(String(outcome)).to.equal('abcd');
  });

  it('counts the bytes that came within a window of the rate while this process stalled', async () => {
    let isCounting = false;
    const grow = (): undefined => {
      if (!isCounting) queueMicrotask(() => sendInStall('a'.repeat(30_000))); // after the window has begun
      isCounting = true;
    };
    const rate = { bytesMin: 10_000, windowMs: 20 };
    limits = { bytesMax: 1_000_000, deadlineMs: 3_600_000, rate, room: { grow, complete: () => undefined } };
    socket.write(`${head('Content-Length: 100000')}${'a'.repeat(70_000)}`);
    await until(() => received !== '' && outcome !== undefined);
    expect(code()).to.equal(undefined);
    expect(outcome).to.have.length(100_000);
  });

  it('notices a caller that disconnects during the body', async () => {
    socket.write(`${head('Content-Length: 5')}ab`);
    await once(server, 'request');
    socket.destroy();
    await until(() => outcome !== undefined);
    expect(code()).to.equal('request_aborted');
  });

  it('notices a caller that half-closes during the body', async () => {
    socket.write(`${head('Content-Length: 5')}ab`);
    await once(server, 'request');
    socket.end();
    await until(() => outcome !== undefined);
    expect(code()).to.equal('request_aborted');
  });

  it('answers Expect: 100-continue', async () => {
    socket.write(head('Content-Length: 3', 'Expect: 100-continue'));
    await until(() => received !== '');
    expect(received).to.equal('HTTP/1.1 100 Continue\r\n\r\n');
    socket.write('abc');
    await until(() => received.includes('HTTP/1.1 200'));
    expect(String(outcome)).to.equal('abc');
  });

  it('refuses Expect: 100-continue for a body that is too large', async () => {
    socket.write(head('Content-Length: 101', 'Expect: 100-continue'));
    await until(() => received.endsWith('}\n'));
    expect(received).to.match(/^HTTP\/1\.1 413 /);
  });
});
