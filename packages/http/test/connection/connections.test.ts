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

describe('the connections of a node', () => {
  it('make room where most of them are, with the oldest that asks nothing', () => {
    const connections = new Connections(4);
    const [quiet, ...many] = ['192.0.2.1', '192.0.2.9', '192.0.2.9', '192.0.2.9'].map(from);
    for (const socket of [quiet, ...many]) if (socket !== undefined) connections.add(socket, nobody);
    const probe = from('192.0.2.2');
    const [first] = many;
    connections.add(probe, () => new Set(first === undefined ? [] : [endpointOf(first)]));
    expect([quiet, ...many, probe].map((socket) => socket?.destroyed)).to.deep.equal([false, false, true, false, false]);
    expect([connections.open, connections.cut]).to.deep.equal([4, 1]);
  });

  it('are spared when they have asked, also by another listener than the one that gets the connection too many', () => {
    const connections = new Connections(2);
    const [asking, quiet] = [from('192.0.2.9'), from('192.0.2.9')];
    connections.add(asking, () => new Set([endpointOf(asking)]));
    connections.add(quiet, nobody);
    const late = from('192.0.2.2');
    connections.add(late, nobody);
    expect([asking, quiet, late].map(({ destroyed }) => destroyed)).to.deep.equal([false, true, false]);
  });

  it('count as of one address when they come from one network of IPv6, in which everybody has addresses for each', () => {
    const connections = new Connections(3);
    const [client, ...many] = ['192.0.2.1', '2001:db8::1', '2001:db8::2', '2001:db8::3'].map(from);
    for (const socket of [client, ...many]) if (socket !== undefined) connections.add(socket, nobody);
    expect([client, ...many].map((socket) => socket?.destroyed)).to.deep.equal([false, true, false, false]);
  });

  it('turn the newest away when all that there are have asked', () => {
    const connections = new Connections(2);
    const sockets = [from('192.0.2.9'), from('192.0.2.9')];
    for (const socket of sockets) connections.add(socket, nobody);
    const late = from('192.0.2.2');
    connections.add(late, () => new Set(sockets.map(endpointOf)));
    expect([...sockets, late].map(({ destroyed }) => destroyed)).to.deep.equal([false, false, true]);
  });

  it('are counted once each, whether they are cut or end by themselves', async () => {
    const connections = new Connections(2);
    const sockets = Array.from({ length: 9 }, () => from('192.0.2.9'));
    for (const socket of sockets) connections.add(socket, nobody);
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect([connections.open, connections.cut]).to.deep.equal([2, 7]);
    expect(sockets.filter(({ destroyed }) => !destroyed)).to.deep.equal(sockets.slice(-2));
    for (const socket of sockets) if (!socket.destroyed) socket.emit('close');
    expect(connections.open).to.equal(0);
  });
});
