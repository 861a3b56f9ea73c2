import { expect } from 'chai';
import { type RealNode, realNode } from '../real-node.ts';

describe('sys/replication/dr/primary/acknowledge', () => {
  let real: RealNode;
  before(async () => {
    real = await realNode();
  });
  after(() => real.close());

  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of any shape
  async function ask(method: string, path: string, body?: object): Promise<{ readonly status: number; readonly body: any }> {
    const answer = await fetch(`${real.url}/${path}`, {
      method,
      headers: { 'x-service-token': real.rootToken },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? {} : JSON.parse(text) };
  }
  const set = (body: object) => ask('POST', 'sys/replication/dr/primary/acknowledge', body);
  const shown = async () => (await ask('GET', 'sys/replication/dr/status')).body.data.acknowledge;

  it('sets at a primary whether key material waits for the secondaries', async () => {
    const key_material = { acknowledge: 'key_material' };
    expect((await set(key_material)).body.errors).to.deep.equal(['this cluster is not a primary']);
    expect((await ask('POST', 'sys/replication/dr/primary/enable', {})).status).to.equal(204);
    expect(await shown()).to.equal(undefined);
    for (const timeout of ['0s', '31s']) {
      const refused = await set({ ...key_material, timeout });
      expect([refused.status, refused.body.errors]).to.deep.equal([400, ['timeout must be from 1 to 30 seconds']]);
    }
    for (const wrong of [{}, { acknowledge: 'all' }, { ...key_material, on_timeout: 'ignore' }])
      expect((await set(wrong)).status, JSON.stringify(wrong)).to.equal(400);
    expect((await set(key_material)).status).to.equal(204);
    expect(await shown()).to.deep.equal({ mode: 'key_material', timeout_ms: 5_000, on_timeout: 'refuse' });
    expect((await set({ ...key_material, timeout: '2s', on_timeout: 'degrade' })).status).to.equal(204);
    expect(await shown()).to.deep.equal({ mode: 'key_material', timeout_ms: 2_000, on_timeout: 'degrade' });
    // Without a secondary, nobody could be promoted: nothing has to be confirmed.
    const created = await ask('POST', 'transit/keys/k', {});
    expect([created.status, created.body.warnings]).to.deep.equal([200, null]);
    expect((await set({ acknowledge: 'none' })).status).to.equal(204);
    expect(await shown()).to.equal(undefined);
  });
});
