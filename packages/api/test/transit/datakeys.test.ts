import { expect } from 'chai';
import { type Answer, type Served, served } from '../served.ts';

const fox = Buffer.from('the quick brown fox').toString('base64');

describe('datakeys', () => {
  let at: Served;
  before(async () => {
    at = await served();
    for (const [name, body] of Object.entries({ k: {}, d: { derived: true }, r: { type: 'rsa-2048' }, s: { type: 'ed25519' } }))
      expect((await at.ask(`POST transit/keys/${name}`, { body })).status).to.equal(200);
  });
  after(() => at.close());

  const ask = (target: string, body: object, token?: string): Promise<Answer> =>
    at.ask(`POST transit/${target}`, { body, ...(token !== undefined && { token }) });
  const tokenWith = async (policy: string): Promise<string> => {
    await at.ask('POST sys/policies/acl/p', { body: { policy } });
    return (await at.ask('POST auth/token/create', { body: { policies: ['p'], no_default_policy: true } })).body.auth
      .client_token;
  };

  it('answer with pairs that the key decrypts, and with the version once', async () => {
    for (const [name, more] of [
      ['k', {}],
      ['k', { associated_data: fox, bits: '512', key_version: '1' }],
      ['d', { context: fox, bits: 128 }],
      ['r', { hash_algorithm: 'sha1' }],
      ['r', { padding_scheme: 'pkcs1v15' }],
    ] as const) {
      const { status, body } = await ask(`datakeys/plaintext/${name}`, { count: '3', ...more });
      expect([status, body.warnings]).to.deep.equal([200, null]);
      expect(body.data).to.have.all.keys('key_pairs', 'key_version');
      expect([body.data.key_pairs.length, body.data.key_version]).to.deep.equal([3, 1]);
      for (const pair of body.data.key_pairs) {
        expect(pair).to.have.all.keys('ciphertext', 'plaintext');
        const { bits: _bits, key_version: _version, ...bound } = { bits: 0, key_version: 0, ...more };
        const opened = await ask(`decrypt/${name}`, { ciphertext: pair.ciphertext, ...bound });
        expect(opened.body.data).to.deep.equal({ plaintext: pair.plaintext });
      }
    }
    const { data } = (await ask('datakeys/wrapped/k', { count: 1000 })).body;
    expect(data.key_pairs).to.have.lengthOf(1000);
    for (const pair of data.key_pairs) expect(pair).to.have.all.keys('ciphertext');
  });

  const wrongCount = 'count must be a number from 1 to 1000';
  const noInteger = 'Field validation failed: error converting input for field "count": expected an integer';
  for (const [target, body, errors] of [
    ['wrapped/k', {}, [wrongCount]],
    ['wrapped/k', { count: null }, [wrongCount]],
    ['wrapped/k', { count: '' }, [wrongCount]],
    ['wrapped/k', { count: 0 }, [wrongCount]],
    ['wrapped/k', { count: -1 }, [wrongCount]],
    ['wrapped/k', { count: 1001 }, [wrongCount]],
    ['plaintext/k', { count: '1001' }, [wrongCount]],
    ['wrapped/k', { count: 9_007_199_254_740_991 }, [wrongCount]],
    ['wrapped/k', { count: 1.5 }, [noInteger]],
    ['wrapped/k', { count: 'two' }, [noInteger]],
    ['wrapped/k', { count: [2] }, [noInteger]],
    ['wrapped/k', { count: 2, bits: 64 }, ['invalid bit length']],
    ['wrapped/k', { count: 2, bits: 257 }, ['invalid bit length']],
    ['wrapped/k', { count: 2, key_version: 2 }, ['requested version for encryption is higher than the latest key version']],
    ['wrapped/k', { count: 2, hash_algorithm: 'md5' }, ['hash_algorithm argument invalid: unknown hash algorithm: md5']],
    [
      'wrapped/k',
      { count: 2, hash_algorithm: 'sha1' },
      ['hash_algorithm argument invalid: unsupported key type aes256-gcm96 for hash algorithm'],
    ],
    ['wrapped/r', { count: 2, associated_data: fox }, ["'[0].associated_data' provided for non-AEAD cipher suite rsa-2048"]],
    ['wrapped/d', { count: 2, context: '!!' }, ['failed to base64-decode context']],
    ['wrapped/s', { count: 2 }, ['message encryption not supported for key type ed25519']],
    ['wrapped/missing', { count: 2 }, ['encryption key not found']],
    ['both/k', { count: 2 }, ["Invalid path, must be 'plaintext' or 'wrapped'"]],
    ['constructor/k', { count: 2 }, ["Invalid path, must be 'plaintext' or 'wrapped'"]],
  ] as const)
    it(`are refused: ${target} ${JSON.stringify(body)}`, async () => {
      const { status, body: answer } = await ask(`datakeys/${target}`, body);
      expect([status, answer]).to.deep.equal([400, { errors }]);
    });

  it('are not found at other paths, and with other verbs', async () => {
    for (const [line, status] of [
      ['POST transit/datakeys/wrapped', 404],
      ['POST transit/datakeys/wrapped/k/2', 404],
      ['GET transit/datakeys/wrapped/k', 405],
    ] as const)
      expect((await at.ask(line)).status, line).to.equal(status);
  });

  const granted = 'path "transit/*" { capabilities = ["update"] }\npath "sys/capabilities-self" { capabilities = ["update"] }\n';
  const deny = 'capabilities = ["deny"]';
  for (const [rules, plaintext, wrapped] of [
    ['', 200, 200],
    [`path "transit/datakey/plaintext/k" { ${deny} }`, 403, 200],
    [`path "transit/datakey/plaintext/*" { ${deny} }`, 403, 200],
    [`path "transit/datakey/plaintext/+" { ${deny} }`, 403, 200],
    [`path "transit/datakey/+/k" { ${deny} }`, 403, 403],
    // A rule that is less specific than the grant denies neither.
    [`path "+/datakey/plaintext/k" { ${deny} }`, 200, 200],
    [`path "transit/+/plaintext/k" { ${deny} }`, 403, 200],
    [`path "transit/datakey/*" { ${deny} }`, 403, 403],
    [`path "transit/datakeys/plaintext/k" { ${deny} }`, 403, 200],
    [`path "transit/datakey/plaintext/other" { ${deny} }`, 200, 200],
    [`path "transit/datakey/+/k" { ${deny} }\npath "transit/datakey/wrapped/k" { capabilities = ["update"] }`, 403, 200],
    // No grant of the one is a grant of the other, and its absence is no denial.
    ['path "transit/datakeys/plaintext/k" { capabilities = ["read"] }', 403, 200],
    ['path "transit/datakey/plaintext/k" { capabilities = ["read"] }', 200, 200],
  ] as const)
    it(`are denied where one data key is denied: ${rules || 'nothing'}`, async () => {
      const token = await tokenWith(granted + rules);
      const statuses = async (count: number) =>
        Promise.all(['plaintext', 'wrapped'].map(async (kind) => (await ask(`datakeys/${kind}/k`, { count }, token)).status));
      expect(await statuses(2)).to.deep.equal([plaintext, wrapped]);
      expect(await statuses(0)).to.deep.equal([plaintext, wrapped].map((status) => (status === 200 ? 400 : status)));
      const paths = ['transit/datakeys/plaintext/k', 'transit/datakeys/wrapped/k'];
      const { data } = (await at.ask('POST sys/capabilities-self', { token, body: { paths } })).body;
      const may = paths.map((path) => data[path].includes('update'));
      expect(may).to.deep.equal([plaintext === 200, wrapped === 200]);
    });

  it('need a grant of their own', async () => {
    const token = await tokenWith('path "transit/datakey/*" { capabilities = ["update"] }');
    expect((await ask('datakeys/wrapped/k', { count: 2 }, token)).status).to.equal(403);
    expect((await ask('datakey/wrapped/k', {}, token)).status).to.equal(200);
  });

  it('obey rules about their parameters', async () => {
    const token = await tokenWith(
      'path "transit/datakeys/*" { capabilities = ["update"] allowed_parameters = { count = [1, 2], bits = [256] } }',
    );
    for (const [body, status] of [
      [{ count: 2 }, 200],
      [{ count: 3 }, 403],
      [{ count: 2, bits: 512 }, 403],
      [{ count: 2, context: fox }, 403],
    ] as const)
      expect((await ask('datakeys/wrapped/k', body, token)).status, JSON.stringify(body)).to.equal(status);
  });
});
