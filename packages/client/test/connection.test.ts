import { expect } from 'chai';
import { type ClientOptions, RefusedError, TransitdClient, UnansweredError } from '../src/index.ts';

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body: string | undefined;
  readonly redirect: string | undefined;
}

type Reaction = () => Response | Promise<Response>;

const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Reaction =>
  () =>
    new Response(body === undefined ? null : JSON.stringify(body), {
      status,
      headers: { 'Content-Type': 'application/json', ...headers },
    });
const ok = (headers?: Record<string, string>): Reaction => json(200, { data: { done: true } }, headers);
const noLeader = json(503, { errors: ['there is no leader'] }, { 'Retry-After': '1' });
const sealed = json(503, { errors: ['transitd is sealed'] });
const unknown = json(504, { errors: ['outcome unknown, the change may still take effect: x'] });
const fails =
  (code: string, syscall?: string): Reaction =>
  () =>
    Promise.reject(new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code, syscall }) }));

/** Returns a client whose `fetch` reacts to its requests in these ways, in order. */
function clientOf(reactions: readonly Reaction[], options: Partial<ClientOptions> = {}) {
  const seen: Seen[] = [];
  const waits: number[] = [];
  const left = [...reactions];
  const client = new TransitdClient({
    addresses: ['http://a'],
    token: 's.secret',
    delay: async (ms) => void waits.push(ms),
    fetch: async (url, { method = '', headers, body, redirect } = {}) => {
      const text = typeof body === 'string' ? body : undefined;
      seen.push({ method, url: String(url), headers: new Headers(headers), body: text, redirect });
      const reaction = left.shift();
      if (reaction === undefined) throw new Error('one request too many');
      return reaction();
    },
    ...options,
  });
  return { client, seen, waits, left };
}

async function refusalOf<E extends Error>(call: Promise<unknown>, kind: new (...args: never[]) => E): Promise<E> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).to.be.instanceOf(kind);
  return error as E;
}

const two = { addresses: ['http://a', 'http://b'] };
const hosts = (seen: readonly Seen[]): string[] => seen.map(({ url }) => new URL(url).host);

describe('a client', () => {
  it('sends its token, its namespace and JSON, and returns the response', async () => {
    const { client, seen } = clientOf([ok()], { namespace: 'root' });
    expect(await client.transit('team/a').encrypt('k', 'aGk=')).to.deep.equal({ data: { done: true } });
    const [{ method, url, headers, body } = { headers: new Headers() }] = seen;
    expect([method, url, body]).to.deep.equal(['POST', 'http://a/v1/team/a/encrypt/k', '{"plaintext":"aGk="}']);
    expect(headers.get('X-Service-Token')).to.equal('s.secret');
    expect(headers.get('X-Service-Namespace')).to.equal('root');
    expect(headers.get('Content-Type')).to.equal('application/json');
  });

  it('sends no token if none is needed', async () => {
    const { client, seen } = clientOf([ok(), ok(), ok()]);
    await client.sys.sealStatus();
    await client.sys.unseal('00');
    await client.auth.userpass({ username: 'u', password: 'p' });
    for (const { url, headers } of seen) expect(headers.has('X-Service-Token'), url).to.equal(false);
  });

  for (const token of ['s.secret2\nrest', 's.secret2\u2013'])
    it(`sends nothing and quotes nothing if the token is ${JSON.stringify(token)}`, async () => {
      const { client, seen } = clientOf([], { token });
      const error = await refusalOf(client.auth.token.look(), UnansweredError);
      expect(error).to.include({ outcome: 'not_done' });
      expect(error.message).not.to.include('secret2');
      expect(seen).to.have.length(0);
    });

  it('lists by a query parameter, and returns undefined for an empty response', async () => {
    const { client, seen } = clientOf([ok(), () => new Response(null, { status: 204 })]);
    await client.sys.policies();
    expect(await client.sys.deletePolicy('p')).to.equal(undefined);
    expect(seen.map(({ method, url }) => `${method} ${url}`)).to.deep.equal([
      'GET http://a/v1/sys/policies/acl?list=true',
      'DELETE http://a/v1/sys/policies/acl/p',
    ]);
  });

  it('accepts every status of a node as a response to health', async () => {
    const { client } = clientOf([json(503, { sealed: true })]);
    expect(await client.sys.health()).to.deep.equal({ sealed: true });
  });

  it('reports a refusal with its status and texts, without an enumerable body', async () => {
    const body = { errors: ['permission denied'], data: { batch_results: [{ plaintext: 'c2VjcmV0' }] } };
    const { client } = clientOf([json(403, body)]);
    const error = await refusalOf(client.request('GET', 'transit/keys/k'), RefusedError);
    expect(error).to.include({ status: 403, outcome: 'not_done', message: 'permission denied' });
    expect(error.body).to.deep.equal(body);
    expect(JSON.stringify(error)).not.to.include('c2VjcmV0');
  });

  for (const [what, type, text] of [
    ['a page of something else', 'text/html', '<p>s.secret2</p>'],
    ['truncated JSON', 'application/json', '{"auth":{"client_token":"s.secret2'],
  ] as const)
    it(`does not accept ${what} as a response, and quotes nothing of it`, async () => {
      const { client } = clientOf([() => new Response(text, { headers: { 'Content-Type': type } })]);
      const error = await refusalOf(client.auth.token.create(), UnansweredError);
      expect(error.message).to.match(/the server at this address is not transitd; the request may have taken effect$/);
      expect(`${error.message}${String(error.cause)}`).not.to.include('secret2');
    });

  it('returns plain text unchanged', async () => {
    const { client } = clientOf([
      () => new Response('metrics 1\n', { headers: { 'Content-Type': 'text/plain; version=0.0.4' } }),
    ]);
    expect(await client.request('GET', 'sys/metrics', undefined, { query: { format: 'prometheus' } })).to.equal('metrics 1\n');
  });

  it('follows no redirect, since that would send the token to another server', async () => {
    const { client, seen } = clientOf([() => new Response(null, { status: 307, headers: { Location: 'http://evil/' } })]);
    expect((await refusalOf(client.request('GET', 'x'), RefusedError)).status).to.equal(307);
    expect(seen.map(({ redirect }) => redirect)).to.deep.equal(['manual']);
  });

  for (const address of ['n1:8200', 'ftp://a', 'http://user:pass@a', 'http://:pass@a', ''])
    it(`refuses ${JSON.stringify(address)} as an address`, () => {
      expect(() => new TransitdClient({ addresses: [address] })).to.throw(TypeError);
    });
});

describe('a client whose request fails', () => {
  it('retries, also a change, if the server says that nothing was done', async () => {
    const { client, waits, left } = clientOf([noLeader, fails('ECONNREFUSED'), ok()]);
    await client.transit().rotateKey('k');
    expect(left).to.have.length(0);
    expect(waits).to.deep.equal([1000, 400]);
  });

  it('gives up after its last round, with the last error', async () => {
    const { client, left } = clientOf([noLeader, noLeader, noLeader], { retries: 2 });
    expect(await refusalOf(client.transit().rotateKey('k'), RefusedError)).to.include({ status: 503, retryAfterS: 1 });
    expect(left).to.have.length(0);
  });

  for (const [what, reaction] of [
    ['an unknown outcome', unknown],
    ['a broken connection', fails('ECONNRESET')],
    ['a network failure under a connection', fails('EHOSTUNREACH', 'read')],
    ['a proxy with Retry-After', () => new Response('busy', { status: 503, headers: { 'Retry-After': '1' } })],
    ['an internal server error', json(500, { errors: ['internal error'] })],
  ] as const) {
    it(`never repeats a change after ${what}`, async () => {
      for (const call of [
        (client: TransitdClient) => client.transit().rotateKey('k'),
        (client: TransitdClient) => client.auth.token.create(),
        (client: TransitdClient) => client.sys.wrapping.unwrap('t'),
        (client: TransitdClient) => client.request('POST', 'transit/keys/k'),
        (client: TransitdClient) => client.request('GET', 'transit/export/hmac-key/k', undefined, { wrapTtl: '5m' }),
      ]) {
        const { client, seen } = clientOf([reaction], two);
        const error = await call(client).then(
          () => undefined,
          (reason: unknown) => reason,
        );
        expect(error).to.include({ outcome: 'unknown' });
        expect(seen).to.have.length(1);
      }
    });

    it(`repeats reads and cryptography after ${what}`, async () => {
      for (const call of [
        (client: TransitdClient) => client.transit().key('k'),
        (client: TransitdClient) => client.transit().encrypt('k', ''),
        (client: TransitdClient) => client.transit().sign('k', ''),
        (client: TransitdClient) => client.auth.token.look({ token: 't' }),
      ]) {
        const { client, seen } = clientOf([reaction, ok()], two);
        await call(client);
        expect(hosts(seen)).to.deep.equal(['a', 'b']);
      }
    });
  }

  it('reports the address and whether the request may have taken effect', async () => {
    const { client } = clientOf([fails('ECONNRESET')]);
    const error = await refusalOf(client.sys.seal(), UnansweredError);
    expect(error.message).to.equal('no answer from http://a: ECONNRESET; the request may have taken effect');
  });

  it('sends a stream only once', async () => {
    const { client, seen } = clientOf([noLeader], two);
    await refusalOf(client.sys.raft.restoreSnapshot(new ReadableStream()), RefusedError);
    expect(seen).to.have.length(1);
  });
});

describe('a client with several addresses', () => {
  it('tries the next address without waiting, and keeps the address that responds', async () => {
    const { client, seen, waits } = clientOf([fails('ECONNREFUSED'), ok(), ok()], two);
    await client.transit().rotateKey('k');
    await client.transit().rotateKey('k');
    expect(hosts(seen)).to.deep.equal(['a', 'b', 'b']);
    expect(waits).to.deep.equal([]);
  });

  it('skips a sealed node, and reports sealed at once if all are', async () => {
    const passing = clientOf([sealed, ok()], two);
    await passing.client.transit().rotateKey('k');
    expect(hosts(passing.seen)).to.deep.equal(['a', 'b']);
    const all = clientOf([sealed, sealed], two);
    expect((await refusalOf(all.client.transit().rotateKey('k'), RefusedError)).errors).to.deep.equal(['transitd is sealed']);
    expect(all.waits).to.deep.equal([]);
  });

  it('reports the refusal of one server rather than the missing response of another', async () => {
    const { client } = clientOf([sealed, fails('ENOTFOUND')], two);
    await refusalOf(client.transit().rotateKey('k'), RefusedError);
  });

  it('sends requests about one node only to the first address', async () => {
    const { client, seen } = clientOf([fails('ECONNREFUSED'), fails('ECONNREFUSED'), fails('ECONNREFUSED')], two);
    await refusalOf(client.sys.unseal('00'), UnansweredError);
    expect(hosts(seen)).to.deep.equal(['a', 'a', 'a']);
  });

  it('sends the newest index it has seen to each node, so it reads its own writes', async () => {
    const index = (text: string) => ({ 'X-Service-Index': text });
    const [first, older, other] = [indexOf('0123abcd', 10), indexOf('0123abcd', 9), indexOf('ffffffff', 1)];
    const { client, seen } = clientOf(
      [ok(index(first)), fails('ECONNREFUSED'), ok(index(older)), ok(), ok(index(other)), ok(), ok()],
      two,
    );
    for (let call = 0; call < 5; call++) await client.transit().rotateKey('k');
    await client.sys.leader();
    expect(seen.map(({ headers }) => headers.get('X-Service-Index'))).to.deep.equal([
      null,
      first,
      first,
      first,
      first,
      other,
      null,
    ]);
  });

  it('forgets the index of a cluster that no longer exists', async () => {
    const gone = json(400, { errors: ['X-Service-Index belongs to another cluster'] });
    const { client, seen } = clientOf([ok({ 'X-Service-Index': indexOf('0123abcd', 7) }), gone, ok()]);
    await client.transit().rotateKey('k');
    await client.transit().rotateKey('k');
    expect(seen.map(({ headers }) => headers.get('X-Service-Index'))).to.deep.equal([null, indexOf('0123abcd', 7), null]);
  });
});

/** The form of `indexValue` in the package http. */
const indexOf = (cluster: string, index: number): string => btoa(`v1:${cluster}:${index}:0:`);
