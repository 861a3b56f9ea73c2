import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { DeclaredAnswers } from '../declared-answers.ts';
import { type RealNode, realNode } from '../real-node.ts';

interface ClientRequest {
  readonly line: string;
  readonly status: number;
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
  /** Sent with a token of its own instead of the root token. */
  readonly asToken: boolean;
  readonly isWrapped: boolean;
}

const shape = /^(\d{3}) {2}([A-Z]+) (\S+)(?: (\{.*\}))?( as \$token)?( with wrapping)? \| [a-z, -]+$/;

function parse(line: string): ClientRequest {
  const [, status, method = '', path = '', body, asToken, isWrapped] = shape.exec(line) ?? expect.fail(`not a request: ${line}`);
  return { line, status: Number(status), method, path, body, asToken: asToken !== undefined, isWrapped: isWrapped !== undefined };
}

const requests = readFileSync(new URL('requests.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map(parse);

describe('the requests of clients of Vault and OpenBao', () => {
  let real: RealNode;
  let declared: DeclaredAnswers;
  /** Members of `data`, or of the whole answer, that later requests name. */
  const latest: Record<string, string> = {
    base64: Buffer.from('card 4711').toString('base64'),
    pem: generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };

  before(async () => {
    real = await realNode();
    declared = new DeclaredAnswers(real.routes);
    latest['share'] = real.share;
  });
  after(() => real.close());

  async function send(method: string, path: string, body?: string, headers: Record<string, string> = {}) {
    const response = await fetch(`${real.url}/${path}`, {
      method,
      headers: { 'X-Vault-Token': real.rootToken, ...headers },
      ...(body !== undefined && { body }),
    });
    const text = await response.text();
    declared.check(method, path, { status: response.status, text }, real.node.services?.mounts);
    // biome-ignore lint/suspicious/noExplicitAny: answers of any shape
    const answer: any = text === '' ? {} : JSON.parse(text);
    return { status: response.status, text, answer };
  }

  const makers: Readonly<Record<string, () => Promise<string>>> = {
    token: async () => (await send('POST', 'auth/token/create', '{"ttl":"10m","policies":["default"]}')).answer.auth.client_token,
    accessor: async () => (await send('POST', 'auth/token/create', '{"ttl":"10m"}')).answer.auth.accessor,
    wrapped: async () =>
      (await send('POST', 'sys/wrapping/wrap', '{"a":"b"}', { 'X-Vault-Wrap-TTL': '60s' })).answer.wrap_info.token,
    secret_id: async () => (await send('POST', 'auth/approle/role/web/secret-id', '{}')).answer.data.secret_id,
    secret_id_accessor: async () => (await send('POST', 'auth/approle/role/web/secret-id', '{}')).answer.data.secret_id_accessor,
  };

  async function valueFor(name: string): Promise<string> {
    return (await makers[name]?.()) ?? latest[name] ?? expect.fail(`nothing makes $${name}`);
  }

  async function filled(text: string): Promise<string> {
    let all = text;
    for (const [whole, name = ''] of text.matchAll(/\$(\w+)/g))
      all = all.replace(whole, JSON.stringify(await valueFor(name)).slice(1, -1));
    return all;
  }

  for (const { line, status, method, path, body, asToken, isWrapped } of requests)
    it(line, async () => {
      const given = body === undefined ? undefined : await filled(body);
      const headers = {
        ...(asToken && { 'X-Vault-Token': await valueFor('token') }),
        ...(isWrapped && { 'X-Vault-Wrap-TTL': '60s' }),
      };
      const { status: answered, text, answer } = await send(method, path, given, headers);
      expect(answered, text).to.equal(status);
      for (const [name, value] of Object.entries(answer.data ?? answer))
        if (typeof value === 'string' && value !== '') latest[name] = value;
      if (path === 'transit/hmac/a') latest['hmac'] = answer.data.hmac;
    });
});
