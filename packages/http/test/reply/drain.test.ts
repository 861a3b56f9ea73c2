// @live
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect } from 'chai';
import { endAfterDrain } from '../../src/reply/drain.ts';

describe('endAfterDrain', () => {
  it('ends the response at once if the rest of the body was read while the content was written', async () => {
    const ended: string[] = [];
    const server = createServer(async (req, res) => {
      res.writeHead(400, { Connection: 'close' }).write('refused');
      await once(req.resume(), 'end');
      res.end = (): typeof res => {
        ended.push('response');
        return res.destroy();
      };
      endAfterDrain(res);
      ended.push('call');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const caller = connect((server.address() as AddressInfo).port, '127.0.0.1');
    caller.write('POST / HTTP/1.1\r\nHost: n1\r\nTransfer-Encoding: chunked\r\n\r\n');
    await once(caller, 'data');
    caller.write('0\r\n\r\n');
    await once(caller.resume(), 'close');
    expect(ended).to.deep.equal(['response', 'call']);
    server.close();
  });

  it('does not reset the connection for a body that came while this process stalled', async () => {
    const server = createServer((_req, res) => {
      res.writeHead(413, { Connection: 'close' }).write('refused');
      endAfterDrain(res, 5);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200); // longer than all ticks
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const body = Buffer.alloc(8 * 1024 * 1024); // more than sockets hold
    const caller = connect((server.address() as AddressInfo).port, '127.0.0.1');
    caller.write(`POST / HTTP/1.1\r\nHost: n1\r\nContent-Length: ${body.length}\r\n\r\n`);
    caller.write(body);
    const answer = (await caller.toArray()).join('');
    expect(answer).to.match(/^HTTP\/1\.1 413 .*\r\n7\r\nrefused\r\n0\r\n\r\n$/s);
    server.close();
  });

  it('closes the connection of a caller that does not end its body', async () => {
    const server = createServer((_req, res) => {
      res.writeHead(413, { Connection: 'close' }).write('refused');
      endAfterDrain(res, 5);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const caller = connect((server.address() as AddressInfo).port, '127.0.0.1');
    caller.write('POST / HTTP/1.1\r\nHost: n1\r\nContent-Length: 10\r\n\r\n');
    await once(caller.resume(), 'close');
    server.close();
  });
});
