// @live
import { EventEmitter, once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { PassThrough } from 'node:stream';
import { encodeBatch, encodeMessage, frameBytesMax, type Message, type NodeId, wireVersions } from '@transitd/raft-core';
import { expect } from 'chai';
import { WebSocket } from 'ws';
import { until } from '../../../process/test/until.ts';
import type { ListedNode, Member } from '../../src/membership/membership.ts';
import { ClusterListener } from '../../src/transport/cluster-listener.ts';
import { ConnectionEnding } from '../../src/transport/connection-ending.ts';
import { type Incarnation, incarnationHeader, writeIncarnation } from '../../src/transport/incarnations.ts';
import { backoffMs, type TransportLimits, transportLimits } from '../../src/transport/peer-link.ts';
import { WebSocketTransport } from '../../src/transport/web-socket-transport.ts';
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
  leaseMs: 150,
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

/** An incarnation of a node, on some copy of its disk. */
const incarnation = (number: number, copy = 'a'): Incarnation => ({ number, nonce: copy.repeat(32) });

/** The transport of one node, with everything that it received or reported. */
interface End {
  readonly transport: WebSocketTransport;
  readonly heard: Message[];
  readonly unreachable: NodeId[];
  /** Peers that closed their connections themselves and refuse new ones. */
  readonly gone: NodeId[];
  /** Peers without a frame format in common. */
  readonly foreign: NodeId[];
  readonly removed: () => number;
  /** Peers that know a later incarnation of this node, and peers that are still connected to an earlier one. */
  readonly overtaken: NodeId[];
  readonly early: NodeId[];
  /** Incarnations that this node refused. */
  readonly refused: (readonly [NodeId, string])[];
  /** Checks the node's connections, as its timer would: limits count checks, not time. */
  readonly tick: () => void;
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

  function endOf(node: TestNode, limits: Partial<TransportLimits> = {}, ownIncarnation = incarnation(1)): End {
    let removed = 0;
    let tick = (): void => undefined;
    const [heard, unreachable, gone]: [Message[], NodeId[], NodeId[]] = [[], [], []];
    const { id: self, identity } = node;
    const [foreign, overtaken, early]: [NodeId[], NodeId[], NodeId[]] = [[], [], []];
    const refused: (readonly [NodeId, string])[] = [];
    const transport = new WebSocketTransport({
      self,
      incarnation: ownIncarnation,
      members: { requireIdentity: () => identity },
      observer: {
        removed: () => void removed++,
        foreignVersion: (peer) => void foreign.push(peer),
        overtaken: (peer) => void overtaken.push(peer),
        earlierConnected: (peer) => void early.push(peer),
        refusedIncarnation: (...args) => void refused.push(args),
        unreachable: () => undefined,
        reachable: () => undefined,
      },
      limits: { connectMsMax: 60_000, ...limits },
      every: (_intervalMs, task) => {
        tick = task;
        return () => undefined;
      },
    });
    transport.receive({
      message: (message) => heard.push(message),
      unreachable: (peer) => unreachable.push(peer),
      refused: (peer) => gone.push(peer),
    });
    closing.push(() => transport.close());
    return {
      transport,
      heard,
      unreachable,
      gone,
      foreign,
      overtaken,
      early,
      refused,
      removed: () => removed,
      tick: () => tick(),
    };
  }

  /** Opens a node's cluster port; returns the port and a function to close it. */
  async function listen(node: TestNode, { transport }: End, { port = 0, versions = wireVersions } = {}) {
    const listener = new ClusterListener({
      members: { requireIdentity: () => node.identity, memberState: (certificate) => memberState.get(certificate) },
      calls: {},
      forwarded: { handle: () => undefined },
      raft: {
        accept: (socket, ...rest) => {
          accepted.push(socket);
          transport.accept(socket, ...rest);
        },
        judge: (from, incarnation) => transport.judge(from, incarnation),
      },
      onFault: () => undefined,
      checkMs: 10,
      versions,
    });
    closing.push(() => listener.close());
    return { port: await listener.listen({ host: '127.0.0.1', port }), stop: () => listener.close() };
  }

  /** Sends until a message has arrived: messages sent without a connection are lost. */
  const untilHeard = (from: End, to: End, message: Message): Promise<void> =>
    until(() => {
      from.transport.send([message]);
      return to.heard.length > 0;
    });

  /** Waits until both nodes are connected and no message is in flight. */
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

  it('use the newest common frame format; without one none is sent, and the sender is told once until a connection succeeds', async () => {
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

  describe('of a peer whose connections end', () => {
    const quick: Partial<TransportLimits> = { reconnectMsMin: 1, reconnectMsMax: 2 };

    /** Two nodes that are connected both ways; `port` is the second one's. */
    async function connected() {
      const [a, b] = [endOf(one, quick), endOf(two, quick)];
      const [atA, atB] = [await listen(one, a), await listen(two, b)];
      const list: readonly Member[] = [memberAt(one, atA.port), memberAt(two, atB.port)];
      for (const { transport } of [a, b]) transport.members(list);
      await untilHeard(a, b, heartbeat(1, 2));
      await untilHeard(b, a, heartbeat(2, 1));
      return { a, b, atA, atB };
    }

    it('report that the peer is gone once it has closed both and refuses a new one', async () => {
      const { a, b, atB } = await connected();
      await atB.stop();
      b.transport.close();
      await until(() => a.gone.length > 0);
      expect(new Set(a.gone)).to.deep.equal(new Set([2]));
    });

    it('report nothing while the peer accepts new connections', async () => {
      const { a, b } = await connected();
      for (const socket of accepted.splice(0)) socket.terminate();
      await until(() => accepted.length === 2 && a.transport.unconnected.length === 0);
      expect([a.gone, b.gone]).to.deep.equal([[], []]);
    });

    it('report nothing while a connection of the peer is open', async () => {
      const { a, b, atB } = await connected();
      await atB.stop();
      const refusals = a.unreachable.length;
      await until(() => a.unreachable.length > refusals + 5);
      expect(a.gone).to.deep.equal([]);
      b.transport.close();
      await until(() => a.gone.length > 0);
    });

    it('report nothing when this node closed the peer’s connection itself', async () => {
      const { a, atA, atB } = await connected();
      await atB.stop();
      await atA.stop(); // ends the connections of its callers
      const refusals = a.unreachable.length;
      await until(() => a.unreachable.length > refusals + 5);
      expect(a.gone).to.deep.equal([]);
    });

    it('report nothing when this node gave up its own connection', async () => {
      const { a, b, atB } = await connected();
      for (let check = 0; check <= transportLimits.silentTicksMax; check++) a.tick();
      const stopped = atB.stop();
      b.transport.close();
      await stopped;
      const refusals = a.unreachable.length;
      await until(() => a.unreachable.length > refusals + 5);
      expect(a.gone).to.deep.equal([]);
    });
  });

  describe('of a node whose disk was rolled back or copied', () => {
    const quick: Partial<TransportLimits> = { reconnectMsMin: 1, reconnectMsMax: 2 };

    for (const [what, later] of [
      ['an earlier incarnation', incarnation(4, 'b')],
      ['another incarnation with the same number', incarnation(5, 'b')],
    ] as const)
      it(`are refused, and the node is told: ${what}`, async () => {
        const b = endOf(two);
        const list = [memberAt(two, (await listen(two, b)).port)];
        const first = endOf(one, quick, incarnation(5));
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

    it('are refused while the original is connected, and accepted once it is gone', async () => {
      const b = endOf(two);
      const list = [memberAt(two, (await listen(two, b)).port)];
      const first = endOf(one, quick, incarnation(5));
      first.transport.members(list);
      await meet(first, b);
      const copy = endOf(one, quick, incarnation(6, 'b'));
      copy.transport.members(list);
      await until(() => copy.unreachable.length > 3);
      expect(copy.early, 'reported once').to.deep.equal([2]);
      expect(copy.overtaken).to.deep.equal([]);
      await untilHeard(first, b, heartbeat(1, 2));
      first.transport.close();
      await until(() => {
        copy.transport.send([heartbeat(1, 2, 6)]);
        return b.heard.some((message) => message.type === 'Heartbeat' && message.round === 6);
      });
      // From now on the original is the earlier incarnation.
      const again = endOf(one, quick, incarnation(5));
      again.transport.members(list);
      await until(() => again.overtaken.length > 0);
    });

    it('end the node after more refusals in a row than a lost connection can cause', async () => {
      const b = endOf(two);
      const list = [memberAt(two, (await listen(two, b)).port)];
      const first = endOf(one, quick, incarnation(5));
      first.transport.members(list);
      await meet(first, b);
      const copy = endOf(one, { ...quick, earlyMax: 7 }, incarnation(6, 'b'));
      copy.transport.members(list);
      await until(() => copy.overtaken.length > 0);
      expect(copy.unreachable.length).to.be.at.least(6);
      expect(b.refused, 'reported once').to.deep.equal([[1, 'early']]);
      await untilHeard(first, b, heartbeat(1, 2));
    });

    it('do not end the node while the peer restarts, which forgets earlier incarnations', async () => {
      const b = endOf(two);
      const { port, stop } = await listen(two, b);
      const first = endOf(one, quick, incarnation(5));
      first.transport.members([memberAt(two, port)]);
      await meet(first, b);
      const copy = endOf(one, { ...quick, earlyMax: 10 }, incarnation(6, 'b'));
      copy.transport.members([memberAt(two, port)]);
      await until(() => copy.early.length > 0);
      await stop();
      const before = copy.unreachable.length;
      await until(() => copy.unreachable.length > before + 20);
      expect(copy.overtaken).to.deep.equal([]);
    });

    it('are accepted from the same incarnation each time it connects', async () => {
      const b = endOf(two);
      const list = [memberAt(two, (await listen(two, b)).port)];
      for (let time = 0; time < 3; time++) {
        const same = endOf(one, quick, incarnation(5));
        same.transport.members(list);
        await meet(same, b);
        expect([same.early, same.overtaken]).to.deep.equal([[], []]);
        same.transport.close();
      }
    });
  });

  it('of one send to one peer share one frame, in order', async () => {
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

  it('of a type that the agreed format does not have are left out, and the others arrive', async () => {
    const question: Message = { ...heartbeat(1, 2), type: 'Confirm', request: { id: 1, incarnation: 1 }, index: 7 };
    for (const [newest, types] of [
      [1, ['Heartbeat']],
      [2, ['Heartbeat', 'Confirm']],
    ] as const) {
      const [a, b] = [endOf(one), endOf(two)];
      const [atA, atB] = [await listen(one, a), await listen(two, b, { versions: { oldest: 1, newest } })];
      expect(a.transport.carries('Confirm', 2), 'before there is a connection').to.equal(false);
      a.transport.members([memberAt(two, atB.port)]);
      await meet(a, b);
      expect(a.transport.carries('Confirm', 2), 'before the peer has connected').to.equal(false);
      b.transport.members([memberAt(one, atA.port)]);
      await untilHeard(b, a, heartbeat(2, 1));
      expect(a.transport.carries('Confirm', 2)).to.equal(newest === 2);
      a.transport.send([question]);
      a.transport.send([heartbeat(1, 2, 5), question]);
      a.transport.send([heartbeat(1, 2, 6)]);
      await until(() => b.heard.some((message) => message.type === 'Heartbeat' && message.round === 6));
      expect(new Set(b.heard.map(({ type }) => type))).to.deep.equal(new Set(types));
    }
  });

  it('that together exceed a frame are sent one by one', async () => {
    const [a, b] = [endOf(one), endOf(two)];
    a.transport.members([memberAt(two, (await listen(two, b)).port)]);
    await meet(a, b);
    const large = append(1, 2, 5 * 2 ** 20);
    expect(() => encodeBatch([large, large])).to.throw('The frame is longer than');
    a.transport.send([large, large]);
    await until(() => b.heard.filter(({ type }) => type === 'Append').length === 2);
    expect(b.heard).to.deep.equal([large, large]);
  });

  it('to an unknown node are lost', () => {
    endOf(one).transport.send([heartbeat(1, 9)]);
  });

  it('never reach the receiver during a send', async () => {
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
    a.transport.receive({ message: note, unreachable: note, refused: note });
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

  describe('are rejected', () => {
    for (const { what, frame, binary = true } of [
      { what: 'with a false sender', frame: encodeMessage(heartbeat(3, 2)) },
      { what: 'when one message of a frame is forged', frame: encodeBatch([heartbeat(1, 2), heartbeat(3, 2)]) },
      { what: 'for another node', frame: encodeMessage(heartbeat(1, 3)) },
      { what: 'when the frame is garbage', frame: Buffer.from('garbage') },
      { what: 'when the frame is empty', frame: Buffer.alloc(0) },
      { what: 'when the frame is cut short', frame: encodeMessage(heartbeat(1, 2)).subarray(0, 20) },
      {
        what: 'when one message of a frame is cut short',
        frame: encodeBatch([heartbeat(1, 2), heartbeat(1, 2)]).subarray(0, 80),
      },
      { what: 'when the frame is text', frame: encodeMessage(heartbeat(1, 2)), binary: false },
      { what: 'when the frame is too long', frame: Buffer.alloc(frameBytesMax + 1) },
    ])
      it(`${what}: the connection ends, and nothing is delivered`, async () => {
        const b = endOf(two);
        const { port } = await listen(two, b);
        const { key, certificate: cert } = one.identity;
        const socket = new WebSocket(`wss://127.0.0.1:${port}/cluster/raft`, 'transitd.raft.1', {
          headers: { [incarnationHeader]: writeIncarnation(incarnation(1)) },
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

    it('on the former connection of a node that has connected again', async () => {
      const b = endOf(two);
      const { port } = await listen(two, b);
      const { key, certificate: cert } = one.identity;
      const connect = async (): Promise<WebSocket> => {
        const socket = new WebSocket(`wss://127.0.0.1:${port}/cluster/raft`, 'transitd.raft.1', {
          headers: { [incarnationHeader]: writeIncarnation(incarnation(1)) },
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

    it('when they had arrived on the former connection but were not read yet', () => {
      const b = endOf(two);
      const [former, newer] = [new EventEmitter(), new EventEmitter()];
      for (const socket of [former, newer]) {
        const accepted = Object.assign(socket, { terminate: () => undefined }) as unknown as WebSocket;
        b.transport.accept(accepted, 1, incarnation(1), new ConnectionEnding(new PassThrough()));
      }
      former.emit('message', encodeMessage(heartbeat(1, 2, 1)), true);
      newer.emit('message', encodeMessage(heartbeat(1, 2, 2)), true);
      expect(b.heard).to.deep.equal([heartbeat(1, 2, 2)]);
    });

    it('by a peer whose certificate is not the listed one', async () => {
      const [a, b] = [endOf(one), endOf(two)];
      const { port } = await listen(two, b);
      const other = await cluster.node(2);
      a.transport.members([memberAt(other, port)]);
      await until(() => a.unreachable.length > 1);
      expect(accepted.length).to.equal(0);
    });
  });

  describe('when a peer cannot be reached', () => {
    it('report it once for each attempt, until the peer is reachable', async () => {
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
      const reports = a.unreachable.length;
      expect(a.unreachable.every((peer) => peer === 2)).to.equal(true);
      await meet(a, b);
      expect(a.unreachable.length).to.equal(reports);
      expect(accepted.length).to.equal(1);
    });

    it('reconnect after the peer’s listener was restarted', async () => {
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
      it(`wait ${expected} ms after ${attempts} attempts, with random value ${chance}`, () => {
        expect(backoffMs(attempts, transportLimits, chance)).to.equal(expected);
      });

    it('stop for a removed member, and resume for a member that moved', async () => {
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
      const reports = a.unreachable.length;
      b.heard.length = 0;
      a.transport.send([heartbeat(1, 2)]);
      await new Promise((resolve) => setImmediate(resolve));
      expect(b.heard).to.deep.equal([]);
      expect(a.unreachable.length).to.equal(reports);
    });

    it('keep the connection while the peer’s certificate is renewed, and drop it when the certificate is not the peer’s', async () => {
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
    it('are answered only by the notice of its removal', async () => {
      const [a, b] = [endOf(one), endOf(two)];
      const { port } = await listen(two, b);
      memberState.set(one.certificate, { id: 1, memberState: 'removed' });
      a.transport.members([memberAt(two, port)]);
      await until(() => a.removed() > 0);
      expect(accepted.length).to.equal(0);
    });

    it('end on its open connection', async () => {
      const [a, b] = [endOf(one), endOf(two)];
      const { port } = await listen(two, b);
      a.transport.members([memberAt(two, port)]);
      await meet(a, b);
      memberState.set(one.certificate, { id: 1, memberState: 'removed' });
      await until(() => a.removed() > 0);
      expect(accepted[0]?.readyState).to.equal(WebSocket.CLOSED);
    });

    it('get no such notice from a peer that does not know the node', async () => {
      const [a, b] = [endOf(one), endOf(two)];
      const { port } = await listen(two, b);
      memberState.delete(one.certificate);
      a.transport.members([memberAt(two, port)]);
      await until(() => a.unreachable.length > 1);
      expect(a.removed()).to.equal(0);
    });
  });

  describe('on a network that drops everything silently', () => {
    let proxy: TcpProxy;
    let port = 0;
    beforeEach(async () => {
      proxy = await tcpProxy(() => port);
      closing.push(() => proxy.close());
    });

    it('leave the dead connection for a new connection', async () => {
      const [a, b] = [endOf(one), endOf(two)];
      port = (await listen(two, b)).port;
      a.transport.members([memberAt(two, proxy.port)]);
      await meet(a, b);
      proxy.freeze();
      a.transport.send([heartbeat(1, 2)]);
      await until(() => {
        a.tick();
        return a.unreachable.length === 1;
      });
      await meet(a, b);
      expect(proxy.connections()).to.equal(2);
    });

    it('end a dead connection at the receiver too', async () => {
      const [a, b] = [endOf(one, { silentTicksMax: 100_000 }), endOf(two)];
      port = (await listen(two, b)).port;
      a.transport.members([memberAt(two, proxy.port)]);
      await meet(a, b);
      proxy.freeze();
      await until(() => {
        a.tick();
        b.tick();
        return accepted[0]?.readyState === WebSocket.CLOSED;
      });
      expect(a.unreachable).to.deep.equal([]);
    });

    it('keep an idle connection', async () => {
      // A pong may arrive some checks after its ping; without any, the connection would not last for half of these.
      const [a, b] = [endOf(one, { silentTicksMax: 40 }), endOf(two)];
      port = (await listen(two, b)).port;
      a.transport.members([memberAt(two, proxy.port)]);
      await meet(a, b);
      let pings = 0;
      accepted[0]?.on('ping', () => pings++);
      for (let sent = 1; sent <= 50; sent++) {
        for (const end of [a, a, b]) end.tick();
        await until(() => pings === sent);
      }
      expect(a.unreachable).to.deep.equal([]);
      expect(accepted.length).to.equal(1);
    });

    it('are dropped above 8 MiB of unread backlog, and resume when there is room', async () => {
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

    it('wait longer for a pong after a long backlog', async () => {
      const [a, b] = [endOf(one, { slowBytesPerTick: 1 }), endOf(two)];
      port = (await listen(two, b)).port;
      a.transport.members([memberAt(two, proxy.port)]);
      await meet(a, b);
      const [socket] = accepted;
      socket?.pause();
      for (let i = 0; i < 40; i++) a.transport.send([append(1, 2, 2 ** 20)]);
      let looks = 0;
      await until(() => {
        a.tick();
        return ++looks > 100; // many times the five looks
      });
      socket?.resume();
      await until(() => b.heard.filter(({ type }) => type === 'Append').length >= 8);
      expect(a.unreachable).to.deep.equal([]);
    });
  });

  it('end when the transport closes', async () => {
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
