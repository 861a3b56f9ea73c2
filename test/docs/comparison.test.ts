// @live
import { expect } from 'chai';
import { type Answer, base64, type LiveServer, processMs, Workbench } from '../process/live-server.ts';

describe('the comparison in docs/moving.md', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  before(async () => {
    server = await bench.start({ dataDir: bench.folder() });
  });
  after(() => bench.clean());

  const post = (path: string, body: object = {}): Promise<Answer> => server.call('POST', path, body);
  const status = async (path: string, body?: object): Promise<number> => (await post(path, body)).status;

  it('says what is missing: other engines, auth methods, namespaces, key types', async () => {
    for (const type of ['kv', 'pki', 'database', 'ssh']) expect(await status(`sys/mounts/${type}`, { type }), type).to.equal(400);
    for (const type of ['ldap', 'oidc', 'aws']) expect(await status(`sys/auth/${type}`, { type }), type).to.equal(400);
    for (const type of ['approle', 'cert', 'jwt', 'kubernetes', 'userpass'])
      expect(await status(`sys/auth/${type}`, { type }), type).to.equal(204);
    expect(await status('sys/namespaces/team')).to.equal(404);
    expect(await status('identity/entity')).to.equal(404);
    expect(await status('transit/keys/x', { type: 'xchacha20-poly1305' })).to.equal(400);
    expect(await status('sys/audit/more', { type: 'file', options: { file_path: '/tmp/x' } })).to.equal(400);
  });

  it('says what is included: key types and batches that the peers refuse', async () => {
    for (const type of ['aes128-cmac', 'aes256-cmac', 'ml-dsa', 'hybrid']) {
      const more =
        type === 'ml-dsa' || type === 'hybrid'
          ? { parameter_set: '65', ...(type === 'hybrid' && { hybrid_key_type_pqc: 'ml-dsa', hybrid_key_type_ec: 'ecdsa-p256' }) }
          : {};
      const made = await post(`transit/keys/${type}`, { type, ...more });
      expect(made.status, made.text).to.equal(200);
    }
    await post('transit/keys/orders');
    const items = Array.from({ length: 600 }, () => ({ plaintext: base64('x') }));
    expect(await status('transit/encrypt/orders', { batch_input: items })).to.equal(200);
  });

  it('says that ciphertexts with associated data are rewrapped, and that there are several data keys in a request', async () => {
    await post('transit/keys/bound');
    const bound = { associated_data: base64('row 7') };
    const { ciphertext } = (await post('transit/encrypt/bound', { plaintext: base64('x'), ...bound })).at('data') as {
      ciphertext: string;
    };
    expect(await status('transit/rewrap/bound', { ciphertext })).to.equal(400);
    expect(await status('transit/rewrap/bound', { ciphertext, ...bound })).to.equal(200);
    expect((await post('transit/datakeys/wrapped/bound', { count: 5 })).at('data.key_pairs')).to.have.length(5);
  });

  it('says which answers differ: partial failures, nonces, short CMACs, convergent keys with associated data', async () => {
    await post('transit/keys/orders');
    const input = base64('x');
    expect(await status('transit/hmac/orders', { batch_input: [{ input }, {}] })).to.equal(400);
    expect(await status('transit/encrypt/orders', { plaintext: input, nonce: base64('123456789012') })).to.equal(400);
    await post('transit/keys/tags', { type: 'aes256-cmac' });
    expect(await status('transit/cmac/tags', { input, mac_length: 3 })).to.equal(400);
    await post('transit/keys/equal', { derived: true, convergent_encryption: true });
    const nonce = async (aad: string): Promise<string> => {
      const body = { plaintext: input, context: input, associated_data: base64(aad) };
      const sealed = (await post('transit/encrypt/equal', body)).string('data.ciphertext').split(':').at(-1) ?? '';
      return Buffer.from(sealed, 'base64').subarray(0, 12).toString('hex');
    };
    expect(await nonce('a'))
      .to.equal(await nonce('a'))
      .and.not.equal(await nonce('b'));
  });
});
