// @live
// Somebody who holds the certificate and key of a member sends malformed and too large frames, and messages of other nodes. They end the
// connection, and nothing else: no process ends, and no memory fills up.
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { encodeBatch, encodeMessage, frameBytesMax, type Message, type MessageBody } from '@transitd/raft-core';
import { expect } from 'chai';
import { WebSocket } from 'ws';
import { LiveCluster } from '../cluster/harness/live-cluster.ts';
import type { LiveNode } from '../cluster/harness/live-node.ts';
import { scenarioMs } from '../cluster/harness/scenario.ts';

/** The identity of a node, read from its disk. */
interface Stolen {
  readonly certificate: string;
  readonly key: string;
  readonly clusterId: string;
  readonly id: number;
}

const portOf = ({ log }: LiveNode): string => /"address":"([^"]+)"[^\n]*"msg":"the cluster port is open"/.exec(log)?.[1] ?? '';

type Envelope = Partial<Pick<Message, 'from' | 'to' | 'term'>>;

function identityOf({ dataDir }: LiveNode): Stolen {
  const { certificate, key } = JSON.parse(readFileSync(join(dataDir, 'identity.json'), 'utf8'));
  const [, clusterId = '', id] =
    /^URI:transitd:([^/]+)\/(\d+)$/.exec(new X509Certificate(certificate).subjectAltName ?? '') ?? [];
  return { certificate, key, clusterId, id: Number(id) };
}

/** As many as fit in a frame, and some of those that a batch may hold in messages of their own. */
const [readsInFrame, messagesInBatch] = [780_000, 8_000];
const raftVersion = 2;
/** No term is above it, so a node that follows a leader ignores such messages. */
const oldTerm = 0;

describe('frames of a hostile member', function () {
  this.timeout(scenarioMs);
  let cluster: LiveCluster;
  let leader: LiveNode;
  let victim: LiveNode;
  let stolen: Stolen;
  /** Above the numbers of all processes that ran on the stolen identity. */
  let incarnation = 1_000;

  before(async () => {
    // Memory that is not released ends a process soon.
    cluster = await LiveCluster.formed({ elections: 'never', env: () => ({ NODE_OPTIONS: '--max-old-space-size=150' }) });
    leader = await cluster.settled();
    const [robbed, other] = cluster.others(leader) as [LiveNode, LiveNode];
    victim = other;
    stolen = identityOf(robbed);
    await robbed.stop();
  });
  after(() => cluster?.end());

  /** Opens a connection for Raft messages, as the node of the stolen identity. */
  const connected = async (to: LiveNode): Promise<WebSocket> => {
    incarnation += 1;
    const socket = new WebSocket(`wss://${portOf(to)}/cluster/raft`, [`transitd.raft.${raftVersion}`], {
      ...{ key: stolen.key, cert: stolen.certificate, rejectUnauthorized: false, perMessageDeflate: false },
      headers: { 'x-transitd-run': `${incarnation}.${'ab'.repeat(16)}` },
    });
    socket.on('error', () => undefined); // `close` follows
    await once(socket, 'open');
    return socket;
  };

  /** Makes a call as the node of the stolen identity; returns the status of the answer. */
  const called = async (to: LiveNode, method: string, path: string, body = ''): Promise<number> => {
    const req = request(`https://${portOf(to)}/cluster/${path}`, {
      ...{ method, agent: false, key: stolen.key, cert: stolen.certificate, rejectUnauthorized: false },
      headers: { 'x-transitd-run': `${incarnation}.${'ab'.repeat(16)}`, 'Content-Length': Buffer.byteLength(body, 'latin1') },
    });
    req.end(body, 'latin1');
    const [answer] = (await once(req, 'response')) as [IncomingMessage];
    answer.resume();
    await once(answer, 'close');
    return answer.statusCode ?? 0;
  };

  const messageTo = (node: LiveNode, body: MessageBody, envelope: Envelope = {}): Message => ({
    ...{ from: stolen.id, to: identityOf(node).id, term: oldTerm, clusterId: stolen.clusterId, session: 0, ...envelope },
    ...body,
  });

  /** Expects that all processes still run, that the leader leads, and that both nodes serve. */
  const expectUp = async (): Promise<void> => {
    const answer = await cluster.ask(leader, 'POST', `transit/keys/k${incarnation}`, {});
    expect(answer.status, answer.text).to.equal(200);
    await victim.reaches(473);
    expect([leader.log, victim.log].join(''), 'broken rules').not.to.match(/broken invariant|is fatal/);
    expect(
      cluster.broken.map(({ name }) => name),
      'nodes with a violated invariant',
    ).to.deep.equal([]);
  };

  const heartbeat: MessageBody = { type: 'Heartbeat', commit: 0, round: 1, leaseMs: 0 };
  const conf = { voters: [1], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false, context: new Uint8Array(0) };
  const offerOf = (index: number): MessageBody => ({ type: 'SnapOffer', meta: { index, term: 0, confIndex: 0, conf } });
  const withEntry = (type: 'normal' | 'conf', data: Uint8Array): MessageBody => ({
    ...{ type: 'Append', prevIndex: 0, prevTerm: 0, commit: 0, round: 1 },
    entries: [{ term: 2 ** 40, index: 1, type, data }],
  });

  /** A frame with some of its bytes changed. */
  const changed = (frame: Uint8Array, at: number, ...bytes: readonly number[]): Uint8Array => {
    const copy = Uint8Array.from(frame);
    copy.set(bytes, at);
    return copy;
  };
  const offerWith = (node: LiveNode, json: Uint8Array): Uint8Array => {
    const frame = encodeMessage(messageTo(node, offerOf(1)));
    return Buffer.concat([frame.subarray(0, frame.indexOf('{'.charCodeAt(0))), json]);
  };
  const encoded = (node: LiveNode, body: MessageBody, envelope?: Envelope): Uint8Array =>
    encodeMessage(messageTo(node, body, envelope), raftVersion);

  /** A batch as long as a frame may be. */
  const manyOf = (message: Uint8Array): Uint8Array => {
    const one = Buffer.concat([Uint8Array.of(0, 0, 0, message.length), message]);
    const count = Math.floor((frameBytesMax - 2) / one.length);
    return Buffer.concat([Uint8Array.of(raftVersion, 0), ...Array.from({ length: count }, () => one)]);
  };

  const malformed: Readonly<Record<string, (node: LiveNode) => Uint8Array | string>> = {
    'an empty frame': () => new Uint8Array(0),
    text: () => 'transitd',
    'an unknown version': (node) => changed(encoded(node, heartbeat), 0, 99),
    'an unknown type': (node) => changed(encoded(node, heartbeat), 1, 99),
    'a cut frame': (node) => encoded(node, heartbeat).subarray(0, 20),
    'bytes after the end': (node) => Buffer.concat([encoded(node, heartbeat), Buffer.alloc(1)]),
    'a length beyond the end': (node) => changed(encodeBatch([messageTo(node, heartbeat), messageTo(node, heartbeat)]), 2, 255),
    'a frame above the limit': () => new Uint8Array(frameBytesMax + 1),
    'a term that leaves no room for another': (node) => encoded(node, heartbeat, { term: 2 ** 48 - 1 }),
    'a snapshot whose index leaves no room for another': (node) => encoded(node, offerOf(2 ** 48 - 1)),
    'a snapshot described in nested lists': (node) => offerWith(node, Buffer.alloc(9_000_000, '[')),
    'a snapshot described in very many fields': (node) =>
      offerWith(node, Buffer.from(`{${Array.from({ length: 600_000 }, (_, i) => `"k${i}":1`).join()}}`)),
    'a configuration that cannot be read, of a later term': (node) =>
      encoded(node, withEntry('conf', Buffer.from('no JSON')), { term: 2 ** 40 }),
    'more messages than a batch may hold': (node) => manyOf(encoded(node, heartbeat)),
    'an entry of a later term than the sender': (node) =>
      encoded(node, withEntry('normal', Buffer.from('x')), { term: 2 ** 40 - 1 }),
    'a message in the name of another node': (node) => encoded(node, heartbeat, { from: identityOf(leader).id, term: 2 ** 40 }),
    'a message to another node': (node) => encoded(node, heartbeat, { to: stolen.id, term: 2 ** 40 }),
    'a batch with one message in the name of another node': (node) =>
      encodeBatch([messageTo(node, heartbeat), messageTo(node, heartbeat, { from: identityOf(leader).id, term: 2 ** 40 })]),
  };
  for (const [name, frameFor] of Object.entries(malformed))
    it(`${name} is answered by the end of the connection`, async () => {
      for (const node of [victim, leader]) {
        const socket = await connected(node);
        const closed = once(socket, 'close');
        socket.send(frameFor(node));
        await closed;
      }
      await expectUp();
    });

  it('reads without end are refused, and fill no memory', async () => {
    const term = Number((await leader.server.log(/"term":(\d+)[^\n]*elected leader/))[1]);
    const requests = Array.from({ length: readsInFrame }, (_, id) => ({ id, incarnation: 1 }));
    const each = requests.slice(0, messagesInBatch).map((request) => ({ type: 'ReadIndex' as const, requests: [request] }));
    const frames = [
      encoded(leader, { type: 'ReadIndex', requests }, { term }),
      encodeBatch(each.map((body) => messageTo(leader, body, { term }))),
    ];
    victim.pause(); // so that no quorum confirms the reads
    const socket = await connected(leader);
    for (let i = 0; i < 8; i++)
      for (const frame of frames)
        await new Promise<void>((sent, lost) => socket.send(frame, (error) => (error ? lost(error) : sent())));
    const read = once(socket, 'pong'); // comes when the leader has read everything
    socket.ping();
    await read;
    victim.resume();
    await expectUp();
    socket.terminate();
  });

  it('calls with odd bodies are refused, and none is a fault', async () => {
    const calls = ['echo', 'confirm', 'report', 'usage', 'usage/record', 'renew', 'members', 'authority', 'unsealed', 'none'];
    const bodies = [
      ...['', 'null', '[]', '"text"', '7', '{', '[[[['.repeat(8_000), '{"index":1e308}', '{"index":-1}', '{"index":"1"}'],
      ...['{"proof":"AAAA"}', '{"proof":7}', '{"request":"-----BEGIN CERTIFICATE REQUEST-----"}', '{"text":"","signature":""}'],
      ...[
        `{"key":${JSON.stringify(stolen.key)},"certificate":${JSON.stringify(stolen.certificate)}}`,
        '{"__proto__":{"index":1}}',
      ],
      ...[`{"index":1${'0'.repeat(60_000)}}`, ' '.repeat(64 * 1024), 'x'.repeat(64 * 1024 + 1), '\xff\xfe'],
    ];
    const questions = [
      'snapshot',
      'snapshot?index=-1',
      'snapshot?index=1e400',
      `snapshot?index=${2 ** 53 - 1}`,
      'snapshot?index=a&index=1',
    ];
    for (const node of [victim, leader]) {
      for (const call of calls)
        for (const body of bodies) {
          const status = await called(node, 'POST', call, body);
          expect(status, `POST ${call} ${body.slice(0, 40)}`).to.be.oneOf([200, 400, 403, 404, 409, 413, 429, 503]);
        }
      for (const call of questions) expect(await called(node, 'GET', call), call).to.be.oneOf([200, 400, 503]);
    }
    expect([leader.log, victim.log].join('')).not.to.include('a call on the cluster port failed');
    await expectUp();
  });

  it('a frame that never ends is cut off', async () => {
    const socket = await connected(leader);
    const closed = once(socket, 'close');
    socket.send(new Uint8Array(1), { fin: false });
    await closed;
    await expectUp();
  });
});
