import { expect } from 'chai';
import { type RealNode, realNode } from '../real-node.ts';

const attempt = 'sys/generate-root-token/attempt';
const openAttempt = 'sys/generate-root/attempt';

describe('sys/generate-root-token', () => {
  let real: RealNode;

  before(async () => {
    real = await realNode();
  });
  after(() => real.close());

  async function ask(line: string, token: string | undefined, body: object = {}) {
    const [method = '', path = ''] = line.split(' ');
    const response = await fetch(`${real.url}/${path}`, {
      method,
      headers: token === undefined ? {} : { 'X-Service-Token': token },
      ...(method !== 'GET' && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    // biome-ignore lint/suspicious/noExplicitAny: answers of any shape
    return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as any };
  }

  async function tokenWith(policy: string): Promise<string> {
    expect((await ask('POST sys/policies/acl/p', real.rootToken, { policy })).status).to.equal(204);
    return (await ask('POST auth/token/create', real.rootToken, { policies: ['p'] })).body.auth.client_token;
  }

  it('makes a root token for a caller with sudo, decoded by sys/decode-token without a token', async () => {
    const token = await tokenWith('path "sys/generate-root-token/*" { capabilities = ["read", "update", "delete", "sudo"] }');
    const begun = await ask(`POST ${attempt}`, token, { unheard: 1 });
    expect(begun.body.warnings).to.deep.equal(['Endpoint ignored these unrecognized parameters: [unheard]']);
    const { otp, nonce } = begun.body.data;
    expect((await ask(`GET ${attempt}`, token)).body.data.nonce).to.equal(nonce);
    expect((await ask(`GET ${openAttempt}`, undefined)).body.nonce).to.equal('');
    const given = { key: real.share, nonce };
    const { encoded_token } = (await ask('POST sys/generate-root-token/update', token, given)).body.data;
    const decoded = await ask('POST sys/decode-token', undefined, { encoded_token, otp });
    expect((await ask('GET auth/token/lookup-self', decoded.body.data.token)).body.data.policies).to.deep.equal(['root']);
    const mistaken = { encoded_token, otp: '\u007f'.repeat(26) };
    for (const wrong of [{ encoded_token, otp: 'short' }, {}, mistaken])
      expect((await ask('POST sys/decode-token', undefined, wrong)).status, JSON.stringify(wrong)).to.equal(400);
  });

  it('needs sudo on its own path, and no denial of the path without a token', async () => {
    const rights = `path "${attempt}" { capabilities = ["read", "update", "delete", "sudo"] }`;
    const policies: Readonly<Record<string, number>> = {
      [rights.replace(', "sudo"', '')]: 403,
      [`${rights} path "${openAttempt}" { capabilities = ["deny"] }`]: 403,
      [rights]: 200,
    };
    expect((await ask(`GET ${attempt}`, undefined)).status).to.equal(403);
    for (const [policy, status] of Object.entries(policies))
      expect((await ask(`GET ${attempt}`, await tokenWith(policy))).status, policy).to.equal(status);
  });

  it('cancels an attempt without its nonce only for a token that is denied neither path', async () => {
    const rights = 'capabilities = ["read", "update", "delete", "sudo"]';
    const denied = await tokenWith(`path "${openAttempt}" { ${rights} } path "${attempt}" { capabilities = ["deny"] }`);
    await ask(`POST ${openAttempt}`, undefined);
    expect((await ask(`DELETE ${openAttempt}`, denied)).status).to.equal(403);
    expect((await ask(`DELETE ${attempt}`, await tokenWith(`path "${attempt}" { ${rights} }`))).status).to.equal(204);
    expect((await ask(`GET ${openAttempt}`, undefined)).body.started).to.equal(false);
  });
});
