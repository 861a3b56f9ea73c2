// @live
// Secrets in unexpected fields of requests to a live node. The test checks the responses; the search at the end of the server checks
// its log, its audit and its metrics.
import { expect } from 'chai';
import { safety } from '../safety.ts';
import { startAudited } from './audited-server.ts';
import { base64, processMs, Workbench } from './live-server.ts';
import { mark, SecretWatch } from './secret-watch.ts';

describe('a mistake with a secret in it', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  it('is answered without repeating it, and leaves no trace of it in log, audit and metrics', async function () {
    this.timeout(processMs);
    const { server, rootToken } = await startAudited(bench, { settings: { workers: 1 } });
    const watch = new SecretWatch();
    const join = { leader_api_addr: `https://user:${mark}@127.0.0.1:1` };
    const cases: readonly (readonly [line: string, body?: unknown, token?: string | null])[] = [
      ['PUT sys/unseal', { key: mark }, null],
      ['PUT sys/unseal', { key: base64(mark) }, null],
      ['PUT sys/init', { secret_shares: mark, pgp_keys: [mark], root_token_pgp_key: mark }, null],
      ['POST sys/storage/raft/join', join, null],
      ['POST sys/storage/raft/join', { ...join, leader_ca_cert: mark, leader_client_key: mark }, null],
      ['PUT sys/rotate/root/update', { key: mark, nonce: mark }],
      ['PUT sys/generate-root/update', { key: mark, nonce: mark }],
      ['PUT sys/generate-root-token/update', { key: mark, nonce: mark }],
      ['POST sys/decode-token', { encoded_token: mark, otp: mark }, null],
      ['POST sys/storage/raft/snapshot', mark],
      ['POST sys/storage/raft/remove-peer', { server_id: mark }],
      ['POST sys/wrapping/unwrap', { token: mark }],
      ['GET auth/token/lookup-self', undefined, `s.${mark}`],
      ['GET auth/token/lookup-self', undefined, mark],
      ['POST auth/token/revoke', { token: mark }],
      ['POST transit/encrypt/k', `{"plaintext":"${base64(mark)}`],
      ['POST transit/encrypt/k', `{"plaintext":"${base64(mark)}"} ${mark}`],
      ['POST transit/encrypt/k', `plaintext=${mark}&%`],
      ['POST transit/encrypt/k', { plaintext: mark }],
      ['POST transit/decrypt/k', { ciphertext: `svc:v1:${base64(mark)}` }],
      ['POST transit/restore', { backup: base64(`{"policy":{"name":"${mark}","keys":${mark}`) }],
      ['POST sys/audit-hash/none', { input: mark }],
    ];
    const found: string[] = [];
    for (const [line, body, token = rootToken] of cases) {
      const [method = '', path = ''] = line.split(' ');
      const { status, text } = await server.call(method, path, body, token);
      expect(status, `${line} ${text}`).not.to.equal(500);
      found.push(...watch.findings(`the answer to ${line}, ${text}`, text));
    }
    expect(found, safety).to.deep.equal([]);
    expect(server.stderr).not.to.match(/internal error/);
    expect((await server.stop()).code).to.equal(0);
  });
});
