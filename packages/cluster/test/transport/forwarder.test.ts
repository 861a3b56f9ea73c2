// @live
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { finished } from 'node:stream/promises';
import { endAfterDrain, indexValue } from '@transitd/http';
import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { ClusterClient, ClusterResponse, ForwardingClient } from '../../src/transport/cluster-client.ts';
import type { ClusterListener } from '../../src/transport/cluster-listener.ts';
import { Forwarder, type Leader } from '../../src/transport/forwarder.ts';
import { clusterId } from '../credentials.ts';
import { activeAndStandby } from './active-and-standby.ts';

const answered = '{"data":{"name":"orders"}}';
const headers = {
  'Content-Type': 'application/json',
  'Content-Length': String(answered.length),
  'X-Service-Index': indexValue({ history: clusterId, index: 7 }),
};

describe('a forwarded request', () => {
  let leader: Leader | undefined;
  let onForwarded: (req: IncomingMessage, res: ServerResponse) => void;
  /** Runs while the standby waits until it has applied the change. */
  let onWait: () => unknown;
  let listener: ClusterListener;
  let client: ClusterClient;
  let forwarder: Forwarder;
  let standby: Server;
  let forwarded: Promise<number | string>;

  const forwarderOf = (via: ForwardingClient): Forwarder =>
    new Forwarder({
      client: via,
      leader: {
        get present() {
          return leader;
        },
      },
      reached: async () => {
        await onWait();
        return true;
      },
      self: 'n2',
    });
  const loseLeader = ({ byTransfer = false } = {}): void => {
    leader = undefined;
    forwarder.leaderChanged({ byTransfer });
  };
  /** Sends a request to the standby. A failed forward closes the connection. */
  const ask = async (method: 'GET' | 'POST'): Promise<string> => {
    const { port } = standby.address() as AddressInfo;
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/v1/x`, { method });
      return `${answer.status} ${await answer.text()}`;
    } catch {
      return 'closed';
    }
  };

  before(async () => {
    ({ listener, client } = await activeAndStandby({ calls: {}, forwarded: (req, res) => onForwarded(req, res) }));
    standby = createServer((req, res) => {
      const body = req.headers['transfer-encoding'] === undefined ? Buffer.from('{}') : undefined;
      const options = { url: '/v1/x', body, changes: req.method === 'POST', caller: '127.0.0.1' };
      forwarded = forwarder.forward(req, res, options).catch((error: unknown) => {
        res.destroy();
        return error instanceof StoreError ? error.code : String(error);
      });
    });
    standby.listen(0, '127.0.0.1');
    await once(standby, 'listening');
  });
  after(async () => {
    standby.close();
    standby.closeAllConnections();
    client.close();
    await listener.close();
  });

  beforeEach(() => {
    leader = { id: 1, term: 1, isSilent: false };
    onForwarded = (_req, res) => void res.writeHead(200, headers).end(answered);
    onWait = () => undefined;
    forwarder = forwarderOf(client.forwarding());
  });

  it('gets the answer of the active node', async () => {
    expect(await ask('POST')).to.equal(`200 ${answered}`);
    expect(await forwarded).to.equal(200);
  });

  it('gets the whole answer if the leader changes while the standby still applies the change', async () => {
    onWait = async () => {
      loseLeader();
      await buffer((await client.request(1, { method: 'GET', path: '/v1/y', timeoutMs: 60_000 })).body); // some turns of the event loop
    };
    expect(await ask('POST')).to.equal(`200 ${answered}`);
    expect(await forwarded).to.equal(200);
  });

  it('gets the answer of the former active node if that has transferred its leadership', async () => {
    onForwarded = (_req, res) => {
      loseLeader({ byTransfer: true });
      leader = { id: 3, term: 2, isSilent: false };
      forwarder.leaderChanged({ byTransfer: true });
      res.writeHead(200, headers).end(answered);
    };
    expect(await ask('POST')).to.equal(`200 ${answered}`);
    expect(await forwarded).to.equal(200);
  });

  it('fails after a moment if the former active node has transferred its leadership and does not answer', async () => {
    onForwarded = () => loseLeader({ byTransfer: true });
    expect(await ask('POST')).to.equal('closed');
    expect(await forwarded).to.equal('outcome_unknown');
  });

  it('fails at once if the leader that followed a transfer is lost too', async () => {
    onForwarded = () => {
      loseLeader({ byTransfer: true });
      loseLeader();
    };
    expect(await ask('POST')).to.equal('closed');
    expect(await forwarded).to.equal('outcome_unknown');
  });

  it('may be decided again if the node that received it is no longer the active one and has executed nothing', async () => {
    onForwarded = (_req, res) => void res.writeHead(503, { 'x-transitd-not-executed': '1' }).end();
    expect(await ask('POST')).to.equal('closed');
    expect(await forwarded).to.equal('not_leader');
  });

  it('gets a refusal before its body is complete, and may still send the rest', async () => {
    onForwarded = (_req, res) => {
      res.writeHead(400, { Connection: 'close', 'Content-Length': answered.length }).write(answered);
      endAfterDrain(res);
    };
    const { port } = standby.address() as AddressInfo;
    const caller = connect(port, '127.0.0.1');
    caller.write('POST /v1/x HTTP/1.1\r\nHost: n2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n');
    let received = '';
    for await (const piece of caller.setEncoding('utf8')) {
      received += piece;
      // A connection that is closed with unread bytes is reset: then this loop throws.
      if (received.endsWith(answered)) caller.write(`100000\r\n${'x'.repeat(0x100000)}\r\n0\r\n\r\n`);
    }
    expect(received)
      .to.match(/^HTTP\/1\.1 400 [\s\S]*\r\nconnection: close\r\n/i)
      .and.to.match(/"orders"}}$/);
    expect(await forwarded).to.equal(400);
  });

  it('gets no answer if its body breaks off', async () => {
    const arrived = new Promise<IncomingMessage>((resolve) => {
      onForwarded = resolve;
    });
    const { port } = standby.address() as AddressInfo;
    const caller = connect(port, '127.0.0.1');
    caller.write('POST /v1/x HTTP/1.1\r\nHost: n2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n');
    const atLeader = await arrived;
    caller.destroy();
    await finished(atLeader.resume()).catch(() => undefined);
    expect([atLeader.complete, await forwarded]).to.deep.equal([false, 'outcome_unknown']);
  });

  for (const [method, code] of [
    ['POST', 'outcome_unknown'],
    ['GET', 'not_leader'],
  ] as const) {
    it(`fails at once as ${code} if the leader changes before it answers a ${method}`, async () => {
      onForwarded = () => loseLeader();
      expect(await ask(method)).to.equal('closed');
      expect(await forwarded).to.equal(code);
    });

    it(`sends nothing and fails as ${code} if the answer to a ${method} breaks while the standby still applies the change`, async () => {
      const body = new Readable({ read: () => undefined });
      const broken: ClusterResponse = { status: 200, headers: { 'x-service-index': headers['X-Service-Index'] }, body };
      forwarder = forwarderOf({ request: async () => broken });
      onWait = () => body.on('error', () => undefined).destroy(new Error('the connection ended'));
      expect(await ask(method)).to.equal('closed');
      expect(await forwarded).to.equal(code);
    });
  }
});
