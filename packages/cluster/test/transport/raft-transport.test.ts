import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { encodeBatch, encodeMessage, frameBytesMax, type Message, type NodeId, wireVersions } from '@transitd/raft-core';
import { expect } from 'chai';
import { WebSocket } from 'ws';
import { until } from '../../../process/test/until.ts';
import type { ListedNode, Member } from '../../src/membership/membership.ts';
import { ClusterListener } from '../../src/transport/cluster-listener.ts';
import { incarnationHeader, type Run, writeIncarnation } from '../../src/transport/incarnations.ts';
import { backoffMs, type TransportLimits, transportLimits } from '../../src/transport/peer-link.ts';
import { WebSocketTransport } from '../../src/transport/raft-transport.ts';
import { clusterId, memberAt, type TestCluster, type TestNode, testCluster } from '../credentials.ts';
import { type TcpProxy, tcpProxy } from './tcp-proxy.ts';

const heartbeat = (from: NodeId, to: NodeId, round = 1): Message => ({
  type: 'Heartbeat',
  from,
  to,
  term: 1,
  clusterId,
  session: 1,
  commit: 0,
  round,
});
const append = (from: NodeId, to: NodeId, bytes: number): Message => ({
  type: 'Append',
  from,
  to,
  term: 1,
  clusterId,
  session: 1,
  prevIndex: 0,
  prevTerm: 0,
  commit: 0,
  round: 1,
  entries: [{ term: 1, index: 1, type: 'normal', data: new Uint8Array(bytes).fill(7) }],
});

/** A run of a node's process on some copy of its disk. */
const run = (incarnation: number, copy = 'a'): Run => ({ incarnation, nonce: copy.repeat(32) });

/** A node's end: what it hears, and what it is told of its peers. */
interface End {
  readonly transport: WebSocketTransport;
  readonly heard: Message[];
  readonly unreachable: NodeId[];
  /** Who answered that it reads no format of this end. */
  readonly foreign: NodeId[];
  readonly removed: () => number;
  /** Who has met a later run of it, and who is still connected to an earlier one. */
  readonly overtaken: NodeId[];
  readonly early: NodeId[];
  /** Incarnations that it refused. */
  readonly strangers: (readonly [NodeId, string])[];
  /** Looks at its connections, as it would by its timer: looks are counted, not time. */
  readonly look: () => void;
}

describe('Raft’s messages', () => {
  let cluster: TestCluster;
  let one: TestNode;
  let two: TestNode;
  before(async () => {
    cluster = await testCluster();
    [one, two] = await Promise.all([cluster.node(1), cluster.node(2)]);
  });

  let memberState: Map<string, ListedNode>;
  let accepted: WebSocket[];
  let closing: (() => unknown)[];

  beforeEach(() => {
    memberState = new Map([one, two].map(({ id, certificate }) => [certificate, { id, memberState: 'member' }]));
    accepted = [];
    closing = [];
  });
  afterEach(async () => {
    for (const close of closing) await close();
  });

  function endOf(node: TestNode, limits: Partial<TransportLimits> = {}, ownRun = run(1)): End {
    let removed = 0;
    let look = (): void => undefined;
    const [heard, unreachable]: [Message[], NodeId[]] = [[], []];
    const { id: self, identity } = node;
    const [foreign, overtaken, early]: [NodeId[], NodeId[], NodeId[]] = [[], [], []];
    const strangers: (readonly [NodeId, string])[] = [];
    const transport = new WebSocketTransport({
      self,
      run: ownRun,
      identity: () => identity,
      onRemoved: () => removed++,
      onForeignVersion: (peer) => foreign.push(peer),
      onOvertaken: (peer) => overtaken.push(peer),
      onEarly: (peer) => early.push(peer),
      onStranger: (...refused) => strangers.push(refused),
      limits: { connectMsMax: 60_000, ...limits },
      every: (_intervalMs, task) => {
        look = task;
        return () => undefined;
      },
    });
    transport.receive({ message: (message) => heard.push(message), unreachable: (peer) => unreachable.push(peer) });
    closing.push(() => transport.close());
    return { transport, heard, unreachable, foreign, overtaken, early, strangers, removed: () => removed, look: () => look() };
  }

  /** Lets peers in to a node's end, and answers with the port and how to stop. */
  async function listen(node: TestNode, { transport }: End, { port = 0, versions = wireVersions } = {}) {
    const listener = new ClusterListener({
      identity: () => node.identity,
      memberState: (certificate) => memberState.get(certificate),
      calls: {},
      forwarded: () => undefined,
      raft: (socket, from, itsRun) => {
        accepted.push(socket);
        transport.accept(socket, from, itsRun);
      },
      judge: (from, itsRun) => transport.judge(from, itsRun),
      onFault: () => undefined,
      checkMs: 10,
      versions,
    });
    closing.push(() => listener.close());
    return { port: await listener.listen({ host: '127.0.0.1', port }), stop: () => listener.close() };
  }

  /** Sends until the far end has heard something: what is sent while there is no connection is lost. */
  const untilHeard = (from: End, to: End, message: Message): Promise<void> =>
    until(() => {
      from.transport.send([message]);
      return to.heard.length > 0;
    });

  /** Both ends know that they are connected, and nothing is on its way any more. */
  async function meet(from: End, to: End): Promise<void> {
    to.heard.length = 0;
    await untilHeard(from, to, heartbeat(1, 2));
    from.transport.send([heartbeat(1, 2, 999)]);
    await until(() => to.heard.some((message) => message.type === 'Heartbeat' && message.round === 999));
    to.heard.length = 0;
  }

  it('go both ways, on a connection for each', async () => {
    const [a, b] = [endOf(one), endOf(two)];
    const [atA, atB] = [await listen(one, a), await listen(two, b)];
    const list: readonly Member[] = [memberAt(one, atA.port), memberAt(two, atB.port)];
    for (const { transport } of [a, b]) transport.members(list);
    await untilHeard(a, b, heartbeat(1, 2));
    await untilHeard(b, a, heartbeat(2, 1));
    expect(b.heard[0]).to.deep.equal(heartbeat(1, 2));
    expect(a.heard[0]).to.deep.equal(heartbeat(2, 1));
    expect(accepted.length).to.equal(2);
  });

  it('travel in a format that both know, and not at all where there is none: the sender is told once, and again after it was heard', async () => {
    const [a, b] = [endOf(one, { reconnectMsMin: 1, reconnectMsMax: 2 }), endOf(two)];
    const { newest } = wireVersions;
    const later = await listen(two, b, { versions: { oldest: newest + 1, newest: newest + 2 } });
    a.transport.members([memberAt(two, later.port)]);
    await until(() => a.unreachable.length > 3);
    expect(a.foreign).to.deep.equal([2]);
    await later.stop();
    const next = await listen(two, b, { port: later.port, versions: { oldest: newest, newest: newest + 1 } });
    await untilHeard(a, b, heartbeat(1, 2));
    expect(accepted[0]?.protocol).to.equal(`transitd.raft.${newest}`);
    await next.stop();
    await listen(two, b, { port: later.port, versions: { oldest: newest + 1, newest: newest + 1 } });
    await until(() => a.foreign.length === 2);
  });

  describe('of a node whose disk was set back or copied', () => {
    const quick: Partial<TransportLimits> = { reconnectMsMin: 1, reconnectMsMax: 2 };

    for (const [what, later] of [
      ['an earlier run', run(4, 'b')],
      ['another run of the same number', run(5, 'b')],
    ] as const)
      it(`are not taken in, and it is told: ${what}`, async () => {
        const b = endOf(two);
        const list = [memberAt(two, (await listen(two, b)).port)];
        const first = endOf(one, quick, run(5));
        first.transport.members(list);
        await meet(first, b);
        first.transport.close();
        const copy = endOf(one, quick, later);
        copy.transport.members(list);
        await until(() => copy.overtaken.length > 0);
        copy.transport.send([heartbeat(1, 2)]);
        await until(() => copy.unreachable.length > 3);
        expect(copy.overtaken[0]).to.equal(2);
        expect(b.heard).to.deep.equal([]);
        expect(copy.early).to.deep.equal([]);
      });

    it('are not taken in while the node that was copied is connected, and are when it is gone', async () => {
      const b = endOf(two);
      const list = [memberAt(two, (await listen(two, b)).port)];
      const first = endOf(one, quick, run(5));
      first.transport.members(list);
      await meet(first, b);
      const copy = endOf(one, quick, run(6, 'b'));
      copy.transport.members(list);
      await until(() => copy.unreachable.length > 3);
      expect(copy.early, 'told once').to.deep.equal([2]);
      expect(copy.overtaken).to.deep.equal([]);
      await untilHeard(first, b, heartbeat(1, 2));
      first.transport.close();
      await until(() => {
        copy.transport.send([heartbeat(1, 2, 6)]);
        return b.heard.some((message) => message.type === 'Heartbeat' && message.round === 6);
      });
      // From now on the one that was copied is the older one.
      const again = endOf(one, quick, run(5));
      again.transport.members(list);
      await until(() => again.overtaken.length > 0);
    });

    it('give up after so many refusals in a row that the other one cannot be a lost connection', async () => {
      const b = endOf(two);
      const list = [memberAt(two, (await listen(two, b)).port)];
      const first = endOf(one, quick, run(5));
      first.transport.members(list);
      await meet(first, b);
      const copy = endOf(one, { ...quick, earlyMax: 7 }, run(6, 'b'));
      copy.transport.members(list);
      await until(() => copy.overtaken.length > 0);
      expect(copy.unreachable.length).to.be.at.least(6);
      expect(b.strangers, 'told once').to.deep.equal([[1, 'early']]);
      await untilHeard(first, b, heartbeat(1, 2));
    });

    it('do not give up while the peer comes and goes, which forgets whom it has met', async () => {
      const b = endOf(two);
      const { port, stop } = await listen(two, b);
      const first = endOf(one, quick, run(5));
      first.transport.members([memberAt(two, port)]);
      await meet(first, b);
      const copy = endOf(one, { ...quick, earlyMax: 10 }, run(6, 'b'));
      copy.transport.members([memberAt(two, port)]);
      await until(() => copy.early.length > 0);
      await stop();
      const before = copy.unreachable.length;
      await until(() => copy.unreachable.length > before + 20);
      expect(copy.overtaken).to.deep.equal([]);
    });

    it('are taken in from the same run as often as it connects', async () => {
      const b = endOf(two);
      const list = [memberAt(two, (await listen(two, b)).port)];
      for (let time = 0; time < 3; time++) {
        const same = endOf(one, quick, run(5));
        same.transport.members(list);
        await meet(same, b);
        expect([same.early, same.overtaken]).to.deep.equal([[], []]);
        same.transport.close();
      }
    });
  });

  it('of one send to one peer travel in one frame, in order', async () => {
    const [a, b] = [endOf(one), endOf(two)];
    a.transport.members([memberAt(two, (await listen(two, b)).port)]);
    await meet(a, b);
    let frames = 0;
    accepted[0]?.on('message', () => frames++);
    const messages = [heartbeat(1, 2, 5), append(1, 2, 10), heartbeat(1, 3), heartbeat(1, 2, 6)];
    a.transport.send(messages);
    await until(() => b.heard.some((message) => message.type === 'Heartbeat' && message.round === 6));
    expect(frames).to.equal(1);
    expect(b.heard.map(({ type }) => type)).to.deep.equal(['Heartbeat', 'Append', 'Heartbeat']);
  });

  it('that together are longer than a frame travel one by one', async () => {
    const [a, b] = [endOf(one), endOf(two)];
    a.transport.members([memberAt(two, (await listen(two, b)).port)]);
    await meet(a, b);
    const large = append(1, 2, 5 * 2 ** 20);
    expect(() => encodeBatch([large, large])).to.throw('A frame has at most');
    a.transport.send([large, large]);
    await until(() => b.heard.filter(({ type }) => type === 'Append').length === 2);
    expect(b.heard).to.deep.equal([large, large]);
  });

  it('to nobody are lost', () => {
    endOf(one).transport.send([heartbeat(1, 9)]);
  });

  it('never reach the receiver while it sends', async () => {
    const [a, b] = [endOf(one), endOf(two)];
    const [atA, atB] = [await listen(one, a), await listen(two, b)];
    for (const { transport } of [a, b]) transport.members([memberAt(one, atA.port), memberAt(two, atB.port)]);
    let sending = false;
    let [within, heard] = [0, 0];
    const send = (): void => {
      sending = true;
      a.transport.send([heartbeat(1, 2)]);
      sending = false;
    };
    const note = (): void => {
      heard++;
      if (sending) within++;
    };
    a.transport.receive({ message: note, unreachable: note });
    await until(() => {
      send();
      b.transport.send([heartbeat(2, 1)]);
      return heard > 20;
    });
    await atB.stop();
    const before = heard;
    await until(() => {
      send();
      return heard > before;
    });
    expect(within).to.equal(0);
  });

  describe('are not taken', () => {
    for (const { what, frame, binary = true } of [
      { what: 'from somebody else than they say', frame: encodeMessage(heartbeat(3, 2)) },
      { what: 'when one of a frame is forged', frame: encodeBatch([heartbeat(1, 2), heartbeat(3, 2)]) },
      { what: 'when they are for somebody else', frame: encodeMessage(heartbeat(1, 3)) },
      { what: 'when the frame is garbage', frame: Buffer.from('garbage') },
      { what: 'when the frame is empty', frame: Buffer.alloc(0) },
      { what: 'when the frame is cut short', frame: encodeMessage(heartbeat(1, 2)).subarray(0, 20) },
      { what: 'when one of a frame is cut short', frame: encodeBatch([heartbeat(1, 2), heartbeat(1, 2)]).subarray(0, 80) },
      { what: 'when the frame is text', frame: encodeMessage(heartbeat(1, 2)), binary: false },
      { what: 'when the frame is too long', frame: Buffer.alloc(frameBytesMax + 1) },
    ])
      it(`${what}: the connection ends, and nothing is delivered`, async () => {
        const b = endOf(two);
        const { port } = await listen(two, b);
        const { key, certificate: cert } = one.identity;
        const socket = new WebSocket(`wss://127.0.0.1:${port}/cluster/raft`, 'transitd.raft.1', {
          headers: { [incarnationHeader]: writeIncarnation(run(1)) },
          key,
          cert,
          rejectUnauthorized: false,
        });
        socket.on('error', () => undefined);
        await once(socket, 'open');
        const closed = once(socket, 'close');
        socket.send(frame, { binary });
        socket.send(encodeMessage(heartbeat(1, 2)));
        await closed;
        expect(b.heard).to.deep.equal([]);
      });

    it('from a node that has connected anew on the connection before', async () => {
      const b = endOf(two);
      const { port } = await listen(two, b);
      const { key, certificate: cert } = one.identity;
      const connect = async (): Promise<WebSocket> => {
        const socket = new WebSocket(`wss://127.0.0.1:${port}/cluster/raft`, 'transitd.raft.1', {
          headers: { [incarnationHeader]: writeIncarnation(run(1)) },
          key,
          cert,
          rejectUnauthorized: false,
        });
        await once(
          socket.on('error', () => undefined),
          'open',
        );
        return socket;
      };
      const first = await connect();
      const closed = once(first, 'close');
      const second = await connect();
      await closed;
      second.send(encodeMessage(heartbeat(1, 2)));
      await until(() => b.heard.length === 1);
      second.terminate();
    });

    it('by a peer that shows another certificate than the listed one', async () => {
      const [a, b] = [endOf(one), endOf(two)];
      const { port } = await listen(two, b);
      const other = await cluster.node(2);
      a.transport.members([memberAt(other, port)]);
      await until(() => a.unreachable.length > 1);
      expect(accepted.length).to.equal(0);
    });
  });

  describe('when a peer cannot be reached', () => {
    it('tell so once for each attempt, until it is there', async () => {
      let attempts = 0;
      const refusing: Server = createServer((socket) => {
        attempts++;
        socket.on('error', () => undefined).destroy();
      });
      refusing.listen(0, '127.0.0.1');
      await once(refusing, 'listening');
      const { port } = refusing.address() as { port: number };
      const [a, b] = [endOf(one), endOf(two)];
      a.transport.members([memberAt(two, port)]);
      await until(() => attempts === 3);
      await new Promise((resolve) => refusing.close(resolve));
      await until(() => a.unreachable.length >= 3);
      await listen(two, b, { port });
      await meet(a, b);
      const told = a.unreachable.length;
      expect(a.unreachable.every((peer) => peer === 2)).to.equal(true);
      await meet(a, b);
      expect(a.unreachable.length).to.equal(told);
      expect(accepted.length).to.equal(1);
    });

    it('connect anew after the peer’s listener was started again', async () => {
      const [a, b] = [endOf(one), endOf(two)];
      const { port, stop } = await listen(two, b);
      a.transport.members([memberAt(two, port)]);
      await meet(a, b);
      expect(a.unreachable).to.deep.equal([]);
      await stop();
      await until(() => a.unreachable.length >= 1);
      b.heard.length = 0;
      await listen(two, b, { port });
      await meet(a, b);
    });

    for (const [attempts, chance, expected] of [
      [0, 0, 25],
      [0, 1, 50],
      [1, 1, 100],
      [4, 1, 800],
      [5, 1, 1000],
      [5, 0, 500],
      [5000, 1, 1000],
    ] as const)
      it(`wait ${expected} ms after ${attempts} attempts, chance being ${chance}`, () => {
        expect(backoffMs(attempts, transportLimits, chance)).to.equal(expected);
      });

    it('stop for a member that is gone, and begin for one that moved', async () => {
      const [a, b] = [endOf(one), endOf(two)];
      const first = await listen(two, b);
      a.transport.members([memberAt(two, first.port)]);
      await meet(a, b);
      const second = await listen(two, b);
      const [old] = accepted;
      a.transport.members([memberAt(two, second.port)]);
      await until(() => old?.readyState === WebSocket.CLOSED && accepted.length === 2);
      await meet(a, b);
      a.transport.members([memberAt(one, 1)]);
      await until(() => accepted[1]?.readyState === WebSocket.CLOSED);
      const told = a.unreachable.length;
      b.heard.length = 0;
      a.transport.send([heartbeat(1, 2)]);
      await new Promise((resolve) => setImmediate(resolve));
      expect(b.heard).to.deep.equal([]);
      expect(a.unreachable.length).to.equal(told);
    });

    it('keep the connection while the peer’s certificate is being renewed, and leave it when it is another’s', async () => {
      const [a, b] = [endOf(one), endOf(two)];
      const { port } = await listen(two, b);
      a.transport.members([memberAt(two, port)]);
      await meet(a, b);
      const renewed = (await cluster.node(2)).certificate;
      a.transport.members([{ ...memberAt(two, port), nextCertificate: renewed }]);
      await meet(a, b);
      expect(accepted.length).to.equal(1);
      a.transport.members([{ ...memberAt(two, port), certificate: renewed }]);
      await until(() => accepted[0]?.readyState === WebSocket.CLOSED);
      await until(() => a.unreachable.length > 1);
    });
  });

  describe('of a removed node', () => {
    it('are answered by that news alone', async () => {
      const [a, b] = [endOf(one), endOf(two)];
      const { port } = await listen(two, b);
      memberState.set(one.certificate, { id: 1, memberState: 'removed' });
      a.transport.members([memberAt(two, port)]);
      await until(() => a.removed() > 0);
      expect(accepted.length).to.equal(0);
    });

    it('end on the connection that it has', async () => {
      const [a, b] = [endOf(one), endOf(two)];
      const { port } = await listen(two, b);
      a.transport.members([memberAt(two, port)]);
      await meet(a, b);
      memberState.set(one.certificate, { id: 1, memberState: 'removed' });
      await until(() => a.removed() > 0);
      expect(accepted[0]?.readyState).to.equal(WebSocket.CLOSED);
    });

    it('are not told so by a peer that merely does not know it', async () => {
      const [a, b] = [endOf(one), endOf(two)];
      const { port } = await listen(two, b);
      memberState.delete(one.certificate);
      a.transport.members([memberAt(two, port)]);
      await until(() => a.unreachable.length > 1);
      expect(a.removed()).to.equal(0);
    });
  });

  describe('on a network that swallows them', () => {
    let proxy: TcpProxy;
    let port = 0;
    beforeEach(async () => {
      proxy = await tcpProxy(() => port);
      closing.push(() => proxy.close());
    });

    it('leave the dead connection and find a new one', async () => {
      const [a, b] = [endOf(one), endOf(two)];
      port = (await listen(two, b)).port;
      a.transport.members([memberAt(two, proxy.port)]);
      await meet(a, b);
      proxy.freeze();
      a.transport.send([heartbeat(1, 2)]);
      await until(() => {
        a.look();
        return a.unreachable.length === 1;
      });
      await meet(a, b);
      expect(proxy.connections()).to.equal(2);
    });

    it('leave a dead connection at the far end too', async () => {
      const [a, b] = [endOf(one, { silentTicksMax: 100_000 }), endOf(two)];
      port = (await listen(two, b)).port;
      a.transport.members([memberAt(two, proxy.port)]);
      await meet(a, b);
      proxy.freeze();
      await until(() => {
        a.look();
        b.look();
        return accepted[0]?.readyState === WebSocket.CLOSED;
      });
      expect(a.unreachable).to.deep.equal([]);
    });

    it('keep a connection that only has nothing to say', async () => {
      // An answer may come some looks after its ping; without any, the connection would not last for half of these.
      const [a, b] = [endOf(one, { silentTicksMax: 40 }), endOf(two)];
      port = (await listen(two, b)).port;
      a.transport.members([memberAt(two, proxy.port)]);
      await meet(a, b);
      let pings = 0;
      accepted[0]?.on('ping', () => pings++);
      for (let sent = 1; sent <= 50; sent++) {
        for (const end of [a, a, b]) end.look();
        await until(() => pings === sent);
      }
      expect(a.unreachable).to.deep.equal([]);
      expect(accepted.length).to.equal(1);
    });

    it('are dropped above 8 MiB that nobody takes, and go on when there is room', async () => {
      const [a, b] = [endOf(one), endOf(two)];
      port = (await listen(two, b)).port;
      a.transport.members([memberAt(two, proxy.port)]);
      await meet(a, b);
      b.heard.length = 0;
      const [socket] = accepted;
      socket?.pause();
      const [sent, bytes] = [64, 2 ** 20];
      for (let i = 0; i < sent; i++) {
        a.transport.send([append(1, 2, bytes)]);
        await new Promise((resolve) => setImmediate(resolve));
      }
      socket?.resume();
      await until(() => {
        a.transport.send([heartbeat(1, 2, 77)]);
        return b.heard.some((message) => message.type === 'Heartbeat' && message.round === 77);
      });
      const arrived = b.heard.filter(({ type }) => type === 'Append').length;
      expect(arrived).to.be.at.least(transportLimits.unsentBytesMax / bytes);
      expect(arrived).to.be.below(sent);
      expect(a.unreachable).to.deep.equal([]);
    });

    it('wait longer for an answer that comes behind a long backlog', async () => {
      const [a, b] = [endOf(one, { slowBytesPerTick: 1 }), endOf(two)];
      port = (await listen(two, b)).port;
      a.transport.members([memberAt(two, proxy.port)]);
      await meet(a, b);
      const [socket] = accepted;
      socket?.pause();
      for (let i = 0; i < 40; i++) a.transport.send([append(1, 2, 2 ** 20)]);
      let looks = 0;
      await until(() => {
        a.look();
        return ++looks > 100; // many times the five looks
      });
      socket?.resume();
      await until(() => b.heard.filter(({ type }) => type === 'Append').length >= 8);
      expect(a.unreachable).to.deep.equal([]);
    });
  });

  it('end with the transport', async () => {
    const [a, b] = [endOf(one), endOf(two)];
    const { port } = await listen(two, b);
    a.transport.members([memberAt(two, port)]);
    await meet(a, b);
    a.transport.close();
    await until(() => accepted[0]?.readyState === WebSocket.CLOSED);
    expect(a.unreachable).to.deep.equal([]);
    a.transport.members([memberAt(two, port)]);
    a.transport.send([heartbeat(1, 2)]);
    expect(accepted.length).to.equal(1);
  });
});
