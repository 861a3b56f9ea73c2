import { setTimeout } from 'node:timers/promises';
import { expect } from 'chai';
import { unlessUsed } from '../../src/transit/unless-used.ts';
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
    await ask('POST', 'transit/keys/wraps', { type: 'rsa-2048' });
    await ask('POST', 'transit/keys/some/config', { exportable: true });
    expect((await ask('GET', 'transit/byok-export/wraps/some')).status).to.equal(200);
    expect((await versionsOf('wraps'))[1]).to.include({ encryptions: 1 });
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

  describe('as evidence before versions are taken away', () => {
    const refusal = /^unless_used_within: .*; nothing was changed$/;
    const parameterRefusal = (inBody: unknown = false): string =>
      `the ${inBody ? 'body' : 'query'} has a parameter that this operation does not take there; nothing was changed`;
    const expectRefused = ({ status, body }: Answered, why: RegExp): void => {
      expect(status, JSON.stringify(body)).to.equal(400);
      expect(body.errors[0]).to.match(refusal).and.match(why);
    };
    /** Repeats a change until the versions have not been used for as long as it says. */
    const untilUnused = async (change: () => Promise<Answered>): Promise<Answered> => {
      for (;;) {
        const answer = await change();
        if (answer.status !== 400) return answer;
        expectRefused(answer, /used within that time|uses are counted since/);
        await setTimeout(20);
      }
    };
    /** Makes a key with two versions, of which the first was used. */
    const used = async (name: string): Promise<void> => {
      await ask('POST', `transit/encrypt/${name}`, { plaintext });
      await ask('POST', `transit/keys/${name}/rotate`);
      await ask('POST', `transit/keys/${name}/config`, { deletion_allowed: true, min_encryption_version: 2 });
    };
    const keyOf = async (name: string) => (await ask('GET', `transit/keys/${name}`)).body.data;
    before(() => record());

    it('refuse a raised min_decryption_version with the numbers, and allow it when the version was not used', async () => {
      await used('e1');
      const raise = (within?: unknown): Promise<Answered> =>
        ask('POST', 'transit/keys/e1/config', { min_decryption_version: 2, unless_used_within: within });
      expectRefused(await raise('30d'), /used within that time: version 1 \(1 encryptions; last at \d{4}-/);
      expect((await keyOf('e1')).min_decryption_version).to.equal(1);
      const raised = await untilUnused(() => raise('1s'));
      expect([raised.status, raised.body.data.min_decryption_version]).to.deep.equal([200, 2]);
      // Nothing goes: the minimum is not raised.
      for (const body of [{ min_decryption_version: 2 }, { min_decryption_version: 1 }, { exportable: true }])
        expect((await ask('POST', 'transit/keys/e1/config', { ...body, unless_used_within: '30d' })).status).to.equal(200);
    });

    it('refuse a setting by which the key itself would retire a used version', async () => {
      await used('e0');
      const keep = { keep_decryption_versions: 1, unless_used_within: '30d' };
      expectRefused(await ask('POST', 'transit/keys/e0/config', keep), /used within that time: version 1 /);
      expect(await keyOf('e0')).to.deep.include({ keep_decryption_versions: 0, min_decryption_version: 1 });
    });

    it('refuse a trim, also of versions that were used for the last time before they were refused', async () => {
      await used('e2');
      await ask('POST', 'transit/keys/e2/config', { min_decryption_version: 2 });
      const trim = (within: string): Promise<Answered> =>
        ask('POST', 'transit/keys/e2/trim', { min_available_version: 2, unless_used_within: within });
      expectRefused(await trim('1h'), /version 1 \(1 encryptions/);
      expect((await keyOf('e2')).min_available_version).to.equal(0);
      expect((await untilUnused(() => trim('1s'))).body.data.min_available_version).to.equal(2);
    });

    it('refuse a trim_after that would delete such versions', async () => {
      await used('aging');
      await ask('POST', 'transit/keys/aging/config', { min_decryption_version: 2 });
      const set = (trim_after: string, within: string): Promise<Answered> =>
        ask('POST', 'transit/keys/aging/config', { trim_after, unless_used_within: within });
      expectRefused(await set('2h', '30d'), /version 1 \(1 encryptions/);
      expect((await untilUnused(() => set('2h', '1s'))).body.data.trim_after).to.equal(7200);
      expectRefused(await set('1h', '30d'), /version 1 \(1 encryptions/);
      for (const later of ['2h', '3h']) expect((await set(later, '30d')).status).to.equal(200);
    });

    it('refuse a deletion, whose query asks for it', async () => {
      await used('e3');
      expectRefused(await ask('DELETE', 'transit/keys/e3?unless_used_within=30d'), /version 1/);
      expectRefused(await ask('DELETE', 'transit/keys/e3', { unless_used_within: '30d' }), /version 1/);
      expect((await untilUnused(() => ask('DELETE', 'transit/keys/e3?unless_used_within=1s'))).status).to.equal(204);
      expect((await ask('GET', 'transit/keys/e3')).status).to.equal(404);
    });

    it('refuse a scheduled deletion', async () => {
      await used('scheduled');
      const schedule = (within: string): Promise<Answered> =>
        ask('POST', 'transit/keys/scheduled/schedule-deletion', { after: '7d', unless_used_within: within });
      expectRefused(await schedule('30d'), /version 1/);
      expect(await keyOf('scheduled'))
        .to.include({ soft_deleted: false })
        .and.not.have.property('scheduled_deletion');
      expect((await untilUnused(() => schedule('1s'))).body.data.soft_deleted).to.equal(true);
    });

    it('are missing if counting began later', async () => {
      await ask('POST', 'transit/keys/e4');
      await ask('POST', 'transit/keys/e4/config', { deletion_allowed: true });
      expectRefused(await ask('DELETE', 'transit/keys/e4?unless_used_within=30d'), /uses are counted since .* only/);
      expect((await ask('DELETE', 'transit/keys/e4')).status).to.equal(204);
    });

    it('are not asked for a change that is refused anyway, nor for an unknown key', async () => {
      await ask('POST', 'transit/keys/e5');
      for (const [verb, path, body] of [
        ['DELETE', 'transit/keys/e5?unless_used_within=30d'],
        ['DELETE', 'transit/keys/unknown?unless_used_within=30d'],
        ['POST', 'transit/keys/e5/trim', { min_available_version: 9, unless_used_within: '30d' }],
        ['POST', 'transit/keys/e5/config', { min_decryption_version: 9, unless_used_within: '30d' }],
      ] as const) {
        const answer = await ask(verb, path, body);
        expect(answer.status).to.equal(400);
        expect(answer.body.errors[0]).not.to.match(refusal);
      }
    });

    it('are not forgotten because of a misspelled or misplaced name', async () => {
      await used('e7');
      await ask('POST', 'transit/keys/e7/config', { min_decryption_version: 2 });
      const before = await keyOf('e7');
      const changes = [
        ['DELETE', 'transit/keys/e7', undefined],
        ['POST', 'transit/keys/e7/trim', { min_available_version: 2 }],
        ['POST', 'transit/keys/e7/config', { deletion_allowed: false }],
        ['POST', 'transit/keys/e7/schedule-deletion', { after: '7d' }],
      ] as const;
      const refused = async (verb: string, path: string, body?: object): Promise<void> => {
        const answer = await ask(verb, path, body);
        expect([answer.status, answer.body.errors?.[0]], path).to.deep.equal([400, parameterRefusal(body && verb === 'DELETE')]);
      };
      for (const [verb, path, body] of changes)
        for (const query of ['unless-used-within=30d', 'unless_used_within=1s&unless_used=1', 'toString=1'])
          await refused(verb, `${path}?${query}`, body);
      for (const [verb, path, body] of changes.slice(1)) await refused(verb, `${path}?unless_used_within=30d`, body);
      await refused('DELETE', 'transit/keys/e7', { unless_used: '30d' });
      expect(await keyOf('e7')).to.deep.equal(before);
    });

    it('are demanded by a policy', async () => {
      await used('e8');
      const policy = `path "transit/keys/+" { capabilities = ["delete"] required_parameters = ["unless_used_within"]
          allowed_parameters = { unless_used_within = ["30d"] } }
        path "transit/keys/+/trim" { capabilities = ["update"] required_parameters = ["min_available_version", "unless_used_within"]
          allowed_parameters = { min_available_version = [], unless_used_within = ["30d"] } }
        path "transit/keys/+/config" { capabilities = ["update"] }
        path "transit/keys/+/schedule-deletion" { capabilities = ["update"] }`;
      await ask('POST', 'sys/policies/acl/careful', { policy });
      const { auth } = (await ask('POST', 'auth/token/create', { policies: ['careful'] })).body;
      const as = { 'X-Service-Token': auth.client_token };
      const [schedule, config] = ['transit/keys/e8/schedule-deletion', 'transit/keys/e8/config'];
      const trims = { min_decryption_version: 2, trim_after: '1h' };
      for (const [verb, path, body] of [
        ['DELETE', 'transit/keys/e8', undefined],
        ['DELETE', 'transit/keys/e8?unless_used_within=1s', undefined],
        ['POST', schedule, { after: '7d' }],
        ['POST', schedule, { after: '7d', unless_used_within: '1s' }],
        ['POST', config, trims],
        ['POST', config, { ...trims, unless_used_within: '1s' }],
      ] as const)
        expect((await ask(verb, path, body, as)).status, `${path} ${JSON.stringify(body)}`).to.equal(403);
      expectRefused(await ask('DELETE', 'transit/keys/e8?unless_used_within=30d', undefined, as), /version 1/);
      expectRefused(await ask('POST', schedule, { after: '7d', unless_used_within: '30d' }, as), /version 1/);
      expectRefused(await ask('POST', config, { ...trims, unless_used_within: '30d' }, as), /version 1/);
      expect((await ask('POST', config, { keep_encryption_versions: 1 }, as)).status).to.equal(200);
    });

    it('show what holds for every field: a query that would be ignored is refused', async () => {
      await ask('POST', 'transit/keys/derived', { derived: true });
      const { status, body } = await ask('POST', 'transit/encrypt/derived?context=YQ%3D%3D', { plaintext, context: 'Yg==' });
      expect([status, body.errors]).to.deep.equal([400, [parameterRefusal()]]);
      expect((await ask('POST', 'transit/keys/derived/rotate?unknown=1')).status).to.equal(200);
    });

    for (const bad of [null, '', '30d', 0, 0.5, Number.NaN])
      it(`are not skipped for a value that is no number of seconds: ${bad === '' ? 'an empty text' : bad}`, () => {
        const engine = real.node.services?.mounts.engines.get('transit');
        if (engine === undefined) throw new Error('not serving');
        expect(() => unlessUsed(real.node, engine, bad)).to.throw('unless_used_within must be at least 1s');
        expect(unlessUsed(real.node, engine, undefined)).to.equal(undefined);
        expect(unlessUsed(real.node, engine, 1)).to.be.a('function');
      });

    for (const bad of ['abc', '-1s', '', 'null', '0', '0.5s'])
      it(`take a duration: ${JSON.stringify(bad)} in a query`, async () => {
        await ask('POST', 'transit/keys/e6');
        await ask('POST', 'transit/keys/e6/config', { deletion_allowed: true });
        const { status } = await ask('DELETE', `transit/keys/e6?unless_used_within=${bad}`);
        expect(status).to.equal(400);
      });
  });
});
