// @live
// The npm client node-vault, unchanged against a live node: existing services send the same requests.
import { expect } from 'chai';
import nodeVault from 'node-vault';
import { base64, type LiveServer, processMs, Workbench } from '../process/live-server.ts';
import { planted } from '../process/secret-watch.ts';

/** Returns the value at a path such as `data.keys.1` in a response. */
function at(answer: unknown, path: string): unknown {
  let place = answer;
  for (const step of path.split('.')) place = typeof place === 'object' && place !== null ? Reflect.get(place, step) : undefined;
  return place;
}

function textAt(answer: unknown, path: string): string {
  const value = at(answer, path);
  if (typeof value !== 'string') throw new Error(`no text at ${path} of ${JSON.stringify(answer)}`);
  return value;
}

const refused = async (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => 'not refused',
    (error: unknown) => at(error, 'response.statusCode'),
  );

describe('node-vault', () => {
  const bench = new Workbench();
  let server: LiveServer;
  let vault: nodeVault.client;

  const clientWith = (token: string): nodeVault.client => nodeVault({ apiVersion: 'v1', endpoint: server.url, token });

  before(async function () {
    this.timeout(processMs);
    server = await bench.start({ dataDir: bench.folder() });
    vault = clientWith(server.rootToken);
  });
  after(() => bench.clean());

  it('reads health, initialization and seal status', async () => {
    expect(at(await vault.health(), 'sealed')).to.equal(false);
    expect(await vault.initialized()).to.deep.equal({ initialized: true });
    expect(at(await vault.status(), 'sealed')).to.equal(false);
    expect(at(await vault.read('sys/leader'), 'is_self')).to.equal(true);
  });

  it('creates, reads, lists, rotates and deletes keys', async () => {
    await vault.transitCreateKey({ name: 'orders', type: 'aes256-gcm96' });
    await vault.write('transit/keys/letters', { type: 'chacha20-poly1305', exportable: true });
    expect(at(await vault.transitListKeys(), 'data.keys')).to.deep.equal(['letters', 'orders']);
    expect(at(await vault.list('transit/keys'), 'data.keys')).to.deep.equal(['letters', 'orders']);
    const withoutVerb = nodeVault({ endpoint: server.url, token: server.rootToken, noCustomHTTPVerbs: true });
    expect(at(await withoutVerb.list('transit/keys'), 'data.keys')).to.deep.equal(['letters', 'orders']);
    await vault.write('transit/keys/orders/rotate', {});
    expect(at(await vault.transitReadKey({ name: 'orders' }), 'data.latest_version')).to.equal(2);
    expect(await refused(vault.transitDeleteKey({ name: 'letters' }))).to.equal(400);
    await vault.write('transit/keys/letters/config', { deletion_allowed: true });
    await vault.delete('transit/keys/letters');
    expect(await refused(vault.read('transit/keys/letters'))).to.equal(404);
  });

  it('encrypts, decrypts and rewraps, one by one and in batches', async () => {
    await vault.write('transit/keys/notes', {});
    const plaintext = base64(planted('hello'));
    const encrypted = await vault.encryptData({ name: 'notes', plaintext });
    const ciphertext = textAt(encrypted, 'data.ciphertext');
    expect(ciphertext).to.match(/^svc:v1:/);
    expect(at(await vault.decryptData({ name: 'notes', ciphertext }), 'data.plaintext')).to.equal(plaintext);
    await vault.write('transit/keys/notes/rotate', {});
    const rewrapped = textAt(await vault.rewrapData({ name: 'notes', ciphertext }), 'data.ciphertext');
    expect(rewrapped).to.match(/^svc:v2:/);
    expect(at(await vault.write('transit/decrypt/notes', { ciphertext: rewrapped }), 'data.plaintext')).to.equal(plaintext);
    const batch = await vault.encryptData({ name: 'notes', batch_input: [{ plaintext }, { plaintext, reference: 'second' }] });
    expect(at(batch, 'data.batch_results.1.reference')).to.equal('second');
    const first = textAt(batch, 'data.batch_results.0.ciphertext');
    const back = await vault.write('transit/decrypt/notes', { batch_input: [{ ciphertext: first }] });
    expect(at(back, 'data.batch_results.0.plaintext')).to.equal(plaintext);
    const half = vault.write('transit/decrypt/notes', { batch_input: [{ ciphertext: first }, { ciphertext: 'x' }] });
    expect(await refused(half)).to.equal(400);
  });

  it('computes and verifies HMACs, and creates data keys, hashes and random bytes', async () => {
    await vault.write('transit/keys/seals', {});
    const input = base64(planted('signed'));
    const hmac = textAt(await vault.write('transit/hmac/seals', { input }), 'data.hmac');
    expect(at(await vault.write('transit/verify/seals', { input, hmac }), 'data.valid')).to.equal(true);
    expect(at(await vault.write('transit/verify/seals', { input: base64(planted('other')), hmac }), 'data.valid')).to.equal(
      false,
    );
    const dataKey = await vault.write('transit/datakey/plaintext/seals', {});
    const opened = await vault.decryptData({ name: 'seals', ciphertext: textAt(dataKey, 'data.ciphertext') });
    expect(at(opened, 'data.plaintext')).to.equal(textAt(dataKey, 'data.plaintext'));
    expect(at(await vault.write('transit/datakey/wrapped/seals', {}), 'data.plaintext')).to.equal(undefined);
    const sum = textAt(await vault.write('transit/hash/sha2-256', { input }), 'data.sum');
    expect(sum).to.have.length(64);
    expect(Buffer.from(textAt(await vault.write('transit/random/16', {}), 'data.random_bytes'), 'base64')).to.have.length(16);
  });

  it('writes, reads, lists and deletes policies', async () => {
    const rules = 'path "transit/encrypt/orders" { capabilities = ["update"] }';
    await vault.addPolicy({ name: 'writer', rules });
    expect(at(await vault.getPolicy({ name: 'writer' }), 'data.rules')).to.equal(rules);
    expect(at(await vault.policies(), 'data.policies')).to.include('writer');
    await vault.write('sys/policies/acl/reader', { policy: rules });
    expect(at(await vault.list('sys/policies/acl'), 'data.keys')).to.include.members(['reader', 'writer']);
    await vault.removePolicy({ name: 'reader' });
    expect(await refused(vault.read('sys/policies/acl/reader'))).to.equal(404);
    expect(await refused(vault.addPolicy({ name: 'broken', rules: 'path "x" {' }))).to.equal(400);
  });

  it('creates, looks up, renews and revokes tokens, which have the rights of their policies', async () => {
    // The client adopts the token of some responses, so each of these requests uses its own client.
    const root = (): nodeVault.client => clientWith(server.rootToken);
    const made = await root().tokenCreate({ policies: ['writer'], ttl: '10m', renewable: true, no_default_policy: false });
    const token = textAt(made, 'auth.client_token');
    const limited = clientWith(token);
    expect(at(await limited.tokenLookupSelf(), 'data.policies')).to.deep.equal(['default', 'writer']);
    expect(at(await root().tokenLookup({ token }), 'data.renewable')).to.equal(true);
    expect(at(await limited.tokenRenewSelf({ increment: '20m' }), 'auth.lease_duration')).to.equal(1_200);
    expect(at(await root().tokenRenew({ token, increment: 300 }), 'auth.client_token')).to.equal(token);
    await limited.encryptData({ name: 'orders', plaintext: base64('x') });
    expect(await refused(limited.decryptData({ name: 'orders', ciphertext: 'svc:v1:AAAA' }))).to.equal(403);
    const accessor = textAt(made, 'auth.accessor');
    expect(at(await root().tokenLookupAccessor({ accessor }), 'data.accessor')).to.equal(accessor);
    expect(at(await root().tokenAccessors(), 'data.keys')).to.include(accessor);
    await root().tokenRevoke({ token });
    expect(await refused(limited.tokenLookupSelf())).to.equal(403);
    const orphan = await root().tokenCreateOrphan({ policies: ['default'], ttl: '10m' });
    const own = clientWith(textAt(orphan, 'auth.client_token'));
    await own.tokenRevokeSelf();
    expect(await refused(own.tokenLookupSelf())).to.equal(403);
  });
});
