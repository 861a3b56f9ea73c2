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
});
