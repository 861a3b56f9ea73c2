import { generateKeyPairSync } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { codePoint } from '../../../test/code-points.ts';
import type { Operation } from '../src/operation/operation.ts';
import { allRoutes } from '../src/routes.ts';
import { type RealNode, realNode } from './real-node.ts';
import { TestMetrics } from './test-metrics.ts';

/** A time limit longer than any response may take here, so that the test fails with the text of a request that hangs. */
const answerMs = 20_000;
/** Left out: each of these operations ends the node or the token that all others need. */
const ending = ['sys/seal', 'sys/step-down', 'auth/token/revoke-self'];

const names = [
  '',
  'x',
  '.',
  '..',
  'Admin',
  'ünï-çødé',
  '名前',
  '\u{1f511}',
  'a b',
  '%',
  'a/b',
  '__proto__',
  'constructor',
  '\u0000',
  '-1',
  '"',
  'a'.repeat(300),
];
const plain: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -0,
  -1,
  1,
  0.5,
  2 ** 31,
  2 ** 53,
  -(2 ** 63),
  1e30,
  1e308,
  [],
  [null],
  [[]],
  [''],
  [{}],
  {},
  { '': '' },
  { a: null },
  { a: { b: [1] } },
];
const times = [
  '-1s',
  '-1h',
  '0',
  '0s',
  '1h',
  '99999999h',
  '1e9',
  '1.5h',
  'system',
  'h',
  '9223372036854775807',
  '2001-01-01T00:00:00Z',
];
const odd = fc.oneof(
  fc.constantFrom(...plain),
  fc.constantFrom<unknown>(...names, ...times),
  fc.string({ maxLength: 20, unit: codePoint }),
  fc.jsonValue({ maxDepth: 3 }),
);

/** Returns the name of an existing object for a path parameter. */
const known = (path: string, param: string): string =>
  path.startsWith('sys/mounts') ? 'transit' : path.startsWith('sys/pol') ? 'p' : (knownByParam[param] ?? 'amy');
const knownByParam: Readonly<Record<string, string>> = {
  urlalgorithm: 'sha2-256',
  urlbytes: '16',
  source: 'platform',
  device: 'file',
  path: 'transit',
};

/** Values that pass the first checks, by field. */
type Fitting = Readonly<Record<string, readonly unknown[]>>;

/** Choice of a field's value: a valid value if `fits` is true and there is one; otherwise the odd value. */
interface Choice {
  readonly fits: boolean;
  readonly at: number;
  readonly odd: unknown;
}

interface Target {
  readonly verb: string;
  readonly path: string;
  readonly fields: readonly string[];
}

const rarely = <Value>(arbitrary: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> =>
  fc.oneof({ weight: 8, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

const fieldsOf = ({ takes, byType, body }: Operation): string[] => [
  ...Object.keys(takes ?? {}),
  ...Object.values(byType ?? {}).flatMap((each) => Object.keys(each.takes ?? {})),
  ...(body === undefined ? [] : ['a', 'b']),
];
const targets: readonly Target[] = allRoutes(new TestMetrics())
  .filter(({ path }) => !path.startsWith(':mount') && !ending.includes(path))
  .flatMap(({ path, operations }) =>
    Object.entries(operations).map(([verb, operation]) => ({ verb, path, fields: fieldsOf(operation) })),
  );

describe('every request below sys and auth gets a response, and none an internal error', () => {
  let real: RealNode;
  let fitting: Fitting = {};

  const send = async (verb: string, path: string, body?: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${real.url}/${path}`, {
      method: verb,
      headers: { 'X-Service-Token': real.rootToken, ...headers },
      ...(body !== undefined && { body }),
      signal: AbortSignal.timeout(answerMs),
    });
    return { status: response.status, text: await textOfResponse(response) };
  };
  /** Returns the body; of a stream, which has no end, only what came first. */
  const textOfResponse = async (response: Response): Promise<string> => {
    if (response.headers.get('Content-Type') !== 'application/x-ndjson') return response.text();
    for await (const first of response.body ?? []) return Buffer.from(first).toString(); // the loop's end cancels the stream
    return '';
  };
  const write = (path: string, body: object, headers?: Record<string, string>) =>
    send('POST', path, JSON.stringify(body), headers);
  const stringIn = (text: string, member: string): string => new RegExp(`"${member}":"([^"]+)"`).exec(text)?.[1] ?? 'none';

  before(async () => {
    real = await realNode();
  });
  after(() => real?.close());

  /** Whether an operation may have changed what the others need. */
  let isChanged = true;

  /** Restores the same methods, users, roles and tokens before each operation, whatever the previous operation deleted. */
  beforeEach(async () => {
    if (!isChanged) return;
    isChanged = false;
    await clearQuotas();
    for (const type of ['userpass', 'approle', 'jwt', 'kubernetes', 'cert']) await write(`sys/auth/${type}`, { type });
    await write('sys/mounts/transit', { type: 'transit' });
    await write('sys/policies/acl/p', { policy: 'path "a" { capabilities = ["read"] }' });
    if ((await send('GET', 'auth/userpass/users/amy')).status !== 200) await write('auth/userpass/users/amy', { password: 'p' });
    await write('auth/approle/role/amy', { policies: ['p'] });
    const pem = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'pem' });
    await write('auth/jwt/config', { jwt_validation_pubkeys: [pem] });
    await write('auth/jwt/role/amy', { role_type: 'jwt', user_claim: 'sub', bound_audiences: ['a'] });
    await write('auth/kubernetes/config', { kubernetes_host: 'api.example', disable_local_ca_jwt: true });
    await write('auth/kubernetes/role/amy', { bound_service_account_names: '*', bound_service_account_namespaces: '*' });
    await write('auth/token/roles/amy', { allowed_policies: ['p'] });
    const secret = await write('auth/approle/role/amy/secret-id', {});
    const made = (await write('auth/token/create', { policies: ['p'] })).text;
    const wrapped = await write('sys/wrapping/wrap', { a: 1 }, { 'X-Service-Wrap-TTL': '60' });
    const token = [stringIn(made, 'client_token'), stringIn(wrapped.text, 'token')];
    const challenge = await write('sys/storage/raft/bootstrap/challenge', { server_id: 'n2' });
    const share = Buffer.alloc(33, 1).toString('base64');
    fitting = {
      token,
      accessor: [stringIn(made, 'accessor')],
      accessors: [[stringIn(made, 'accessor')]],
      role_id: [stringIn((await send('GET', 'auth/approle/role/amy/role-id')).text, 'role_id')],
      secret_id: [stringIn(secret.text, 'secret_id')],
      secret_id_accessor: [stringIn(secret.text, 'secret_id_accessor')],
      jwt: ['e30.e30.e30', 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.AAAA'],
      jwt_validation_pubkeys: [pem, [pem]],
      pem_keys: [pem, [pem]],
      kubernetes_host: ['api.example', 'http://127.0.0.1', 'ftp://x'],
      nonce: [stringIn(challenge.text, 'nonce')],
      policy: [
        'path "a" { capabilities = ["read"] }',
        'path "{{identity.entity.id}}" {}',
        'path',
        Buffer.from('path').toString('base64'),
      ],
      policies: ['p', 'root', ['root', 'p'], ['', ' ']],
      type: ['transit', 'userpass', 'approle', 'jwt', 'kubernetes', 'batch', 'service', 'rate-limit', 'pkcs11'],
      path: ['transit', 'transit/', 'sys/', 'auth/userpass/users/Admin', '*'],
      paths: [['transit/keys/a', ''], 'a,b'],
      from: ['transit', 'auth/jwt', 'none'],
      to: ['moved', 'auth/moved', 'sys/x'],
      server_id: ['n1', 'n2'],
      password: ['p', ''],
      role: ['amy', ''],
      rate: [1, '1.5'],
      key: [share],
      key_shares: [1, 5, 256],
      secret_shares: [1, 5, 256],
      secret_threshold: [1, 3, 256],
      pgp_keys: [['x']],
      input: ['AAAA'],
      algorithm: ['sha2-256', 'sha3-512', 'md5'],
      format: ['hex', 'base64'],
      bytes: [1, 2 ** 31, '16'],
      source: ['platform', 'seal', 'all'],
      token_bound_cidrs: ['10.0.0.0/8', ['::/0'], ['300.1.1.1/99']],
      config: [{ default_lease_ttl: '1h' }, { max_lease_ttl: -1 }, { listing_visibility: 'x' }],
      options: [{ version: '2' }],
      leader_api_addr: ['http://127.0.0.1:1', 'x', 'https://[::1'],
      ttl: times,
    };
  });

  async function clearQuotas(): Promise<void> {
    const quotas = real.node.services?.quotas;
    for (const name of (await quotas?.list()) ?? []) await quotas?.delete(name);
  }

  const inPath = fc.oneof(
    { weight: 5, arbitrary: fc.constant(undefined) },
    { weight: 2, arbitrary: fc.constantFrom(...names) },
    { weight: 1, arbitrary: fc.string({ maxLength: 8, unit: codePoint }) },
  );
  const pick = fc.record({ fits: fc.boolean(), at: fc.nat(9), odd });
  const requests = (fields: readonly string[]) =>
    fc.record({
      method: fc.constantFrom('userpass', 'approle', 'approle', 'jwt', 'jwt', 'kubernetes', 'cert', 'none', 'ü'),
      params: fc.array(inPath, { minLength: 3, maxLength: 3 }),
      sent:
        fields.length === 0
          ? fc.constant<Readonly<Record<string, Choice>>>({})
          : fc.dictionary(fc.constantFrom(...fields), pick, { maxKeys: 4 }),
      complete: fc.boolean(),
      whole: rarely(
        fc.oneof(
          odd.map((value) => JSON.stringify(value)),
          fc.constantFrom('{', '[[[[', '{"a":1,"a":2}', '\ufeff{}'),
        ),
      ),
      wrapTtl: rarely(fc.constantFrom('60', '-1', '0', 'x', '1e9', '99999999999h', '')),
    });

  const chosen = (field: string, { fits, at, odd: other }: Choice): unknown => {
    const values = fitting[field];
    return fits && values !== undefined ? values[at % values.length] : other;
  };

  const fittingOf = (fields: readonly string[]): object =>
    Object.fromEntries(fields.flatMap((field) => (fitting[field] === undefined ? [] : [[field, fitting[field]?.[0]]])));
  /** Ends replication: a demoted cluster serves no clients, and only a primary can be disabled. */
  const leaveReplication = async (): Promise<void> => {
    await send('POST', 'sys/replication/dr/secondary/promote', '{"force":true}', {});
    await send('POST', 'sys/replication/dr/primary/disable', '{}', {});
  };
  const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

  for (const { verb, path, fields } of targets) {
    it(`${verb} ${path}`, async () => {
      const reads = verb === 'GET' || verb === 'LIST';
      isChanged = !reads;
      await fc.assert(
        fc.asyncProperty(requests(fields), async ({ method, params, sent, complete, whole, wrapTtl }) => {
          let next = 0;
          const filled = path.replace(/[:*](\w+)/g, (_, param: string) =>
            encodeURIComponent(param === 'method' ? method : (params[next++] ?? known(path, param))),
          );
          const members = {
            ...(complete && fittingOf(fields)),
            ...Object.fromEntries(Object.entries(sent).map(([field, each]) => [field, chosen(field, each)])),
          };
          const headers = wrapTtl === undefined ? {} : { 'X-Service-Wrap-TTL': wrapTtl };
          const query = new URLSearchParams(
            Object.entries(members).map(([field, each]): [string, string] => [field, textOf(each)]),
          );
          const target = reads ? `${filled}?${verb === 'LIST' ? 'list=true&' : ''}${query}` : filled;
          const body = whole ?? JSON.stringify(members);
          const answer = await (reads ? send('GET', target, undefined, headers) : send(verb, target, body, headers));
          if (path.startsWith('sys/quotas')) await clearQuotas();
          if (path.startsWith('sys/replication/dr') && answer.status < 300) await leaveReplication();
          const shown = `${verb} ${target} ${body} ${JSON.stringify(headers)}: ${answer.status} ${answer.text.slice(0, 300)}`;
          expect(answer.status, shown).to.be.below(500);
        }),
        { numRuns: 30 },
      );
      expect((await send('GET', 'auth/token/lookup-self')).status, 'the node serves on').to.equal(200);
    });
  }
});
