// @live
import { EventEmitter } from 'node:events';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { Reading } from '../../src/connection/reading.ts';

describe('reading of pipelined requests', () => {
  const made = (...addresses: readonly string[]) => {
    const resumed: string[] = [];
    const reading = new Reading();
    const server = new EventEmitter();
    reading.watch(server as Server);
    const sockets = addresses.map((remoteAddress, index) => {
      let isPaused = false;
      const socket = Object.assign(new EventEmitter(), {
        remoteAddress,
        isPaused: () => isPaused,
        pause: () => (isPaused = true),
        resume: () => {
          isPaused = false;
          resumed.push(`${index} ${remoteAddress}`);
        },
      }) as unknown as Socket;
      server.emit('connection', socket);
      return socket;
    });
    const pipelined = (from: number, requests: number): void => {
      const socket = sockets[from];
      if (socket === undefined) throw new Error(`no socket ${from}`);
      for (let n = 0; n < requests; n += 1) reading.pipelined(socket);
    };
    return { sockets, resumed, pipelined };
  };

  it('pauses all connections for the rest of a turn after 500 requests, and none for fewer', async () => {
    const { sockets, resumed, pipelined } = made('192.0.2.1', '192.0.2.2');
    pipelined(0, 499);
    await turn();
    expect(resumed).to.deep.equal([]);
    pipelined(0, 500);
    expect(sockets.map((socket) => socket.isPaused())).to.deep.equal([true, true]);
    await turn();
    expect(sockets.map((socket) => socket.isPaused())).to.deep.equal([false, false]);
  });

  it('resumes addresses that do not pipeline first, until a turn with few requests', async () => {
    const { resumed, pipelined } = made('192.0.2.1', '192.0.2.1', '192.0.2.2', '192.0.2.3');
    pipelined(0, 500);
    await turn();
    expect(resumed.splice(0)).to.deep.equal(['2 192.0.2.2', '3 192.0.2.3', '0 192.0.2.1', '1 192.0.2.1']);
    pipelined(2, 500);
    await turn();
    expect(resumed.splice(0)).to.deep.equal(['3 192.0.2.3', '0 192.0.2.1', '1 192.0.2.1', '2 192.0.2.2']);
    pipelined(0, 1);
    await turn();
    pipelined(3, 500);
    await turn();
    expect(resumed).to.deep.equal(['0 192.0.2.1', '1 192.0.2.1', '2 192.0.2.2', '3 192.0.2.3']);
  });
});
