import { randomBytes } from 'node:crypto';
import { ProviderError } from '@transitd/barrier';
import { expect } from 'chai';
import { exchangeWith } from '../../src/http/exchange.ts';
import { TransitSeal, type TransitSealParts } from '../../src/transit/transit-seal.ts';
import { describeContract } from '../contract/contract.ts';
import { KeysOfAProvider } from '../contract/keys-of-a-provider.ts';
import { providerErrorOf } from '../contract/provider-error-of.ts';
import { type StubAnswer, type StubRequest, stubProvider } from '../http/stub-provider.ts';
import { keptLog } from '../kept-log.ts';

type Stub = Awaited<ReturnType<typeof stubProvider>>;
const stubs: Stub[] = [];

async function sealAgainst(answer: (request: StubRequest) => StubAnswer, parts: Partial<TransitSealParts> = {}) {
  const stub = await stubProvider((request) =>
    request.path === '/v1/sys/seal-status' ? sealStatus(answer(request)) : answer(request),
  );
  stubs.push(stub);
  const { log, lines } = keptLog();
  const state = { nowMs: 0 };
  const seal = new TransitSeal({
    key: { address: stub.address, mountPath: 'a/transit', keyName: 'unseal' },
    namespace: undefined,
    token: async () => 'the-token',
    renewToken: true,
    exchange: exchangeWith(stub.address, { skipVerify: false }),
    clusterId: () => 'own-cluster',
    log,
    nowMs: () => state.nowMs,
    ...parts,
  });
  return { seal, stub, lines, state };
}
/** Most tests do not answer `seal-status`: an unexpected answer says nothing about the provider. */
const sealStatus = (answer: StubAnswer): StubAnswer => (Array.isArray(answer) && answer[0] === 200 ? answer : [404, {}]);

const failureOf = async (attempt: Promise<unknown>): Promise<readonly [string, string]> => {
  const { failure, message } = await providerErrorOf(attempt);
  return [failure, message];
};
const operations = ({ requests }: Stub): readonly StubRequest[] => requests.filter(({ path }) => path !== '/v1/sys/seal-status');
const key = randomBytes(32);

describeContract('transit', async () => {
  const keys = new KeysOfAProvider('one', 'two');
  const state = { answer: undefined as StubAnswer | undefined };
  const stub = await stubProvider(({ path, headers, body }): StubAnswer => {
    if (path === '/v1/sys/seal-status') return [200, { type: 'shamir', sealed: false, cluster_id: 'other-cluster' }];
    if (state.answer !== undefined) return state.answer;
    const [, operation, name = ''] = /^\/v1\/seal\/(encrypt|decrypt)\/(\w+)$/.exec(path) ?? [];
    if (headers['x-vault-token'] !== 'the-token') return [403, { errors: ['permission denied'] }];
    if (path === '/v1/seal/random') {
      expect(body).to.deep.equal({ bytes: body['bytes'], format: 'base64' });
      return [200, { data: { random_bytes: randomBytes(Number(body['bytes'])).toString('base64') } }];
    }
    const context = String(body['associated_data']);
    if (operation === 'encrypt') {
      const ciphertext = keys.encrypt(name, Buffer.from(String(body['plaintext']), 'base64'), context).toString('base64');
      return [200, { data: { ciphertext: `vault:v${keys.newest(name)}:${ciphertext}` } }];
    }
    const plaintext = keys.decrypt(name, Buffer.from(String(body['ciphertext']).split(':')[2] ?? '', 'base64'), context);
    if (plaintext === undefined) return [400, { errors: ['cipher: message authentication failed'] }];
    return [200, { data: { plaintext: plaintext.toString('base64') } }];
  });
  const sealOf = (keyName: string) =>
    new TransitSeal({
      key: { address: stub.address, mountPath: 'seal', keyName },
      namespace: undefined,
      token: async () => 'the-token',
      renewToken: false,
      exchange: exchangeWith(stub.address, { skipVerify: false }),
      clusterId: () => 'own-cluster',
      log: keptLog().log,
      nowMs: () => 0,
    });
  return {
    seal: sealOf('one'),
    otherKey: sealOf('two'),
    secrets: ['the-token'],
    rotate: () => keys.rotate('one'),
    behave: (behavior) => {
      state.answer = (
        {
          serves: undefined,
          away: (res) => void res.destroy(),
          refuses: [403, { errors: ['permission denied'] }],
          throttles: [429, { errors: ['quota'] }],
          garbles: [200, { data: {} }],
        } as const satisfies Record<string, StubAnswer | undefined>
      )[behavior];
    },
    close: stub.close,
  };
});

describe('a transit seal', () => {
  afterEach(async () => {
    for (const stub of stubs.splice(0)) await stub.close();
  });

  for (const [status, failure, sentence] of [
    [403, 'permission', /refuses the token: status 403: no\. It may have expired; .* update on a\/transit\/random$/],
    [404, 'unsupported', /gives no random bytes: status 404: no$/],
    [503, 'unreachable', /cannot serve now/],
  ] as const) {
    it(`says why it gives no random bytes: status ${status}`, async () => {
      const { seal } = await sealAgainst(() => [status, { errors: ['no'] }]);
      const [found, message] = await failureOf(seal.random(8));
      expect([found, message]).to.satisfy(() => found === failure && sentence.test(message));
    });
  }

  it('encrypts and decrypts with the token, the namespace and associated data of its own', async () => {
    const { seal, stub } = await sealAgainst(
      ({ path }) =>
        path.includes('/encrypt/')
          ? [200, { data: { ciphertext: 'vault:v3:AAAA' } }]
          : [200, { data: { plaintext: key.toString('base64') } }],
      { namespace: 'ns1' },
    );
    const wrapped = await seal.wrap(key);
    expect(wrapped).to.deep.equal({ keyId: 'a/transit/unseal:v3', ciphertext: 'vault:v3:AAAA' });
    expect(await seal.unwrap(wrapped)).to.deep.equal(key);
    const associated_data = Buffer.from('transitd seal key 1').toString('base64');
    expect(operations(stub).map(({ method, path, body }) => [method, path, body])).to.deep.equal([
      ['POST', '/v1/a/transit/encrypt/unseal', { plaintext: key.toString('base64'), associated_data }],
      ['POST', '/v1/a/transit/decrypt/unseal', { ciphertext: 'vault:v3:AAAA', associated_data }],
    ]);
    for (const { headers } of operations(stub))
      expect(headers).to.include({ 'x-vault-token': 'the-token', 'x-vault-namespace': 'ns1' });
    for (const { path, headers } of stub.requests)
      if (path === '/v1/sys/seal-status') expect(headers).to.not.have.property('x-vault-token');
  });

  for (const [what, answer, failure, says] of [
    [
      'refuses the token',
      [403, { errors: ['permission denied'] }],
      'permission',
      /refuses the token: status 403: permission denied.*update on a\/transit\/encrypt\/unseal/,
    ],
    ['has no such mount', [404, { errors: [] }], 'wrong_key', /cannot use the key a\/transit\/unseal for this: status 404/],
    ['refuses the key', [400, { errors: ['no handler'] }], 'wrong_key', /status 400: no handler/],
    [
      'throttles',
      [429, { errors: ['quota'] }, { 'retry-after': '7' }],
      'throttled',
      /limits the rate of requests: status 429: quota/,
    ],
    ['is sealed', [503, { errors: ['sealed'] }], 'unreachable', /cannot serve now: status 503: sealed/],
    ['fails', [500, 'oops'], 'unreachable', /cannot serve now: status 500/],
    ['redirects', [307, '', { location: 'http://elsewhere/' }], 'malformed', /redirects, which is not followed/],
    ['answers in HTML', [200, '<html>'], 'malformed', /does not come from a transit engine: check the address/],
    [
      'answers with other JSON',
      [200, { data: { plaintext: 7, ciphertext: 'AAAA' } }],
      'malformed',
      /does not come from a transit engine/,
    ],
    ['answers with an odd status', [204, ''], 'malformed', /does not come from a transit engine: status 204/],
    ['answers with 65 KiB', [200, 'x'.repeat(65 * 1024)], 'unreachable', /its answer has more than 65536 bytes/],
    ['ends the connection', (res) => void res.destroy(), 'unreachable', /does not answer: .*(hang up|ECONNRESET)/],
  ] as readonly (readonly [string, StubAnswer, string, RegExp])[])
    it(`says in one sentence that the provider ${what}`, async () => {
      const { seal } = await sealAgainst((request) => (request.path.startsWith('/v1/sys/') ? [404, {}] : answer));
      for (const attempt of [() => seal.wrap(key), () => seal.unwrap({ keyId: 'k', ciphertext: 'c' })]) {
        const [found, message] = await failureOf(attempt());
        expect(found).to.equal(failure);
        expect(message).to.match(says).and.not.contain('the-token');
      }
    });

  it('says that nothing listens at the address', async () => {
    const { seal, stub } = await sealAgainst(() => [200, {}]);
    await stub.close();
    expect(await failureOf(seal.wrap(key))).to.deep.equal([
      'unreachable',
      `the transit seal at ${stub.address} does not answer: connect ECONNREFUSED ${stub.address.slice(7)}`,
    ]);
  });

  it('keeps the time that a throttling provider asks for', async () => {
    const { seal } = await sealAgainst(() => [429, {}, { 'retry-after': '7' }]);
    const error: unknown = await seal.wrap(key).catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(ProviderError).with.property('retryAfterMs', 7000);
  });

  it('names the key that encrypted what the provider cannot decrypt', async () => {
    const { seal } = await sealAgainst(() => [400, { errors: ['unable to decrypt'] }]);
    const [failure, message] = await failureOf(seal.unwrap({ keyId: 'transit/old:v1', ciphertext: 'c' }));
    expect(failure).to.equal('wrong_key');
    expect(message).to.match(/status 400: unable to decrypt; the stored key was encrypted by transit\/old:v1$/);
  });

  it('puts only printable characters of a refusal into its error', async () => {
    const { seal } = await sealAgainst(() => [400, { errors: [`a\nb\u001b[31m${'x'.repeat(5000)}`] }]);
    const [, message] = await failureOf(seal.wrap(key));
    expect(message).to.contain('a?b?[31mxxx').and.not.contain('\u001b').and.not.contain('\n');
    expect(message.length).to.be.below(500);
  });

  it('refuses to be sealed by its own cluster, and sends no key there', async () => {
    const { seal, stub } = await sealAgainst(() => [200, { type: 'transit', sealed: false, cluster_id: 'own-cluster' }]);
    const [failure, message] = await failureOf(seal.wrap(key));
    expect(failure).to.equal('cycle');
    expect(message).to.match(/is this cluster itself, so it could never unseal/);
    expect(operations(stub)).to.deep.equal([]);
  });

  it('says that a sealed provider may depend on this cluster', async () => {
    const { seal } = await sealAgainst(({ path }) =>
      path === '/v1/sys/seal-status' ? [200, { type: 'transit', sealed: true }] : [503, { errors: ['Vault is sealed'] }],
    );
    const [failure, message] = await failureOf(seal.unwrap({ keyId: 'k', ciphertext: 'c' }));
    expect(failure).to.equal('unreachable');
    expect(message).to.match(
      /is sealed itself, and its own seal is of type transit: if that seal depends on this cluster, neither/,
    );
  });

  describe('renews its token', () => {
    const renewals = (stub: Stub): number => stub.requests.filter(({ path }) => path.endsWith('/renew-self')).length;
    const lease = (seconds: number, renewable = true): StubAnswer => [200, { auth: { lease_duration: seconds, renewable } }];

    it('at half of its lifetime', async () => {
      const { seal, stub, state } = await sealAgainst(() => lease(3600));
      for (; state.nowMs <= 7_200_000; state.nowMs += 60_000) await seal.keepAccess();
      expect(renewals(stub)).to.equal(5);
    });

    it('not while something else does', async () => {
      const { seal, stub } = await sealAgainst(() => lease(3600), { renewToken: false });
      await seal.keepAccess();
      expect(stub.requests).to.deep.equal([]);
    });

    it('again at once when the file contains another token', async () => {
      let token = 'one';
      const { seal, stub } = await sealAgainst(() => lease(3600), { token: async () => token });
      await seal.keepAccess();
      token = 'two';
      await seal.keepAccess();
      await seal.keepAccess();
      expect(stub.requests.map(({ headers }) => headers['x-vault-token'])).to.deep.equal(['one', 'two']);
    });

    it('again a minute after a failure, with a warning that does not contain the token', async () => {
      const { seal, stub, state, lines } = await sealAgainst(() => [403, { errors: ['permission denied'] }]);
      for (; state.nowMs < 180_000; state.nowMs += 1000) await seal.keepAccess();
      expect(renewals(stub)).to.equal(3);
      expect(lines.map(({ level }) => level)).to.deep.equal(['warn', 'warn', 'warn']);
      expect(JSON.stringify(lines)).to.contain('could not be renewed').and.not.contain('the-token');
    });

    it('no more once it never expires, and warns if it will expire and cannot be renewed', async () => {
      for (const [ttl, level] of [
        [0, 'info'],
        [900, 'warn'],
      ] as const) {
        const { seal, stub, state, lines } = await sealAgainst(({ path }) =>
          path.endsWith('lookup-self') ? [200, { data: { ttl } }] : [400, { errors: ['lease is not renewable'] }],
        );
        for (; state.nowMs < 7_200_000; state.nowMs += 60_000) await seal.keepAccess();
        expect(renewals(stub)).to.equal(1);
        expect(lines.map((line) => line.level)).to.deep.equal([level]);
      }
    });

    it('and survives a token file that cannot be read', async () => {
      const { seal, lines } = await sealAgainst(() => lease(60), {
        token: () => Promise.reject(new ProviderError('permission', 'seal.token_file cannot be read: ENOENT')),
      });
      await seal.keepAccess();
      expect(lines[0]?.fields).to.deep.equal({ reason: 'seal.token_file cannot be read: ENOENT' });
    });
  });
});
