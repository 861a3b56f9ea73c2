import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { type RealNode, realNode } from '../real-node.ts';

const archive = 'epoch-1-0a1b2c3d-index-12.snap';
const path = 'sys/replication/dr/primary/salvage';

describe('sys/replication/dr/primary/salvage', () => {
  let real: RealNode;
  before(async () => {
    real = await realNode();
  });
  after(() => real.close());

  const send = (method: string, to: string, body?: object, token = real.rootToken): Promise<Response> =>
    fetch(`${real.url}/${to}`, {
      method,
      headers: { 'x-service-token': token },
      ...(body && { body: JSON.stringify(body) }),
    });
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of any shape
  async function ask(...request: Parameters<typeof send>): Promise<{ readonly status: number; readonly body: any }> {
    const answer = await send(...request);
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? {} : JSON.parse(text) };
  }

  it('restores a key of an archive under another name', async () => {
    await ask('POST', 'transit/keys/k', {});
    await ask('POST', 'transit/keys/k/rotate', {});
    const plaintext = Buffer.from('under version 2').toString('base64');
    const { ciphertext } = (await ask('POST', 'transit/encrypt/k', { plaintext })).body.data;
    const folder = join(real.node.config.data_dir, 'diverged');
    mkdirSync(folder);
    writeFileSync(join(folder, archive), await (await send('GET', 'sys/storage/raft/snapshot')).bytes());
    await ask('POST', 'transit/keys/k/config', { deletion_allowed: true });
    expect((await ask('DELETE', 'transit/keys/k')).status).to.equal(204);

    const request = { snapshot: archive, key: 'k', name: 'k-lost' };
    expect((await ask('POST', path, request)).body.errors).to.deep.equal(['this cluster is not a primary']);
    expect((await ask('POST', 'sys/replication/dr/primary/enable', {})).status).to.equal(204);
    expect(await ask('POST', path, request)).to.deep.equal({ status: 204, body: {} });
    expect((await ask('POST', 'transit/decrypt/k-lost', { ciphertext })).body.data).to.deep.equal({ plaintext });
    expect((await ask('GET', 'transit/keys/k')).status).to.equal(404);

    const refusals = [
      { change: {}, error: 'a key of this name already exists' },
      { change: { name: 'other', key: 'never' }, error: 'the snapshot has no such key in this mount' },
      { change: { name: 'other', mount: 'absent/' }, error: 'there is no transit mount at this path' },
      { change: { name: 'other', snapshot: `../diverged/${archive}` }, error: 'has no snapshot of this name in diverged/' },
    ];
    for (const { change, error } of refusals) {
      const { status, body } = await ask('POST', path, { ...request, ...change });
      expect(status, error).to.be.within(400, 404);
      expect(body.errors[0]).to.include(error);
    }
  });

  it('needs sudo', async () => {
    await ask('POST', 'sys/policies/acl/operator', { policy: `path "${path}" { capabilities = ["update"] }` });
    const { body } = await ask('POST', 'auth/token/create', { policies: ['operator'] });
    const request = { snapshot: archive, key: 'k', name: 'mine' };
    expect((await ask('POST', path, request, body.auth.client_token)).status).to.equal(403);
  });
});
