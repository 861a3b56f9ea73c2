// A secret in the wrong field: no error text, no warning and no log line repeats it, whatever the field.
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { allRoutes } from '../src/routes.ts';
import { type Answer, type Served, served } from './served.ts';
import { TestMetrics } from './test-metrics.ts';

const mark = `planted${randomBytes(9).toString('hex')}`;
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const heldBy = (text: string): boolean =>
  [mark, base64(mark), base64(`-${mark}`).slice(4, -4), base64(`--${mark}`).slice(4, -4), Buffer.from(mark).toString('hex')].some(
    (shape) => text.includes(shape),
  );

/** Forms in which a secret may be sent. */
const forms: Readonly<Record<string, unknown>> = {
  text: mark,
  base64: base64(mark),
  ciphertext: `svc:v1:${base64(mark)}`,
  'version of a ciphertext': `svc:v${mark}:AAAA`,
  'prefix of a ciphertext': `${mark}:v1:AAAA`,
  'broken base64': `${base64(mark)}*`,
  PEM: `-----BEGIN PRIVATE KEY-----\n${base64(mark)}\n-----END PRIVATE KEY-----\n`,
  JWT: `${base64(`{"alg":"RS256","kid":"${mark}"}`)}.${base64(`{"iss":"${mark}"}`)}.${base64(mark)}`,
  token: `s.${mark}`,
  policy: `path "a" { capabilities = ["${mark}"] } ${mark}`,
  'JSON policy': JSON.stringify({ path: { [mark]: { [mark]: mark } } }),
  list: [mark],
  map: { [mark]: mark },
  'batch item': [{ plaintext: mark, ciphertext: mark, input: mark, context: mark, signature: mark, hmac: mark, algorithm: mark }],
  'kind of a batch item': [{ plaintext: [mark], input: { [mark]: mark } }],
  duration: `${mark}s`,
  number: `-${mark}`,
  address: `10.0.0.0/${mark}`,
};

interface Asked {
  readonly line: string;
  readonly field: string;
  readonly form: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Valid values for all fields of a request except the field under test. */
const otherwise: readonly (readonly [path: RegExp, body: Readonly<Record<string, unknown>>])[] = [
  [/\/(encrypt)\//, { plaintext: 'AAAA' }],
  [/\/(decrypt|rewrap)\//, { ciphertext: 'svc:v1:AAAA' }],
  [/\/(sign|hmac|cmac|hash)\b/, { input: 'AAAA' }],
  [/\/verify\//, { input: 'AAAA', signature: 'svc:v1:AAAA' }],
  [/\/import\b/, { ciphertext: 'AAAA', type: 'aes256-gcm96' }],
  [/sys\/mounts\//, { type: 'transit' }],
  [/sys\/auth\/[^/]+$/, { type: 'userpass' }],
  [/quotas\/rate-limit/, { rate: 1_000_000 }],
  [/managed-keys/, { library: 'hsm', token_label: 't', pin: '1', mechanism: 'CKM_AES_GCM', key_label: 'k' }],
  [/auth\/up\/users/, { password: 'p' }],
  [/auth\/jw\/config/, { bound_issuer: 'i' }],
  [/auth\/ku\/config/, { kubernetes_host: 'api.example', disable_local_ca_jwt: true }],
  [/auth\/ku\/login/, { role: 'r' }],
];
/** Requests that would remove objects that the other requests need. */
const notAsked = /revoke|sys\/(?:init|seal|unseal|step-down|remount|rotate|rekey|generate-root|plugins|storage)|config\/keys/;

/** Values of path parameters. */
const inPath: Readonly<Record<string, string>> = {
  ':mount': 'transit',
  ':type': 'plaintext',
  ':source': 'platform',
  ':urlalgorithm': 'sha2-256',
  ':url_mac_length': '16',
  ':urlbytes': '8',
};
const methodPaths: Readonly<Record<string, string>> = { userpass: 'up', approle: 'ar', jwt: 'jw', kubernetes: 'ku', cert: 'ce' };

/**
 * Yields every POST route with its declared fields, so that no field is forgotten. A path with a key name is yielded once for each of three
 * keys.
 */
function* linesOf(): Generator<{ readonly line: string; readonly fields: readonly string[] }> {
  for (const { path, operations } of allRoutes(new TestMetrics())) {
    const { POST: operation } = operations;
    if (operation === undefined || notAsked.test(path)) continue;
    const described = operation.byType ?? { '': operation };
    for (const [type, { takes = {} }] of Object.entries(described)) {
      const fields = Object.keys(takes);
      const here = path
        .replace(/^auth\/\*method/, `auth/${methodPaths[type]}`)
        .replace(/^sys\/(mounts\/\*path|auth\/\*method)/, tuned(path));
      const names = path.startsWith(':mount/') && path.includes(':name') ? ['k', 'r', 'new'] : ['x'];
      for (const name of names) {
        const at = here.split('/').map((segment) => (/^[:*]/.test(segment) ? (inPath[segment] ?? name) : segment));
        if (fields.length > 0) yield { line: `POST ${at.join('/')}`, fields };
      }
    }
  }
}

/** The path of a mount, for tuning; otherwise an unused path. */
const tuned = (path: string): string => {
  const kind = path.startsWith('sys/auth') ? 'sys/auth' : 'sys/mounts';
  if (!path.endsWith('/tune')) return `${kind}/x`;
  return kind === 'sys/auth' ? 'sys/auth/up' : 'sys/mounts/transit';
};

describe('a secret in the wrong field', () => {
  let server: Served;
  let lines: readonly { readonly line: string; readonly fields: readonly string[] }[];
  const log: string[] = [];

  before(async () => {
    server = await served({ logTo: (line) => void log.push(line) });
    for (const [name, body] of Object.entries({
      k: {},
      d: { derived: true },
      r: { type: 'ecdsa-p256' },
      m: { type: 'aes256-cmac' },
    }))
      await server.ask(`POST transit/keys/${name}`, { body });
    await server.ask('POST sys/auth/up', { body: { type: 'userpass' } });
    await server.ask('POST sys/auth/ar', { body: { type: 'approle' } });
    await server.ask('POST sys/auth/jw', { body: { type: 'jwt' } });
    await server.ask('POST sys/auth/ku', { body: { type: 'kubernetes' } });
    await server.ask('POST auth/ku/role/r', {
      body: { bound_service_account_names: '*', bound_service_account_namespaces: '*' },
    });
    await server.ask('POST sys/auth/ce', { body: { type: 'cert' } });
    lines = [...linesOf()];
  });
  after(() => server.close());

  const ask = ({ line, body }: Asked): Promise<Answer> => server.ask(line, { body });
  const asked = (line: string, field: string, form: string): Asked => {
    const [, good = {}] = otherwise.find(([path]) => path.test(line)) ?? [];
    return { line, field, form, body: { ...good, [field]: forms[form] } };
  };
  /** Returns the error and warning texts of a response. */
  const textsOf = ({ body }: Answer): string => {
    const items: { error?: string }[] = body.data?.batch_results ?? [];
    return JSON.stringify([body.errors ?? [], body.warnings ?? [], items.map(({ error }) => error)]);
  };

  /** Texts that may repeat a name: the name of a policy, of a mount, or of a library in the configuration. */
  const names = /[Pp]olicy \\"[^"]*\\"|nothing is mounted at \\"[^"]*\\"|under the name [^"]*/g;
  const told = async (one: Asked): Promise<string[]> => {
    log.length = 0;
    const answer = await ask(one);
    const texts = textsOf(answer).replace(names, '');
    const where = `${one.line} with a ${one.form} as ${one.field}`;
    return [
      ...(answer.status === 500 ? [`${where}: ${log.join()}`] : []),
      ...(heldBy(texts) ? [`${where} says ${texts}`] : []),
      ...(log.some(heldBy) ? [`${where} logs ${log.join()}`] : []),
    ];
  };

  it('is tested in every kind of operation', () => {
    const known = new Set(lines.map(({ line }) => line));
    for (const line of [
      'transit/encrypt/k',
      'transit/verify/r',
      'transit/keys/new/import',
      'transit/restore',
      'sys/policies/acl/x',
      'sys/mounts/x',
      'sys/wrapping/unwrap',
      'auth/token/create',
      'auth/up/login/x',
      'auth/ar/login',
      'auth/jw/login',
      'auth/ku/login',
    ])
      expect(known, line).to.include(`POST ${line}`);
    for (const field of ['plaintext', 'ciphertext', 'token', 'password', 'secret_id', 'jwt', 'policy', 'pin'])
      expect(
        lines.some(({ fields }) => fields.includes(field)),
        field,
      ).to.equal(true);
  });

  it('is not echoed, whichever field it is', async () => {
    const found: string[] = [];
    for (const { line, fields } of lines)
      for (const field of new Set(fields)) found.push(...(await told(asked(line, field, 'text'))));
    expect(found, found.join('\n')).to.deep.equal([]);
  });

  it('is not echoed, whatever form it has', async () => {
    const request = fc
      .constantFrom(...lines.flatMap(({ line, fields }) => fields.map((field) => ({ line, field }))))
      .chain(({ line, field }) => fc.constantFrom(...Object.keys(forms)).map((form) => asked(line, field, form)));
    await fc.assert(
      fc.asyncProperty(request, async (one) => {
        expect(await told(one)).to.deep.equal([]);
      }),
      { numRuns: 1_500 },
    );
  });
});
