import { request } from 'node:https';
import { connect as connectPlain, createServer } from 'node:net';
import { connect } from 'node:tls';
import { expect } from 'chai';
import { until } from '../../../process/test/until.ts';
import { activate } from '../../src/port/activation-client.ts';
import { type ActivationToken, makeTokenKey, readActivationToken } from '../../src/port/activation-token.ts';
import { makeSecondaryRequest } from '../../src/port/secondary-certificate.ts';
import { ReplicationError } from '../../src/replication-error.ts';
import { TestSite } from './replication-fixtures.ts';

const failure = async (promise: Promise<unknown>): Promise<ReplicationError> => {
  const error = await promise.then(
    () => new Error('it succeeded'),
    (one: unknown) => one,
  );
  if (error instanceof ReplicationError) return error;
  throw error;
};

describe('the activation of a secondary', () => {
  let site: TestSite;
  const token = async (secondary = 'east', ttlMs = 60_000): Promise<ActivationToken> =>
    readActivationToken(await site.desk.issueToken({ secondary, ttlMs }));
  beforeEach(async () => {
    site = await TestSite.start();
  });
  afterEach(() => site.stop());

  it('exchanges a token for a certificate of the key that the secondary made', async () => {
    const { key, publicKey } = makeTokenKey();
    const sealed = await site.desk.issueToken({ secondary: 'east', publicKey });
    const own = await makeSecondaryRequest('east', 'c1');
    const credential = await activate(await readActivationToken(sealed, key), own);
    expect(credential).to.deep.include({ secondary: 'east', key: own.key, addresses: site.addresses });
    expect(site.registrations).to.have.length(1);
    expect(JSON.stringify(site.registry.current), 'no private key is stored').not.to.include('PRIVATE');
  });

  it('refuses a token that was used by another key, and answers the same key again', async () => {
    const used = await token();
    const own = await makeSecondaryRequest('east', 'c1');
    const [first, again] = [await activate(used, own), await activate(used, own)];
    expect(again.certificate).to.equal(first.certificate);
    const error = await failure(activate(used, await makeSecondaryRequest('east', 'c1')));
    expect(error).to.deep.include({ code: 'refused' });
    expect(error.message).to.include('used already');
    expect(site.registrations).to.have.length(1);
  });

  it('gives one of two keys that use a token at the same time a certificate', async () => {
    const used = await token();
    const owns = await Promise.all([1, 2, 3].map(() => makeSecondaryRequest('east', 'c1')));
    const results = await Promise.allSettled(owns.map((own) => activate(used, own)));
    expect(results.filter(({ status }) => status === 'fulfilled')).to.have.length(1);
    expect(site.registrations).to.have.length(1);
  });

  it('refuses a token that expired', async () => {
    const late = await token('east', 1_000);
    site.utcMs += 1_000;
    const error = await failure(activate(late, await makeSecondaryRequest('east', 'c1')));
    expect(error).to.deep.include({ code: 'refused' });
    expect(error.message).to.include('expired');
    expect(site.registrations).to.deep.equal([]);
  });

  it('refuses a token that was revoked or replaced', async () => {
    const [first, second] = [await token(), await token()];
    expect((await failure(activate(first, await makeSecondaryRequest('east', 'c1')))).message).to.include('replaced');
    await site.desk.revoke('east');
    expect((await failure(activate(second, await makeSecondaryRequest('east', 'c1')))).message).to.include('revoked');
  });

  it('sends nothing to a cluster that the token is not for, and gets nothing from one that did not issue it', async () => {
    const other = await TestSite.start();
    try {
      const own = await makeSecondaryRequest('east', 'c1');
      const error = await failure(activate({ ...(await token()), addresses: other.addresses }, own));
      expect(error).to.deep.include({ code: 'unreachable' });
      expect(error.message).to.include('no authority of the primary');
      const misled = await token();
      const trusting = { ...misled, addresses: other.addresses, authorities: other.nodes.authorities };
      expect((await failure(activate(trusting, own))).code, 'cut off without an answer').to.equal('unreachable');
      expect(other.registrations).to.deep.equal([]);
      expect((await failure(activate({ ...misled, clusterId: 'f00d' }, own))).message).to.include('for another cluster');
    } finally {
      await other.stop();
    }
  });

  it('refuses a request for another name', async () => {
    const error = await failure(activate(await token(), await makeSecondaryRequest('west', 'c1')));
    expect(error).to.deep.include({ code: 'refused' });
    expect(site.registrations).to.deep.equal([]);
  });

  it('finds the active node', async () => {
    await site.stop();
    site = await TestSite.start({ nodes: 3 });
    site.active = 2;
    site.advertised = ['127.0.0.1:1', site.addresses[0] ?? ''];
    const credential = await activate(await token(), await makeSecondaryRequest('east', 'c1'));
    expect(credential.secondary).to.equal('east');
    site.active = 9;
    expect((await failure(activate(await token('west'), await makeSecondaryRequest('west', 'c1')))).code).to.equal('unreachable');
  });

  it('asks again with the same key when the answer is lost', async () => {
    let lost = 0;
    const between = createServer((near) => {
      const far = connectPlain({ host: '127.0.0.1', port: Number(site.addresses[0]?.split(':')[1]) });
      near.on('error', () => undefined).pipe(far);
      far.on('error', () => undefined);
      // The first connection delivers the handshake, and nothing once the registration is there.
      far.on('data', (bytes) => {
        if (site.registrations.length > 0 && lost === 0) {
          lost++;
          near.destroy();
        } else near.write(bytes);
      });
    });
    await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve));
    const bound = between.address();
    try {
      const held = {
        ...(await token()),
        addresses: [`127.0.0.1:${typeof bound === 'object' && bound !== null ? bound.port : 0}`],
      };
      expect((await activate(held, await makeSecondaryRequest('east', 'c1'))).secondary).to.equal('east');
      expect([lost, site.registrations.length]).to.deep.equal([1, 1]);
    } finally {
      between.close();
    }
  });

  it('refuses a body that is malformed or too large, and keeps the token', async () => {
    const held = await token();
    const [host = '', port = ''] = (site.addresses[0] ?? '').split(':');
    const post = (body: string): Promise<number> =>
      new Promise((resolve, reject) => {
        const { key, certificate: cert } = held;
        const options = {
          host,
          port,
          method: 'POST',
          path: '/cluster/replication/activate',
          key,
          cert,
          rejectUnauthorized: false,
        };
        request({ ...options, agent: false }, (res) => resolve(res.resume().statusCode ?? 0))
          .on('error', reject)
          .end(body);
      });
    for (const body of [
      '',
      'x',
      '{}',
      '[]',
      '{"request":7}',
      '{"request":"x","more":1}',
      '{"request":"x"}',
      '{"request":"x","cluster":"c1"}',
    ])
      expect(await post(body), body).to.equal(400);
    expect(await post(JSON.stringify({ request: 'x'.repeat(20_000) }))).to.equal(413);
    expect((await activate(held, await makeSecondaryRequest('east', 'c1'))).secondary).to.equal('east');
  });

  it('keeps few connections of a token open, and the newest ones', async () => {
    const held = await token();
    const [host = '', port = ''] = (site.addresses[0] ?? '').split(':');
    let closed = 0;
    for (let opened = 0; opened < 8; opened++)
      await new Promise<void>((resolve) => {
        connect({ host, port: Number(port), key: held.key, cert: held.certificate, rejectUnauthorized: false }, resolve)
          .on('error', () => undefined)
          .on('close', () => closed++);
      });
    await until(() => closed === 4);
    await activate(held, await makeSecondaryRequest('east', 'c1'));
    await site.desk.revoke('east');
    await until(() => closed === 8);
  });
});
