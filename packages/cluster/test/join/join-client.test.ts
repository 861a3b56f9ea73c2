import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { type SealTerms, ShareCollection } from '@transitd/barrier';
import { expect } from 'chai';
import fc from 'fast-check';
import { answerPath, challengePath, type Send } from '../../src/join/join-client.ts';
import { makeAuthority, makeRequest, signRequest } from '../../src/membership/authority.ts';
import { fingerprintOf } from '../../src/membership/certificate.ts';
import { ClusterError } from '../../src/refusals/cluster-error.ts';
import {
  clientOf,
  clusterId,
  codeOf,
  type JoiningNode,
  type Leader,
  makeJoiner,
  messageOf,
  sendTo,
  startLeader,
  staticSeal,
} from './join-fixtures.ts';

type Message = Record<string, unknown>;

/** A relay between the two nodes: it sees and may change every message, requests in `up`, answers in `down`. */
const relay =
  (
    send: Send,
    change: { up?: (path: string, message: Message) => Message; down?: (path: string, message: Message) => Message },
  ): Send =>
  async (address, path, message) => {
    const arriving = change.up?.(path, message as Message) ?? message;
    const answer = (await send(address, path, arriving)) as Message;
    return change.down?.(path, answer) ?? answer;
  };

/** The shares that were given to a joining node. */
function gathered({ threshold, shareHashes }: SealTerms, shares: readonly Uint8Array[]): ShareCollection {
  const collection = new ShareCollection(threshold, shareHashes);
  for (const share of shares) collection.add(share);
  return collection;
}

const unreachable: Send = () => Promise.reject(new ClusterError('leader_unavailable', 'connect ECONNREFUSED'));

describe('a join', () => {
  const seal = staticSeal();
  let leader: Leader;
  let node: JoiningNode;
  beforeEach(async () => {
    leader = await startLeader(seal);
    node = await makeJoiner();
  });

  it('by a static seal gives the node a certificate for its own key, the authority and the member list', async () => {
    const { identity, ...joined } = await clientOf(node, sendTo(leader)).complete(seal);
    const certificate = new X509Certificate(identity.certificate);
    expect(certificate.checkPrivateKey(createPrivateKey(node.key))).to.equal(true);
    expect(joined).to.deep.equal({ clusterId, nodeId: node.joiner.id });
    expect(identity).to.include({ authority: leader.authority, key: node.key });
    expect(identity.membersAtJoin.map(({ id, name }) => [id, name])).to.deep.equal([
      [1, 'n1'],
      [42, 'n42'],
    ]);
    expect(identity.membersAtJoin[1]?.certificate).to.equal(fingerprintOf(certificate));
    expect(leader.admitted).to.deep.equal([node.joiner]);
  });

  it('by a Shamir seal needs the shares first, and never sends a share', async () => {
    leader = await startLeader({ type: 'shamir' });
    const sent: string[] = [];
    const send = relay(sendTo(leader), {
      up: (_, message) => {
        sent.push(JSON.stringify(message));
        return message;
      },
    });
    const client = clientOf(node, send);
    const terms = await client.prepare();
    const collected = gathered(terms, leader.shares.slice(1));
    leader.clock.nowMs += 10 * 60_000; // the operators provided the shares late
    const joined = await client.complete(collected, terms);
    expect(joined.clusterId).to.equal(clusterId);
    expect(leader.admitted).to.have.lengthOf(1);
    for (const share of leader.shares)
      for (const text of [share.toString('base64'), share.toString('hex')]) expect(sent.join()).not.to.include(text);
    leader.barrier.seal();
    for (const share of collected.given) await leader.barrier.unseal(share);
    expect(leader.barrier.state.sealed).to.equal(false);
  });

  it('can be repeated with the same id and key, as after a lost answer', async () => {
    const lost = relay(sendTo(leader), {
      down: (path, message) => {
        if (path === answerPath) throw new ClusterError('leader_unavailable', 'no answer within 15 s');
        return message;
      },
    });
    expect(await codeOf(clientOf(node, lost).complete(seal))).to.equal('leader_unavailable');
    expect(await messageOf(clientOf(node, lost).complete(seal))).to.equal(
      'cannot join: https://10.0.0.1:8200: no answer within 15 s; it may have admitted this node; joining again is safe',
    );
    await clientOf(node, sendTo(leader)).complete(seal);
    expect(leader.admitted).to.deep.equal([node.joiner, node.joiner, node.joiner]);
  });

  it('tries the next address, and finally reports every reason', async () => {
    const send = sendTo(leader);
    const leaders = ['https://10.0.0.8:8200', 'https://10.0.0.1:8200'];
    const half: Send = (address, ...rest) => (address === leaders[0] ? unreachable : send)(address, ...rest);
    await clientOf(node, half, { leaders }).complete(seal);
    const refusing: Send = (address, ...rest) =>
      address === leaders[0]
        ? unreachable(address, ...rest)
        : Promise.reject(new ClusterError('leader_refused', 'it answered with status 409: the name is taken'));
    const attempt = clientOf(node, refusing, { leaders }).complete(seal);
    expect(await codeOf(attempt)).to.equal('leader_refused');
    expect(await messageOf(attempt)).to.equal(
      'cannot join: https://10.0.0.8:8200: connect ECONNREFUSED; https://10.0.0.1:8200: it answered with status 409: the name is taken',
    );
    expect(await codeOf(clientOf(node, unreachable, { leaders }).complete(seal))).to.equal('leader_unavailable');
  });

  it('is refused by a node that is configured with another seal', async () => {
    const other = staticSeal('k2');
    expect(await codeOf(clientOf(node, sendTo(leader)).prepare())).to.equal('join_seal');
    expect(await codeOf(clientOf(node, sendTo(leader)).complete(other))).to.equal('join_seal');
    expect(await messageOf(clientOf(node, sendTo(leader)).complete(other))).to.match(
      /no seal key with the id "k1" is configured$/,
    );
    const shamir = await startLeader({ type: 'shamir' });
    expect(await messageOf(clientOf(node, sendTo(shamir)).complete(seal))).to.match(
      /the cluster's seal is of type shamir, the configuration says static$/,
    );
    expect([...leader.admitted, ...shamir.admitted]).to.deep.equal([]);
  });

  it('is refused when the id belongs to another key', async () => {
    expect(await codeOf(clientOf(node, sendTo(leader)).complete(staticSeal('k1')))).to.equal('leader_untrusted');
    expect(leader.admitted).to.deep.equal([]);
  });

  it('needs the shares again when the cluster was rekeyed while they were collected', async () => {
    leader = await startLeader({ type: 'shamir' });
    const client = clientOf(node, sendTo(leader));
    const terms = await client.prepare();
    const collected = gathered(terms, leader.shares.slice(1));
    const { nonce } = await leader.barrier.rekey.start({ shares: 3, threshold: 2, requireVerification: false });
    for (const share of leader.shares.slice(1)) await leader.barrier.rekey.update({ nonce, share });
    expect(await codeOf(client.complete(collected, terms))).to.equal('seal_changed');
    expect(leader.admitted).to.deep.equal([]);
  });

  it('ends without an answer when the shares are wiped during the join', async () => {
    leader = await startLeader({ type: 'shamir' });
    const terms = await clientOf(node, sendTo(leader)).prepare();
    const collected = gathered(terms, leader.shares.slice(1));
    const send = relay(sendTo(leader), {
      up: (_, message) => {
        collected.wipe();
        return message;
      },
    });
    expect(await codeOf(clientOf(node, send).complete(collected, terms))).to.equal('share_missing');
    expect(leader.admitted).to.deep.equal([]);
  });

  for (const [what, leaders] of [
    ['no address', []],
    ['17 addresses', Array.from({ length: 17 }, () => 'https://10.0.0.1:8200')],
    ['an address of another scheme', ['ftp://10.0.0.1']],
    ['an address with a path', ['https://10.0.0.1:8200/v1/sys']],
    ['an address with a name and password', ['https://a:b@10.0.0.1:8200']],
    ['a malformed address', ['https://10.0.0.1:99999']],
  ] as const)
    it(`does not begin with ${what}`, () => {
      expect(() => clientOf(node, unreachable, { leaders }))
        .to.throw(ClusterError)
        .with.property('code', 'join_malformed');
    });

  it('does not begin on a node whose own address every leader would refuse', () => {
    const nowhere = { ...node, joiner: { ...node.joiner, clusterAddress: '10.0.0.42' } };
    expect(() => clientOf(nowhere, unreachable)).to.throw('cluster_addr is not an address such as 10.0.0.1:8201');
  });
});

describe('an attacker between the two nodes of a join', () => {
  const seal = staticSeal();
  let leader: Leader;
  let node: JoiningNode;
  beforeEach(async () => {
    leader = await startLeader(seal);
    node = await makeJoiner();
  });

  /** Both nodes refuse: the joiner has not joined, the leader has admitted no node. */
  async function failsOnBothSides(send: Send): Promise<void> {
    expect(await codeOf(clientOf(node, send).complete(seal))).to.equal('leader_untrusted');
    expect(leader.admitted).to.deep.equal([]);
  }

  it('cannot change any byte of any message', async () => {
    const directions = ['up', 'down'] as const;
    const place = { path: fc.constantFrom(challengePath, answerPath), direction: fc.constantFrom(...directions), at: fc.nat() };
    await fc.assert(
      fc.asyncProperty(fc.record({ ...place, mask: fc.integer({ min: 1, max: 255 }) }), async ({ path, direction, at, mask }) => {
        let changes = 0;
        const changed = (where: string, message: Message): Message => {
          if (where !== path) return message;
          const bytes = Buffer.from(JSON.stringify(message));
          bytes.writeUInt8(bytes.readUInt8(at % bytes.length) ^ mask, at % bytes.length);
          changes += 1;
          return parsed(bytes);
        };
        const before = leader.admitted.length;
        const code = await codeOf(clientOf(node, relay(sendTo(leader), { [direction]: changed })).complete(seal));
        expect(changes).to.equal(1);
        expect(code).to.not.equal('leader_unavailable');
        // The last message is sent after the joiner's real request was admitted. Any other change ends the exchange before that.
        const admitted = leader.admitted.slice(before);
        expect(admitted).to.deep.equal(path === answerPath && direction === 'down' ? [node.joiner] : []);
      }),
      { numRuns: 600 },
    );
  });

  it('cannot replace the joiner’s key by its own', async () => {
    const local = await makeRequest(node.joiner.id);
    await failsOnBothSides(
      relay(sendTo(leader), {
        up: (path, message) => (path === challengePath ? { ...message, request: local.request } : message),
      }),
    );
  });

  it('cannot have its own key certified by an answer of its own', async () => {
    const local = await makeRequest(node.joiner.id);
    let answered: Promise<string> | undefined;
    await failsOnBothSides(
      relay(sendTo(leader), {
        up: (path, message) => (path === challengePath ? { ...message, request: local.request } : message),
        down: (_, offer) => {
          const guess = { challenge_id: offer['challenge_id'], proof: randomBytes(32).toString('base64') };
          answered = codeOf(leader.desk.answer(guess));
          return offer;
        },
      }),
    );
    expect(await answered).to.equal('join_proof');
  });

  it('cannot replace the cluster’s authority', async () => {
    const local = await makeAuthority(clusterId, new Date());
    await failsOnBothSides(
      relay(sendTo(leader), {
        down: (path, message) => (path === challengePath ? { ...message, authority: local.certificate } : message),
      }),
    );
  });

  it('cannot lure a joiner to another cluster that reports the same about itself', async () => {
    const local = await startLeader(staticSeal());
    await failsOnBothSides(sendTo(local));
    expect(local.admitted).to.deep.equal([]);
  });

  it('cannot lure a joiner to another cluster with the share hashes of the real one', async () => {
    leader = await startLeader({ type: 'shamir' });
    const local = await startLeader({ type: 'shamir' });
    let trueSeal: unknown;
    await relay(sendTo(leader), {
      down: (_, offer) => {
        trueSeal = offer['seal'];
        return offer;
      },
    })('', challengePath, { ...(await requestOf(node)) });
    const client = clientOf(
      node,
      relay(sendTo(local), { down: (path, message) => (path === challengePath ? { ...message, seal: trueSeal } : message) }),
    );
    const terms = await client.prepare();
    const collected = gathered(terms, leader.shares.slice(1));
    expect(await codeOf(client.complete(collected, terms))).to.equal('leader_untrusted');
    expect([...leader.admitted, ...local.admitted]).to.deep.equal([]);
  });

  it('cannot change how many shares are needed', async () => {
    leader = await startLeader({ type: 'shamir' });
    const client = clientOf(
      node,
      relay(sendTo(leader), {
        down: (path, message) =>
          path === challengePath ? { ...message, seal: { ...(message['seal'] as Message), threshold: 3 } } : message,
      }),
    );
    const terms = await client.prepare();
    const collected = gathered(terms, leader.shares);
    expect(await codeOf(client.complete(collected, terms))).to.equal('leader_untrusted');
    expect(leader.admitted).to.deep.equal([]);
  });

  for (const [what, change] of [
    ['the member list', (message: Message) => ({ ...message, members: (message['members'] as Message[]).slice(1) })],
    [
      'an address in the member list',
      (message: Message) => ({
        ...message,
        members: (message['members'] as Message[]).map((member) => ({ ...member, cluster_addr: '203.0.113.9:8201' })),
      }),
    ],
    [
      'the order of the member list',
      (message: Message) => ({ ...message, members: (message['members'] as Message[]).toReversed() }),
    ],
    ['the proof', (message: Message) => ({ ...message, proof: randomBytes(32).toString('base64') })],
  ] as const)
    it(`cannot change ${what}`, async () => {
      const send = relay(sendTo(leader), { down: (path, message) => (path === answerPath ? change(message) : message) });
      const attempt = clientOf(node, send).complete(seal);
      expect(await codeOf(attempt)).to.equal('leader_untrusted');
      expect(await messageOf(attempt)).to.match(/its proof is wrong/);
      expect(leader.admitted).to.deep.equal([node.joiner]);
    });

  it('cannot give the joiner another certificate of the same authority', async () => {
    const other = await makeJoiner(43);
    const certificate = (await clientOf(other, sendTo(leader)).complete(seal)).identity.certificate;
    const send = relay(sendTo(leader), {
      down: (path, message) => (path === answerPath ? { ...message, certificate } : message),
    });
    expect(await messageOf(clientOf(node, send).complete(seal))).to.match(/its proof is wrong/);
  });

  it('cannot replay an old exchange to the joiner', async () => {
    const recorded = new Map<string, Message>();
    const record = relay(sendTo(leader), {
      down: (path, message) => {
        recorded.set(path, message);
        return message;
      },
    });
    await clientOf(node, record).complete(seal);
    const replay: Send = async (_, path) => recorded.get(path);
    expect(await codeOf(clientOf(node, replay).complete(seal))).to.equal('leader_untrusted');
  });

  it('cannot replay an old answer to the leader', async () => {
    let answer: Message | undefined;
    const record = relay(sendTo(leader), {
      up: (path, message) => {
        if (path === answerPath) answer = message;
        return message;
      },
    });
    await clientOf(node, record).complete(seal);
    expect(await codeOf(leader.desk.answer(answer))).to.equal('challenge_used');
    expect(leader.admitted).to.have.lengthOf(1);
  });

  it('cannot answer one challenge with the proof for another', async () => {
    const other = (await leader.desk.challenge(await requestOf(node), '')) as Message;
    const splice = relay(sendTo(leader), {
      up: (path, message) => (path === answerPath ? { ...message, challenge_id: other['challenge_id'] } : message),
    });
    expect(await codeOf(clientOf(node, splice).complete(seal))).to.equal('join_proof');
    expect(leader.admitted).to.deep.equal([]);
  });
});

describe('a leader that holds the seal key but sends a wrong welcome', () => {
  const seal = staticSeal();
  const now = new Date('2026-06-01T00:00:00Z');

  const certificateOf = async (id: number, key?: string): Promise<string> => {
    const authority = await makeAuthority(clusterId, now);
    const request = key ?? (await makeRequest(id)).request;
    return signRequest(authority, { request, nodeId: id, clusterId, now });
  };

  for (const [what, admission, message] of [
    ['is malformed', async () => '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', 'is malformed'],
    ['is of another authority', ({ joiner }: JoiningNode) => certificateOf(42, joiner.request), 'not signed by the authority'],
  ] as const)
    it(`is not joined when the certificate ${what}`, async () => {
      const node = await makeJoiner();
      const leader = await startLeader(seal, {
        admissions: { admit: async () => ({ certificate: await admission(node), members: [] }) },
      });
      const attempt = clientOf(node, sendTo(leader)).complete(seal);
      expect(await codeOf(attempt)).to.equal('leader_untrusted');
      expect(await messageOf(attempt)).to.include(message);
    });

  for (const [what, change, message] of [
    ['for another key', async () => ({ request: (await makeRequest(42)).request }), 'is for another key'],
    ['for another node', async () => ({ request: (await makeRequest(41)).request, nodeId: 41 }), 'names another node'],
    ['of another cluster', async () => ({ clusterId: 'abcdef' }), 'names another node'],
  ] as const)
    it(`is not joined when the certificate is one ${what}`, async () => {
      const node = await makeJoiner();
      const authority = await makeAuthority(clusterId, now);
      const leader = await startLeader(seal, {
        authority: { clusterId, readOrMake: async () => authority },
        admissions: {
          admit: async ({ id, request }) => ({
            certificate: await signRequest(authority, { request, nodeId: id, clusterId, now, ...(await change()) }),
            members: [],
          }),
        },
      });
      expect(await messageOf(clientOf(node, sendTo(leader)).complete(seal))).to.include(message);
    });

  it('is not joined when the member list does not name the node, or names it with another certificate', async () => {
    const node = await makeJoiner();
    const authority = await makeAuthority(clusterId, now);
    const { request, ...rest } = node.joiner;
    for (const members of [[], [{ ...rest, certificate: 'cd'.repeat(32) }]]) {
      const leader = await startLeader(seal, {
        authority: { clusterId, readOrMake: async () => authority },
        admissions: {
          admit: async ({ id }) => ({
            certificate: await signRequest(authority, { request, nodeId: id, clusterId, now }),
            members,
          }),
        },
      });
      expect(await messageOf(clientOf(node, sendTo(leader)).complete(seal))).to.include('does not name this node');
    }
  });
});

/** Decodes bytes as received; invalid UTF-8 or JSON fails as a malformed message. */
function parsed(bytes: Buffer): Message {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new ClusterError('join_malformed', 'not JSON');
  }
}

/** Returns the first message of this node. */
async function requestOf(node: JoiningNode): Promise<Message> {
  let message: Message | undefined;
  const seen = relay(unreachable, {
    up: (_, request) => {
      message = request;
      return request;
    },
  });
  await codeOf(clientOf(node, seen).prepare());
  return message ?? expect.fail('no message was sent');
}
