// @live
// Malformed and malicious requests: each gets its one correct answer, none gets a 500, and the node keeps serving.
import { expect } from 'chai';
import { type LiveEtcd, liveEtcd } from '../../packages/storage-etcd/test/live-etcd.ts';
import { startAudited } from '../process/audited-server.ts';
import { type Answer, type LiveServer, processMs, Workbench } from '../process/live-server.ts';
import { access } from './access.ts';
import { base64Strings } from './base64.ts';
import { bodies } from './bodies.ts';
import type { HostileCase, Made } from './case.ts';
import { headers } from './headers.ts';
import { paths } from './paths.ts';
import { exchange, type RawAnswer } from './raw-request.ts';
import { shapes } from './shapes.ts';

const setUpKeys: Readonly<Record<string, object>> = {
  k: {},
  d: { derived: true },
  c: { derived: true, convergent_encryption: true },
  h: { type: 'hmac' },
  m: { type: 'aes256-cmac' },
  x: { exportable: true, allow_plaintext_backup: true },
};

/** Calls the server with its root token. */
type Call = (method: string, path: string, body?: object) => Promise<Answer>;

async function prepare(call: Call, root: string): Promise<Made> {
  for (const [name, body] of Object.entries(setUpKeys))
    expect((await call('POST', `transit/keys/${name}`, body)).status, name).to.equal(200);
  const ask = async (path: string, body: object, at: string): Promise<string> =>
    (await call('POST', path, body)).string(`data.${at}`);
  const policy = 'path "transit/encrypt/k" { capabilities = ["update"] }';
  expect((await call('PUT', 'sys/policies/acl/limited', { policy })).status).to.equal(204);
  const token = await call('POST', 'auth/token/create', { policies: ['limited'], no_default_policy: true });
  return {
    ciphertext: await ask('transit/encrypt/k', { plaintext: 'AAAA' }, 'ciphertext'),
    derived: await ask('transit/encrypt/d', { plaintext: 'AAAA', context: 'AAAA' }, 'ciphertext'),
    hmac: await ask('transit/hmac/k', { input: 'AAAA' }, 'hmac'),
    cmac: await ask('transit/cmac/m', { input: 'AAAA' }, 'cmac'),
    backup: (await call('GET', 'transit/backup/x')).string('data.backup'),
    root,
    limited: token.string('auth.client_token'),
  };
}

const placeholder = /«(\w+)»/g;

/** Returns the bytes of a case's request. */
function bytesOf({ method, target, body, headers: more = [], token = 'root', raw }: HostileCase, made: Made): Buffer {
  const fill = (text: string): string => text.replace(placeholder, (_, name: keyof Made) => made[name]);
  if (raw !== undefined) return typeof raw === 'string' ? Buffer.from(fill(raw), 'latin1') : raw;
  const given = body ?? (method === 'POST' ? { input: 'AAAA' } : undefined);
  const content =
    given === undefined || Buffer.isBuffer(given)
      ? given
      : Buffer.from(fill(typeof given === 'string' ? given : JSON.stringify(given)));
  const lines = [`${method} ${fill(target)} HTTP/1.1`, 'Host: a', 'Connection: close'];
  if (token !== 'none') lines.push(`X-Service-Token: ${made[token]}`);
  for (const [name, value] of more) lines.push(`${name}: ${fill(value)}`);
  if (content !== undefined && !more.some(([name]) => name === 'Transfer-Encoding'))
    lines.push(`Content-Length: ${content.length}`);
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  return content === undefined ? head : Buffer.concat([head, content]);
}

/** Returns the difference from the expected answers, or undefined. */
function complaint({ method, status, followedBy = [], says }: HostileCase, answers: readonly RawAnswer[]): string | undefined {
  const [first] = answers;
  const got = answers.map((answer) => answer.status).join(', ') || 'closed';
  const wanted = [...(status === 'closed' ? [] : [status]), ...followedBy].join(', ') || 'closed';
  if (got !== wanted) return `${wanted} expected, got ${got} ${first?.body.slice(0, 200) ?? ''}`;
  if (first === undefined || first.status < 200) return undefined;
  if (says !== undefined && !says.test(first.body)) return `${says} expected in ${first.body.slice(0, 300)}`;
  return method === 'HEAD' ? undefined : formComplaint(first);
}

/** Every response has one of three forms, and no response contains a caller's token. */
function formComplaint({ status, headers: sent, body }: RawAnswer): string | undefined {
  if (sent.get('cache-control') !== 'no-store') return 'an answer that may be stored';
  if (body === '') return status === 204 ? undefined : `${status} without a body`;
  if (sent.get('content-type') !== 'application/json') return `the content type ${sent.get('content-type')}`;
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return `no JSON: ${body.slice(0, 100)}`;
  }
  if (typeof parsed !== 'object' || parsed === null) return `no object: ${body.slice(0, 100)}`;
  if (status < 400) return 'errors' in parsed ? 'errors in a success' : undefined;
  if ('data' in parsed && 'request_id' in parsed) return undefined; // a batch reports each item
  const { errors, warnings = [], ...others } = parsed as { errors?: unknown; warnings?: unknown };
  const areTexts = (list: unknown): boolean => Array.isArray(list) && list.every((text) => typeof text === 'string');
  return areTexts(errors) && areTexts(warnings) && Object.keys(others).length === 0
    ? undefined
    : `no refusal: ${body.slice(0, 100)}`;
}

const title = ({ method, target, body, because }: HostileCase): string => {
  const shown = Buffer.isBuffer(body) ? `${body.length} bytes` : typeof body === 'string' ? body : JSON.stringify(body);
  return `${method} ${target.slice(0, 80)} ${shown?.slice(0, 120) ?? ''} (${because})`;
};

for (const storage of ['raft', 'etcd'] as const)
  describe(`hostile input, with the records in ${storage}`, () => {
    const bench = new Workbench();
    let etcd: LiveEtcd | undefined;
    let server: LiveServer;
    let made: Made;
    const call: Call = (method, path, body) => server.call(method, path, body, made.root);

    before(async function () {
      this.timeout(processMs);
      if (storage === 'etcd') etcd = await liveEtcd();
      const audited = await startAudited(bench, { etcd, sinks: [], settings: { workers: 0 } });
      server = audited.server;
      made = await prepare((method, path, body) => server.call(method, path, body, audited.rootToken), audited.rootToken);
    });
    after(async () => {
      await bench.clean();
      await etcd?.stop();
    });

    const tables: Readonly<Record<string, readonly HostileCase[]>> = {
      paths,
      bodies,
      'base64 strings': base64Strings,
      shapes,
      headers,
      access,
    };

    for (const [name, cases] of Object.entries(tables)) {
      it(`gets the expected answer: ${cases.length} ${name}`, async function () {
        this.timeout(processMs);
        const url = new URL(server.url);
        const wrong: string[] = [];
        for (const one of cases) {
          const problem = await exchange(url, bytesOf(one, made), { head: one.method === 'HEAD', ends: one.ends }).then(
            (answers) => complaint(one, answers),
            (error: unknown) => String(error),
          );
          if (problem !== undefined) wrong.push(`${title(one)}: ${problem}`);
        }
        expect(wrong, `${wrong.length} of ${cases.length}:\n${wrong.join('\n')}`).to.have.length(0);
      });
    }

    it('creates no keys except those of valid requests', async () => {
      const expected = [
        ...Object.keys(setUpKeys),
        ...Object.values(tables).flatMap((cases) => cases.flatMap(({ makes = [] }) => makes)),
      ];
      expect((await call('LIST', 'transit/keys')).at('data.keys')).to.deep.equal(expected.toSorted());
    });

    it('leaves the node serving, without an error or a token in its log', async () => {
      const decrypted = await call('POST', 'transit/decrypt/k', { ciphertext: made.ciphertext });
      expect([decrypted.status, decrypted.at('data.plaintext')]).to.deep.equal([200, 'AAAA']);
      expect((await call('GET', 'sys/health')).status).to.equal(200);
      expect(server.child.exitCode).to.equal(null);
      expect(server.stderr).to.not.match(/internal error|"level":"(?:error|fatal)"/);
      for (const secret of [made.root, made.limited]) expect(server.stderr.includes(secret)).to.equal(false);
    });
  });
