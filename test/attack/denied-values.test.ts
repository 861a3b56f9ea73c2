// @live
// A denied value stays denied wherever a request puts it: in a batch item, in the path, under another name, or inside the input.
import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { base64, processMs, Workbench } from '../process/live-server.ts';
import { tokenWith } from '../process/token-with.ts';

const sha1Info = Buffer.concat([
  Buffer.from('3021300906052b0e03021a05000414', 'hex'),
  createHash('sha1').update('a document').digest(),
]).toString('base64');
const sha256Info = Buffer.concat([
  Buffer.from('3031300d060960864801650304020105000420', 'hex'),
  createHash('sha256').update('a document').digest(),
]).toString('base64');
const asIs = { prehashed: true, hash_algorithm: 'none', signature_algorithm: 'pkcs1v15' };

describe('a denied value', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  it('is refused as SHA-1 inside a DigestInfo, in the path and as a parameter', async function () {
    this.timeout(processMs);
    const server = await bench.start({ dataDir: bench.folder() });
    await server.call('POST', 'transit/keys/k', { type: 'rsa-2048' });
    const made = await server.call('POST', 'transit/sign/k', { ...asIs, input: sha1Info });
    const signature = made.string('data.signature');
    const granted = 'path "transit/*" { capabilities = ["update"] }';
    for (const denial of [
      'path "transit/sign/k/sha1" { capabilities = ["deny"] } path "transit/verify/k/sha1" { capabilities = ["deny"] }',
      ['sign', 'verify']
        .map((word) => `path "transit/${word}/*" { capabilities = ["update"] denied_parameters = { hash_algorithm = ["sha1"] } }`)
        .join(' '),
    ]) {
      const token = await tokenWith(server, `${granted} ${denial}`);
      for (const [path, body] of [
        ['sign/k', { ...asIs, input: sha1Info }],
        ['sign/k/none', { ...asIs, hash_algorithm: 'sha2-256', input: sha1Info }],
        ['sign/k', { ...asIs, hash_algorithm: '', algorithm: 'none', input: sha1Info }],
        ['sign/k', { ...asIs, prehashed: 'true', input: sha1Info.replace(/(.{8})/g, '$1\n') }],
        ['sign/k', { ...asIs, input: createHash('sha1').update('a document').digest('base64') }],
        ['sign/k', { ...asIs, batch_input: [{ input: sha256Info }, { input: sha1Info }] }],
        ['sign/k/sha1', { input: base64('x'), signature_algorithm: 'pkcs1v15' }],
        ['sign/k', { input: base64('x'), hash_algorithm: 'sha1' }],
        ['sign/k', { input: base64('x'), hash_algorithm: '', algorithm: 'sha1' }],
        ['verify/k', { ...asIs, input: sha1Info, signature }],
        ['verify/k', { ...asIs, batch_input: [{ input: sha1Info, signature }] }],
      ] as const) {
        const answer = await server.call('POST', `transit/${path}`, body, token);
        expect(answer.status, `${denial}: ${path} ${JSON.stringify(body)}`).to.equal(403);
      }
      expect((await server.call('POST', 'transit/sign/k', { ...asIs, input: sha256Info }, token)).status).to.equal(200);
    }
    // `algorithm` does not select the hash of a signature, so neither request uses SHA-1.
    const token = await tokenWith(server, `${granted} path "transit/sign/k/sha1" { capabilities = ["deny"] }`);
    const unused = { ...asIs, hash_algorithm: undefined, algorithm: 'none', input: sha1Info };
    expect((await server.call('POST', 'transit/sign/k', unused, token)).status).to.equal(400);
    const input = base64('x');
    const signed = await server.call('POST', 'transit/sign/k', { input, algorithm: 'sha1' }, token);
    const verified = { input, signature: signed.string('data.signature'), hash_algorithm: 'sha2-256' };
    expect((await server.call('POST', 'transit/verify/k', verified, token)).at('data.valid')).to.equal(true);
  });

  it('is refused as SHA-1 in a digest of ECDSA that is padded to the length of another hash', async function () {
    this.timeout(processMs);
    const server = await bench.start({ dataDir: bench.folder() });
    await server.call('POST', 'transit/keys/k', { type: 'ecdsa-p256' });
    const denial = ['sign', 'verify'].map((word) => `path "transit/${word}/k/sha1" { capabilities = ["deny"] }`).join(' ');
    const token = await tokenWith(server, `path "transit/*" { capabilities = ["update"] } ${denial}`);
    const sha1 = createHash('sha1').update('a document').digest();
    const padded = Buffer.concat([Buffer.alloc(12), sha1]).toString('base64');
    const bySha1 = { input: base64('a document'), hash_algorithm: 'sha1' };
    const signature = (await server.call('POST', 'transit/sign/k', bySha1)).string('data.signature');
    for (const [path, body] of [
      ['sign/k', { input: padded, prehashed: true }],
      ['sign/k/sha3-256', { input: padded, prehashed: true }],
      ['sign/k', { batch_input: [{ input: padded }], prehashed: true }],
      ['verify/k', { input: padded, prehashed: true, signature }],
      ['verify/k', { batch_input: [{ input: padded, signature }], prehashed: true }],
    ] as const)
      expect((await server.call('POST', `transit/${path}`, body, token)).status, path).to.equal(400);
  });

  it('is refused in batch items as in the body, and allowed parameters apply to items too', async function () {
    this.timeout(processMs);
    const server = await bench.start({ dataDir: bench.folder() });
    await server.call('POST', 'transit/keys/k', {});
    await server.call('POST', 'transit/keys/k/rotate', {});
    const encrypt = async (parameters: string, body: object): Promise<number> => {
      const token = await tokenWith(server, `path "transit/encrypt/k" { capabilities = ["update"] ${parameters} }`);
      return (await server.call('POST', 'transit/encrypt/k', body, token)).status;
    };
    const old = { plaintext: base64('x'), key_version: 1 };
    const now = { plaintext: base64('x') };
    for (const [parameters, body, status] of [
      ['denied_parameters = { key_version = [1] }', old, 403],
      ['denied_parameters = { key_version = [1] }', { batch_input: [now, old] }, 403],
      ['denied_parameters = { key_version = [] }', { batch_input: [now, old] }, 403],
      ['denied_parameters = { key_version = [] }', { batch_input: [now, now] }, 200],
      ['allowed_parameters = { batch_input = [], plaintext = [] }', { batch_input: [now, old] }, 403],
      ['allowed_parameters = { batch_input = [], plaintext = [] }', { batch_input: [now, { ...now, reference: 'r' }] }, 200],
      ['allowed_parameters = { batch_input = [] }', { batch_input: [now, old] }, 200],
      ['allowed_parameters = { batch_input = [] }', now, 403],
      ['required_parameters = ["key_version"]', { batch_input: [old, now], key_version: 1 }, 403],
      ['required_parameters = ["key_version"]', { batch_input: [old, old] }, 200],
    ] as const)
      expect(await encrypt(parameters, body), `${parameters} ${JSON.stringify(body)}`).to.equal(status);
  });
});
