// @live
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { expect } from 'chai';
import { Connections, endpointOf } from '../../src/connection/connections.ts';

class FakeSocket extends EventEmitter {
  readonly remoteAddress: string;
  readonly remotePort: number;
  destroyed = false;

  constructor(remoteAddress: string, remotePort: number) {
    super();
    this.remoteAddress = remoteAddress;
    this.remotePort = remotePort;
  }

  destroy(): void {
    this.destroyed = true;
    setImmediate(() => this.emit('close'));
  }
}

let ports = 0;
function from(address: string): FakeSocket & Socket {
  ports += 1;
  return new FakeSocket(address, ports) as unknown as FakeSocket & Socket;
}
const nobody = (): ReadonlySet<string> => new Set();

describe('the limit on connections', () => {
  it('closes the oldest idle connection of the address with the most connections', () => {
    const connections = new Connections({ own: 4 });
    const [quiet, ...many] = ['192.0.2.1', '192.0.2.9', '192.0.2.9', '192.0.2.9'].map(from);
    for (const socket of [quiet, ...many]) if (socket !== undefined) connections.add(socket, nobody);
    const probe = from('192.0.2.2');
    const [first] = many;
    connections.add(probe, () => new Set(first === undefined ? [] : [endpointOf(first)]));
    expect([quiet, ...many, probe].map((socket) => socket?.destroyed)).to.deep.equal([false, false, true, false, false]);
    expect([connections.open, connections.evicted]).to.deep.equal([4, 1]);
  });

  it('keeps connections with a request in progress, also on other listeners', () => {
    const connections = new Connections({ own: 2 });
    const [asking, quiet] = [from('192.0.2.9'), from('192.0.2.9')];
    connections.add(asking, () => new Set([endpointOf(asking)]));
    connections.add(quiet, nobody);
    const late = from('192.0.2.2');
    connections.add(late, nobody);
    expect([asking, quiet, late].map(({ destroyed }) => destroyed)).to.deep.equal([false, true, false]);
  });

  it('counts by IPv6 network, since one host has many addresses in its network', () => {
    const connections = new Connections({ own: 3 });
    const [client, ...many] = ['192.0.2.1', '2001:db8::1', '2001:db8::2', '2001:db8::3'].map(from);
    for (const socket of [client, ...many]) if (socket !== undefined) connections.add(socket, nobody);
    expect([client, ...many].map((socket) => socket?.destroyed)).to.deep.equal([false, true, false, false]);
  });

  it('closes the newest connection if all others have a request in progress', () => {
    const connections = new Connections({ own: 2 });
    const sockets = [from('192.0.2.9'), from('192.0.2.9')];
    for (const socket of sockets) connections.add(socket, nobody);
    const late = from('192.0.2.2');
    connections.add(late, () => new Set(sockets.map(endpointOf)));
    expect([...sockets, late].map(({ destroyed }) => destroyed)).to.deep.equal([false, false, true]);
  });

  it('counts each connection once, whether it is closed by the limit or ends normally', async () => {
    const connections = new Connections({ own: 2 });
    const sockets = Array.from({ length: 9 }, () => from('192.0.2.9'));
    for (const socket of sockets) connections.add(socket, nobody);
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect([connections.open, connections.evicted]).to.deep.equal([2, 7]);
    expect(sockets.filter(({ destroyed }) => !destroyed)).to.deep.equal(sockets.slice(-2));
    for (const socket of sockets) if (!socket.destroyed) socket.emit('close');
    expect(connections.open).to.equal(0);
  });
});
