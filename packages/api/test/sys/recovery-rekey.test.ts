import { expect } from 'chai';
import { type RealNode, realNode } from '../real-node.ts';
import { served } from '../served.ts';

describe('a rotation of the recovery shares', () => {
  let real: RealNode;
  let share = '';
  before(async () => {
    real = await realNode();
    share = real.share;
  });
  after(() => real.close());

  const call = async (method: string, path: string, body?: object, token = real.rootToken) => {
    const headers = { 'X-Service-Token': token };
    const response = await fetch(`${real.url}/${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    const text = await response.text();
    return { status: response.status, data: text === '' ? {} : JSON.parse(text).data };
  };

  it('gives new shares under both of the paths that the peers have, and the old share is then refused', async () => {
    for (const at of ['sys/rotate/recovery', 'sys/rekey-recovery-key']) {
      expect((await call('GET', `${at}/init`)).data, 'before the start').to.include({ started: false, required: 1 });
      const started = await call('POST', `${at}/init`, { secret_shares: 1, secret_threshold: 1 });
      expect([started.status, started.data.started]).to.deep.equal([200, true]);
      const { nonce } = (await call('GET', `${at}/init`)).data;
      const wrong = await call('POST', `${at}/update`, { key: Buffer.alloc(32).toString('base64'), nonce });
      expect(wrong.status).to.equal(400);
      const ended = await call('POST', `${at}/update`, { key: share, nonce });
      expect([ended.status, ended.data.complete]).to.deep.equal([200, true]);
      const [old, next] = [share, String(ended.data.keys_base64[0])];
      expect(next).to.not.equal(old);
      share = next;
      await call('POST', `${at}/init`, { secret_shares: 1, secret_threshold: 1 });
      const again = (await call('GET', `${at}/init`)).data.nonce;
      expect((await call('POST', `${at}/update`, { key: old, nonce: again })).status).to.equal(400);
      expect((await call('DELETE', `${at}/init`)).status).to.equal(204);
    }
  });

  it('reports the verification of new shares, and begins it again under a new nonce', async () => {
    const at = 'sys/rotate/recovery';
    const idle = { started: false, nonce: '', t: 0, n: 0, progress: 0 };
    expect((await call('GET', `${at}/verify`)).data).to.deep.equal(idle);
    expect((await call('DELETE', `${at}/verify`)).status).to.equal(400);
    const wanted = { secret_shares: 3, secret_threshold: 2, require_verification: true };
    const { nonce } = (await call('POST', `${at}/init`, wanted)).data;
    expect((await call('GET', `${at}/verify`)).data).to.deep.equal(idle);
    const { keys_base64: keys, verification_nonce: first } = (await call('POST', `${at}/update`, { key: share, nonce })).data;
    await call('POST', `${at}/verify`, { key: keys[0], nonce: first });
    expect((await call('GET', `${at}/verify`)).data).to.deep.equal({ started: true, nonce: first, t: 2, n: 3, progress: 1 });
    const again = await call('DELETE', `${at}/verify`);
    expect(again.data).to.include({ started: true, t: 2, n: 3, progress: 0 });
    expect(again.data.nonce).to.not.equal(first);
    expect((await call('POST', `${at}/verify`, { key: keys[1], nonce: first })).status).to.equal(400);
    for (const [index, complete] of [
      [0, false],
      [2, true],
    ] as const)
      expect((await call('POST', `${at}/verify`, { key: keys[index], nonce: again.data.nonce })).data.complete).to.equal(
        complete,
      );
    expect((await call('GET', `${at}/init`)).data).to.include({ started: false, required: 2 });
  });

  it('needs a token, unlike in earlier releases of the peers', async () => {
    for (const [method, path] of [
      ['GET', 'sys/rekey-recovery-key/init'],
      ['POST', 'sys/rekey-recovery-key/update'],
      ['DELETE', 'sys/rotate/recovery/init'],
    ] as const)
      expect((await call(method, path, method === 'POST' ? {} : undefined, 'none')).status).to.equal(403);
  });

  it('is refused under a seal whose shares are key shares', async () => {
    const api = await served();
    try {
      api.node.member = { barrier: { sealStatus: { recoverySeal: false } } } as never;
      for (const at of ['sys/rotate/recovery/init', 'sys/rekey-recovery-key/init']) {
        const { status, body } = await api.ask(`GET ${at}`);
        expect([status, body.errors]).to.deep.equal([
          400,
          ['recovery rekeying not supported: the seal has key shares, so use sys/rotate/root'],
        ]);
      }
    } finally {
      await api.close();
    }
  });
});
