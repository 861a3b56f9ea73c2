import { expect } from 'chai';
import { type RealNode, realNode } from '../real-node.ts';

const plaintext = Buffer.from('hello').toString('base64');

interface Answered {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of any shape
  readonly body: any;
}

describe('the uses of keys', () => {
  let real: RealNode;
  before(async () => {
    real = await realNode();
  });
  after(() => real.close());

  const ask = async (verb: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Answered> => {
    const response = await fetch(`${real.url}/${path}`, {
      method: verb,
      headers: { 'X-Service-Token': real.rootToken, ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? {} : JSON.parse(text) };
  };
  const versionsOf = async (key: string) => (await ask('GET', `transit/keys/${key}/usage`)).body.data.versions;
  const record = (): Promise<boolean> => real.node.requireMember().usage.record();

  it('are shown by version, with their times, before and after they are recorded', async () => {
    const beganMs = Date.now();
    await ask('POST', 'transit/keys/k');
    const { ciphertext } = (await ask('POST', 'transit/encrypt/k', { plaintext })).body.data;
    await ask('POST', 'transit/keys/k/rotate');
    await ask('POST', 'transit/rewrap/k', { batch_input: [{ ciphertext }, { ciphertext }] });
    const { hmac } = (await ask('POST', 'transit/hmac/k', { input: plaintext })).body.data;
    await ask('POST', 'transit/verify/k', { input: plaintext, hmac });
    const counts = {
      1: { encryptions: 1, decryptions: 2, signatures: 0, verifications: 0 },
      2: { encryptions: 2, decryptions: 0, signatures: 1, verifications: 1 },
    };
    const check = async (): Promise<object> => {
      const versions = await versionsOf('k');
      expect(Object.keys(versions)).to.deep.equal(['1', '2']);
      expect(versions[1]).to.include(counts[1]);
      expect(versions[2]).to.include(counts[2]);
      for (const { first_used_time: first, last_used_time: last } of Object.values<Record<string, string>>(versions)) {
        expect(Date.parse(first ?? '')).to.be.within(beganMs, Date.parse(last ?? ''));
        expect(Date.parse(last ?? '')).to.be.at.most(Date.now());
      }
      return versions;
    };
    const before = await check();
    for (let round = 0; round < 2; round++) {
      await record();
      expect(await check()).to.deep.equal(before);
    }
  });

  it('are counted since a time that the answer says', async () => {
    await ask('POST', 'transit/keys/since');
    await record();
    const { data, warnings } = (await ask('GET', 'transit/keys/since/usage')).body;
    expect(data).to.include({ name: 'since' }).and.deep.include({ versions: {}, unanswered_nodes: [] });
    expect(Date.parse(data.counting_since)).to.be.at.most(Date.now());
    expect(warnings).to.equal(null);
  });

  it('begin with zero for a new key of the same name', async () => {
    await ask('POST', 'transit/encrypt/again', { plaintext });
    await record();
    await ask('POST', 'transit/encrypt/again', { plaintext }); // not recorded yet
    await ask('POST', 'transit/keys/again/config', { deletion_allowed: true });
    expect((await ask('DELETE', 'transit/keys/again')).status).to.equal(204);
    expect((await ask('GET', 'transit/keys/again/usage')).status).to.equal(404);
    await ask('POST', 'transit/keys/again');
    expect(await versionsOf('again')).to.deep.equal({});
    await record();
    expect(await versionsOf('again')).to.deep.equal({});
  });

  it('include a wrapped response, and exclude refused requests and failed items', async () => {
    await ask('POST', 'transit/keys/some');
    await ask('POST', 'transit/encrypt/some', { plaintext }, { 'X-Service-Wrap-TTL': '60' });
    await ask('POST', 'transit/encrypt/some', { plaintext: '!' });
    await ask('POST', 'transit/encrypt/some', { batch_input: [{ plaintext }, { plaintext: '!' }] });
    await ask('POST', 'transit/decrypt/some', { ciphertext: 'svc:v1:AAAA' });
    expect((await versionsOf('some'))[1]).to.include({ encryptions: 2, decryptions: 0 });
  });

  it('of a trimmed version are forgotten', async () => {
    await ask('POST', 'transit/encrypt/trimmed', { plaintext });
    await ask('POST', 'transit/keys/trimmed/rotate');
    await ask('POST', 'transit/encrypt/trimmed', { plaintext });
    await record();
    await ask('POST', 'transit/keys/trimmed/config', { min_decryption_version: 2, min_encryption_version: 2 });
    await ask('POST', 'transit/keys/trimmed/trim', { min_available_version: 2 });
    expect(Object.keys(await versionsOf('trimmed'))).to.deep.equal(['2']);
  });

  it('are limited where max_operations is set: a warning at 80 %, then a refusal after the next record, until a rotation', async () => {
    await ask('POST', 'transit/keys/limited');
    expect((await ask('GET', 'transit/keys/limited/usage')).body.data.max_operations).to.equal(2 ** 32);
    const set = await ask('POST', 'transit/keys/limited/config', { max_operations: 10 });
    expect(set.body.data.max_operations).to.equal(10);
    const encrypt = () => ask('POST', 'transit/encrypt/limited', { plaintext });
    const near = (): number => real.node.requireMember().usage.keysNearLimit;
    const before = near();
    await ask('POST', 'transit/encrypt/limited', { batch_input: Array.from({ length: 8 }, () => ({ plaintext })) });
    expect((await ask('GET', 'transit/keys/limited/usage')).body.warnings).to.deep.equal([
      'version 1 has made 8 of 10 operations: rotate the key',
    ]);
    await record();
    expect(near()).to.equal(before + 1);
    for (let i = 0; i < 3; i++) expect((await encrypt()).status, 'an overshoot').to.equal(200);
    await record();
    const { status, body } = await encrypt();
    expect([status, body.errors]).to.deep.equal([
      400,
      ['version 1 has made the 10 encryptions and signatures that max_operations allows: rotate the key'],
    ]);
    await ask('POST', 'transit/keys/limited/rotate');
    expect((await encrypt()).status).to.equal(200);
    await record();
    expect(near()).to.equal(before);
    expect((await ask('POST', 'transit/keys/limited/config', { max_operations: -1 })).status).to.equal(400);
  });

  it('of an unknown key are not found, and need the right to read them', async () => {
    expect((await ask('GET', 'transit/keys/unknown/usage')).status).to.equal(404);
    expect((await ask('GET', 'transit/keys/k/usage', undefined, { 'X-Service-Token': 's.wrong' })).status).to.equal(403);
    expect((await ask('POST', 'transit/keys/k/usage')).status).to.equal(405);
  });
});
