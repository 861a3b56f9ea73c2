import { createHmac, randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { ClusterHandler } from '../../src/transport/cluster-call.ts';
import { ClusterCallError, type ClusterClient, type ForwardingClient } from '../../src/transport/cluster-client.ts';
import type { ClusterListener } from '../../src/transport/cluster-listener.ts';
import { type Side, type UnsealedProofs, unsealedHandler, unsealedPath } from '../../src/transport/unsealed-proof.ts';
import { activeAndStandby } from './active-and-standby.ts';

const rootKey = randomBytes(32);
const proofFor = (side: Side, channel: Uint8Array, key = rootKey): Buffer =>
  createHmac('sha256', key).update(side).update(channel).digest();
const proofsWith = (key: typeof rootKey): UnsealedProofs => ({
  prove: (side, channel) => proofFor(side, channel, key),
  isProof: (side, channel, proof) => proofFor(side, channel, key).equals(proof),
});
const answerWith = (proof: Uint8Array) => ({ status: 200, json: { proof: Buffer.from(proof).toString('base64') } });
const proves = unsealedHandler(proofsWith(rootKey));
const refusal = (): never => {
  throw new StoreError('sealed', 'transitd is sealed');
};
const sealed: UnsealedProofs = { prove: refusal, isProof: refusal };
const timeoutMs = 60_000;

describe('a node that forwards requests', () => {
  let listener: ClusterListener;
  let client: ClusterClient;
  let forwarding: ForwardingClient;
  let onProve: ClusterHandler;
  /** Requests of clients that the other node has received. */
  let received: string[];
  /** Connections over which the other node was asked for a proof. */
  let asked: string[];
  /** Those of the forwarding node. */
  let proofs: UnsealedProofs;

  const clientOf = async (connectMsMax = timeoutMs): Promise<void> => {
    ({ listener, client } = await activeAndStandby(
      {
        calls: {
          [`POST ${unsealedPath}`]: (call) => {
            asked.push(call.channel().toString('hex'));
            return onProve(call);
          },
          'POST /cluster/echo': async () => ({ status: 200, json: {} }),
        },
        forwarded: (req, res) => {
          received.push(`${req.method} ${req.url}`);
          res.end('answer');
        },
        forwardedByUnsealed: true,
      },
      { connectMsMax },
    ));
    forwarding = client.forwarding({
      prove: (...about) => proofs.prove(...about),
      isProof: (...about) => proofs.isProof(...about),
    });
  };
  const forward = async (): Promise<string> => {
    try {
      const { body } = await forwarding.request(1, { method: 'POST', path: '/v1/x', body: Buffer.from('token'), timeoutMs });
      return (await buffer(body)).toString();
    } catch (error) {
      return error instanceof ClusterCallError ? `${error.code}: ${error.message}` : String(error);
    }
  };

  beforeEach(() => {
    [received, asked, proofs, onProve] = [[], [], proofsWith(rootKey), proves];
  });
  afterEach(async () => {
    client.close();
    await listener.close();
  });

  it('sends them to a node that proves that it is unsealed, and asks once for each connection', async () => {
    await clientOf();
    for (let request = 0; request < 3; request++) expect(await forward()).to.equal('answer');
    expect([received.length, asked.length]).to.deep.equal([3, 1]);
    expect(await Promise.all([forward(), forward()])).to.deep.equal(['answer', 'answer']);
    expect(asked).to.have.length(2);
    expect(new Set(asked).size, 'each connection has a channel of its own').to.equal(2);
  });

  it('asks for no proof before calls of the cluster and requests of joining nodes, which it forwards while it is sealed', async () => {
    await clientOf();
    proofs = sealed;
    const path = '/v1/sys/storage/raft/bootstrap/challenge';
    const { body } = await forwarding.request(1, { method: 'POST', path, timeoutMs });
    expect((await buffer(body)).toString()).to.equal('answer');
    expect(await client.post(1, '/cluster/echo', { json: {}, timeoutMs })).to.deep.equal({ status: 200, json: {} });
    expect(asked).to.deep.equal([]);
  });

  const elsewhere = randomBytes(32);
  for (const [what, refuse, reason] of [
    ['is sealed', unsealedHandler(sealed), 'does not prove'],
    ['knows no proofs', async () => ({ status: 404, json: {} }), 'does not prove'],
    [
      'has another root key',
      async ({ channel }) => answerWith(proofFor('answering node', channel(), elsewhere)),
      'does not prove',
    ],
    ['passes on a proof for another connection', async () => answerWith(proofFor('answering node', elsewhere)), 'does not prove'],
    [
      'sends back the proof',
      async ({ body }) => answerWith(Buffer.from(JSON.parse(String(body)).proof, 'base64')),
      'does not prove',
    ],
    [
      'claims another status',
      async ({ channel }) => ({ ...answerWith(proofFor('answering node', channel())), status: 503 }),
      'does not prove',
    ],
    ['answers without end', async () => ({ status: 200, json: { proof: 'A'.repeat(20_000) } }), 'too long'],
  ] as readonly (readonly [string, ClusterHandler, string])[])
    it(`sends nothing to a node that ${what}`, async () => {
      await clientOf();
      onProve = refuse;
      expect(await forward()).to.match(new RegExp(`^not_sent: node 1: .*${reason}`));
      expect([received.length, asked.length]).to.deep.equal([0, 1]);
      onProve = proves;
      expect(await forward(), 'once it proves it').to.equal('answer');
    });

  it('sends nothing to a node that does not answer', async () => {
    await clientOf(500);
    onProve = () => new Promise(() => undefined);
    let result = '';
    // On a machine that stalls, the connection itself may take too long.
    do result = await forward();
    while (result.includes('no connection within'));
    expect(result).to.match(/^not_sent: node 1: no proof within 500 ms/);
    expect(received).to.deep.equal([]);
  });

  it('sends nothing to a node that closes the connection', async () => {
    await clientOf();
    onProve = async () => {
      await listener.close();
      return { status: 200, json: {} };
    };
    expect(await forward()).to.match(/^not_sent: node 1: it closed the connection/);
    expect(received).to.deep.equal([]);
  });

  it('sends nothing while it is sealed itself', async () => {
    await clientOf();
    proofs = sealed;
    expect(await forward()).to.match(/^not_sent: node 1: this node is sealed/);
    expect([received, asked]).to.deep.equal([[], []]);
  });

  it('is refused by an unsealed node if it cannot prove that it is unsealed itself', async () => {
    await clientOf();
    for (const wrong of [proofFor('forwarding node', elsewhere), proofFor('answering node', elsewhere), Buffer.alloc(0)]) {
      proofs = { ...proofsWith(rootKey), prove: () => wrong };
      expect(await forward()).to.equal('not_sent: node 1: it does not prove that it is unsealed');
    }
    proofs = { ...proofsWith(rootKey), prove: (_side, channel) => proofFor('forwarding node', channel, elsewhere) };
    expect(await forward()).to.equal('not_sent: node 1: it does not prove that it is unsealed');
    expect(received).to.deep.equal([]);
  });

  it('is refused if it forwards a request without any proof', async () => {
    await clientOf();
    onProve = async ({ channel }) => answerWith(proofFor('answering node', channel())); // so the listener has no proof of the caller
    const { status, body } = await client.forwarding().request(1, { method: 'GET', path: '/v1/x', timeoutMs });
    expect([status, (await buffer(body)).toString()]).to.deep.equal([
      403,
      '{"errors":["the caller has not proved that it is unsealed"]}\n',
    ]);
    expect(received).to.deep.equal([]);
  });
});
