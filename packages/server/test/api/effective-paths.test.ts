import { initialAccess, Policies, TokenRegistry, Tokens } from '@transitd/access';
import { memoryStore } from '@transitd/storage-fsm';
import { TransitEngine } from '@transitd/transit-engine';
import { expect } from 'chai';
import { effectivePaths } from '../../src/api/effective-paths.ts';
import type { Body } from '../../src/http/json.ts';
import type { Service } from '../../src/node/node.ts';

async function parts() {
  const store = memoryStore();
  await store.commit({ conditions: [], writes: initialAccess({ now: 0 }).writes });
  const engine = new TransitEngine({ store, mountId: 'm', now: Date.now });
  await engine.createKey('k', {});
  await engine.rotateKey('k');
  const policies = new Policies({ store });
  const tokens = new Tokens({ store, policies, now: Date.now });
  const registry = new TokenRegistry({ store, tokens, policies, now: Date.now });
  const service: Service = { tokens, policies, registry, engines: new Map([['mnt', engine]]), mounts: [], sinceMs: 0 };
  return { service };
}

async function setup() {
  const { service } = await parts();
  return async (path: string, body: Body = {}): Promise<string[]> => {
    const call = { verb: 'POST', path: `mnt/${path}`, params: { mount: 'mnt' }, query: new URLSearchParams(), body } as const;
    return (await effectivePaths(service, call)).map((each) => each.replace('mnt/', '')).sort();
  };
}

describe('the paths that a request comes to', () => {
  for (const { path, body = {}, paths } of [
    { path: 'sign/k', paths: ['sign/k/sha2-256'] },
    { path: 'sign/k', body: { hash_algorithm: 'sha1' }, paths: ['sign/k/sha1'] },
    { path: 'sign/k', body: { hash_algorithm: '' }, paths: ['sign/k/sha2-256'] },
    { path: 'sign/k', body: { algorithm: 'sha1' }, paths: ['sign/k/sha1', 'sign/k/sha2-256'] },
    { path: 'sign/k/sha2-512', body: { hash_algorithm: 'sha1' }, paths: ['sign/k/sha2-512'] },
    { path: 'verify/k', body: { hash_algorithm: 'sha1' }, paths: ['verify/k/sha1'] },
    { path: 'hmac/k', paths: ['hmac/k/sha2-256'] },
    { path: 'hmac/k', body: { algorithm: 'sha1' }, paths: ['hmac/k/sha1'] },
    { path: 'hmac/k/sha1', body: { algorithm: 'sha2-256' }, paths: ['hmac/k/sha1'] },
    { path: 'hash', paths: ['hash/sha2-256'] },
    { path: 'hash', body: { algorithm: 'sha3-256' }, paths: ['hash/sha3-256'] },
    { path: 'hash/sha2-512', paths: ['hash/sha2-512'] },
    { path: 'cmac/k', paths: ['cmac/k/0', 'cmac/k/16'] },
    { path: 'cmac/k', body: { mac_length: 8 }, paths: ['cmac/k/8'] },
    { path: 'cmac/k', body: { mac_length: '8' }, paths: ['cmac/k/8'] },
    { path: 'cmac/k/4', body: { mac_length: 8 }, paths: ['cmac/k/4'] },
    { path: 'cmac/k', body: { batch_input: [{ mac_length: 4 }, {}], mac_length: 8 }, paths: ['cmac/k/4', 'cmac/k/8'] },
    { path: 'random', paths: ['random/32', 'random/platform', 'random/platform/32'] },
    { path: 'random', body: { source: 'seal', bytes: 8 }, paths: ['random/8', 'random/seal', 'random/seal/8'] },
    { path: 'random/seal', paths: ['random/32', 'random/seal', 'random/seal/32'] },
    { path: 'random/64', body: { source: 'all' }, paths: ['random/64', 'random/all', 'random/all/64'] },
    { path: 'random/all/64', paths: ['random/64', 'random/all', 'random/all/64'] },
    { path: 'export/hmac-key/k', paths: ['export/hmac-key/k/1', 'export/hmac-key/k/2', 'export/hmac-key/k/latest'] },
    { path: 'export/hmac-key/k/1', paths: ['export/hmac-key/k/1'] },
    { path: 'export/hmac-key/k', body: { version: '1' }, paths: ['export/hmac-key/k/1'] },
    { path: 'export/hmac-key/k/latest', paths: ['export/hmac-key/k/2', 'export/hmac-key/k/latest'] },
    { path: 'export/hmac-key/k/2', paths: ['export/hmac-key/k/2', 'export/hmac-key/k/latest'] },
    { path: 'byok-export/to/k/2', paths: ['byok-export/to/k/2', 'byok-export/to/k/latest'] },
    { path: 'encrypt/k', body: { algorithm: 'sha1' }, paths: [] },
    { path: 'keys/sign/rotate', paths: [] },
  ])
    it(`of ${path} with ${JSON.stringify(body)} are ${paths.join(', ') || 'no further ones'}`, async () => {
      expect(await (await setup())(path, body)).to.deep.equal(paths);
    });

  it('of a policy are those of its name as it counts, without case', async () => {
    const { service } = await parts();
    const ask = (path: string) =>
      effectivePaths(service, { verb: 'POST', path, params: {}, query: new URLSearchParams(), body: {} });
    expect(await ask('sys/policies/acl/ Admin')).to.deep.equal(['sys/policies/acl/admin']);
    expect(await ask('sys/policy/ADMIN')).to.deep.equal(['sys/policy/admin']);
    expect(await ask('sys/policies/acl')).to.deep.equal([]);
  });
});
