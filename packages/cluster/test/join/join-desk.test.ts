import { randomBytes } from 'node:crypto';
import { openJoinSecret } from '@transitd/barrier';
import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { exchangedBefore, joinerProof } from '../../src/join/join-exchange.ts';
import { decodeOffer, decodeWelcome, encodeAnswer, encodeRequest, type JoinRequest } from '../../src/join/join-messages.ts';
import { ClusterError } from '../../src/refusals/cluster-error.ts';
import { codeOf, type JoiningNode, type Leader, makeJoiner, messageOf, startLeader, staticSeal } from './join-fixtures.ts';

const seal = staticSeal();
const attackers = (count: number) => Array.from({ length: count }, (_, i) => `203.0.113.${i}`);

describe('the desk for joins', () => {
  let leader: Leader;
  let node: JoiningNode;
  before(async () => {
    node = await makeJoiner();
  });
  beforeEach(async () => {
    leader = await startLeader(seal);
  });

  const newRequest = (): JoinRequest => ({ ...node.joiner, nonce: randomBytes(32) });

  /** Requests a challenge; returns the answer to it. */
  async function ask(source = '192.0.2.1', at = leader): Promise<object> {
    const request = newRequest();
    const offer = decodeOffer(await at.desk.challenge(encodeRequest(request), source));
    const secret = await openJoinSecret(seal, { ...offer, exchanged: exchangedBefore(request, offer) });
    return encodeAnswer({ challengeId: offer.challengeId, proof: joinerProof(secret, { request, offer }) });
  }

  const wrong = (answer: object): object => ({ ...answer, proof: randomBytes(32).toString('base64') });

  it('admits a node that answers a challenge', async () => {
    const welcome = decodeWelcome(await leader.desk.answer(await ask()));
    expect(welcome.members.map(({ name }) => name)).to.deep.equal(['n1', 'n42']);
    expect(leader.admitted).to.deep.equal([node.joiner]);
  });

  it('accepts a parsed request body, whose objects have no prototype', async () => {
    const bare = (message: object): object => Object.assign(Object.create(null), message);
    await leader.desk.answer(bare(await ask()));
    const request = encodeRequest(newRequest());
    expect(decodeOffer(await leader.desk.challenge(bare(request), '')).terms.keyId).to.equal('k1');
  });

  it('accepts only one answer to a challenge, even if two are concurrent', async () => {
    const answer = await ask();
    const both = await Promise.allSettled([leader.desk.answer(answer), leader.desk.answer(answer)]);
    expect(both.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected']);
    expect(await codeOf(leader.desk.answer(answer))).to.equal('challenge_used');
    expect(leader.admitted).to.have.lengthOf(1);
  });

  it('ends a challenge at a wrong answer', async () => {
    const answer = await ask();
    expect(await codeOf(leader.desk.answer(wrong(answer)))).to.equal('join_proof');
    expect(await codeOf(leader.desk.answer(answer))).to.equal('challenge_used');
    expect(leader.admitted).to.deep.equal([]);
  });

  it('keeps a challenge open after a malformed answer, and after an answer to another challenge', async () => {
    const answer = await ask();
    expect(await codeOf(leader.desk.answer({ ...answer, more: 1 }))).to.equal('join_malformed');
    expect(await codeOf(leader.desk.answer({ ...answer, challenge_id: '0'.repeat(32) }))).to.equal('challenge_unknown');
    await leader.desk.answer(answer);
  });

  it('expires a challenge after one minute', async () => {
    const [early, late] = [await ask(), await ask()];
    leader.clock.nowMs += 59_999;
    await leader.desk.answer(early);
    leader.clock.nowMs += 1;
    expect(await codeOf(leader.desk.answer(late))).to.equal('challenge_expired');
    expect(await codeOf(leader.desk.answer(late))).to.equal('challenge_expired');
    expect(leader.admitted).to.have.lengthOf(1);
  });

  it('keeps sixteen challenges open; the seventeenth displaces the oldest', async () => {
    const answers = [];
    for (let i = 0; i < 17; i += 1) answers.push(await ask());
    const [first = {}, ...rest] = answers;
    expect(await codeOf(leader.desk.answer(first))).to.equal('challenge_displaced');
    for (const answer of rest) await leader.desk.answer(answer);
  });

  it('drops expired challenges before it displaces valid ones', async () => {
    for (let i = 0; i < 6; i += 1) await ask('192.0.2.1');
    leader.clock.nowMs += 30_000;
    const good = await ask('192.0.2.2');
    for (let i = 0; i < 9; i += 1) await ask('192.0.2.2');
    leader.clock.nowMs += 30_000;
    await ask('192.0.2.3');
    await leader.desk.answer(good);
  });

  it('does not let one stranger displace a joiner, however often it asks', async () => {
    const answer = await ask();
    for (let i = 0; i < 200; i += 1) await ask('203.0.113.1');
    await leader.desk.answer(answer);
  });

  it('counts all addresses of one IPv6 network as one source', async () => {
    const answer = await ask('2001:db8:1::7');
    for (let i = 0; i < 200; i += 1) await ask(`2001:db8:2::${i.toString(16)}`);
    await leader.desk.answer(answer);
  });

  it('serves a joiner while strangers hold every challenge', async () => {
    for (const source of attackers(16)) await ask(source);
    const answer = await ask();
    for (const source of attackers(8)) await ask(source);
    await leader.desk.answer(answer);
  });

  it('remembers a limited number of endings', async () => {
    const answer = await ask();
    await leader.desk.answer(answer);
    for (let i = 0; i < 63; i += 1) await leader.desk.answer(wrong(await ask())).catch(() => undefined);
    expect(await codeOf(leader.desk.answer(answer))).to.equal('challenge_used');
    await leader.desk.answer(await ask());
    expect(await codeOf(leader.desk.answer(answer))).to.equal('challenge_unknown');
  });

  it('ends every open challenge when the node is no longer active', async () => {
    const answer = await ask();
    leader.desk.clear();
    expect(await codeOf(leader.desk.answer(answer))).to.equal('challenge_unknown');
    await leader.desk.answer(await ask());
  });

  it('opens no challenge that was being made when the node stopped being active', async () => {
    const waiting = leader.desk.challenge(encodeRequest(newRequest()), '');
    leader.desk.clear();
    expect(await codeOf(waiting)).to.equal('leader_changed');
  });

  it('reports the outcome of an answer that was in flight when the node stopped being active', async () => {
    const admission = Promise.withResolvers<void>();
    const at = await startLeader(seal, {
      admissions: {
        admit: async () => {
          await admission.promise;
          return { certificate: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n', members: [] };
        },
      },
    });
    const welcome = at.desk.answer(await ask('', at));
    at.desk.clear();
    admission.resolve();
    expect(decodeWelcome(await welcome).members).to.deep.equal([]);
  });

  it('passes on the refusal of an admission, which uses up the challenge', async () => {
    for (const refusal of [
      new ClusterError('name_taken', 'the name n42 belongs to another member'),
      new ClusterError('node_removed', 'this node was removed'),
      new StoreError('not_leader', 'this node is not the leader'),
    ]) {
      const at = await startLeader(seal, { admissions: { admit: () => Promise.reject(refusal) } });
      const answer = await ask('', at);
      expect(await codeOf(at.desk.answer(answer))).to.equal(refusal.code);
      expect(await codeOf(at.desk.answer(answer))).to.equal('challenge_used');
    }
  });

  it('refuses while the barrier is sealed', async () => {
    leader.barrier.seal();
    expect(await codeOf(leader.desk.challenge(encodeRequest(newRequest()), ''))).to.equal('sealed');
  });

  it('wipes the secret of a challenge, however it ends', async () => {
    const secrets: Buffer[] = [];
    const at = await startLeader(seal, {
      barrier: {
        wrapForJoin: async (exchanged) => {
          const wrapped = await leader.barrier.wrapForJoin(exchanged);
          secrets.push(wrapped.secret);
          return wrapped;
        },
      },
    });
    await at.desk.answer(await ask('', at));
    await at.desk.answer(wrong(await ask('', at))).catch(() => undefined);
    for (let i = 0; i < 17; i += 1) await ask('', at);
    const isWiped = (secret: Buffer | undefined): boolean | undefined => secret?.every((byte) => byte === 0);
    expect(secrets.map(isWiped)).to.deep.equal([true, true, true, ...Array(16).fill(false)]);
    at.clock.nowMs += 60_000;
    await at.desk.answer(await ask('', at));
    expect(secrets.every(isWiped), 'the expired ones').to.equal(true);
    await ask('', at);
    at.desk.clear();
    expect(secrets.every(isWiped), 'those of a node that is no longer active').to.equal(true);
  });

  it('reports how a challenge ended, and nothing of its secret', async () => {
    const answer = await ask();
    expect(await messageOf(leader.desk.answer(wrong(answer)))).to.equal(
      'the proof is wrong: the node does not hold the seal key, or its messages were changed on the way',
    );
    expect(await messageOf(leader.desk.answer(answer))).to.equal('this challenge has been answered already; request a new one');
  });
});
