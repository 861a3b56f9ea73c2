import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonSchema, Verb } from '@transitd/http';
import { expect } from 'chai';
import { authMethods } from '../../src/auth/auth-methods.ts';
import { openApi, type Place } from '../../src/openapi/openapi.ts';
import type { Operation, OperationDescription, Route } from '../../src/operation/operation.ts';
import { allRoutes } from '../../src/routes.ts';
import { itemFields } from '../../src/transit/data-fields.ts';
import { type Served, served } from '../served.ts';
import { TestMetrics } from '../test-metrics.ts';

const routes = allRoutes(new TestMetrics());
const mounts: readonly Place[] = [
  { path: 'transit', type: 'transit' },
  { path: 'team/keys', type: 'transit' },
];
const logins: readonly Place[] = authMethods.map(({ type }) => ({ path: `${type}-here`, type }));

interface Shown {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly description: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: { readonly properties?: object } }>> };
  readonly responses: object;
  readonly security: readonly object[];
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Shown>>>>;
  readonly components: object;
}

const text = await openApi({ routes, version: '0', mounts, methods: logins, shows: () => true }, () => undefined);
const document = JSON.parse(text) as Document;
const shown = (path: string, method: string): Shown | undefined => document.paths[path]?.[method];
const methods = { GET: 'get', LIST: 'get', POST: 'post', DELETE: 'delete' } as const;

/** Yields every operation of the router at its paths with these mounts and methods. It computes the paths independently of the document. */
function* placed(): Generator<{ path: string; verb: Verb; operation: Operation; described: OperationDescription }> {
  for (const { path, operations } of routes as readonly Route[]) {
    for (const [verb, operation] of Object.entries(operations) as [Verb, Operation][]) {
      const places = path.startsWith(':mount/') ? mounts : path.startsWith('auth/*method/') ? logins : [{ path: '', type: '' }];
      for (const place of places) {
        const described = operation.byType === undefined ? operation : operation.byType[place.type];
        if (described === undefined) continue;
        const at = path.replace(/^:mount/, place.path).replace(/^auth\/\*method/, `auth/${place.path}`);
        const segments = at.split('/').map((segment) => (/^[:*]/.test(segment) ? `{${segment.slice(1)}}` : segment));
        yield { path: `/${segments.join('/')}`, verb, operation, described: described as OperationDescription };
      }
    }
  }
}

describe('the OpenAPI document', () => {
  it('has every route of the router, and nothing else except health', () => {
    const wanted = [...placed()].map(({ path, verb }) => `${methods[verb]} ${path}`);
    const there = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method} ${path}`),
    );
    expect(there.toSorted()).to.deep.equal([...new Set([...wanted, 'get /sys/health', 'head /sys/health'])].toSorted());
    expect(there).to.include('post /team/keys/encrypt/{name}');
    expect(there).to.include('post /auth/userpass-here/login/{name}');
    expect(there).not.to.include('post /auth/jwt-here/login/{name}');
  });

  it('has every declared field, with a description', () => {
    const missing: string[] = [];
    for (const { path, verb, described } of placed()) {
      const operation = shown(path, methods[verb]);
      const inBody = Object.values(operation?.requestBody?.content ?? {}).flatMap(({ schema }) =>
        Object.keys(schema.properties ?? {}),
      );
      const names = [...(operation?.parameters.map(({ name }) => name) ?? []), ...inBody];
      for (const name of Object.keys(described.takes ?? {})) if (!names.includes(name)) missing.push(`${verb} ${path} ${name}`);
      for (const { about } of Object.values(described.takes ?? {})) expect(about).not.to.equal('');
    }
    expect(missing).to.deep.equal([]);
  });

  it('has every parameter of a path, and a query for every list', () => {
    for (const [path, item] of Object.entries(document.paths)) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      for (const { parameters } of Object.values(item))
        expect(parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name)).to.deep.equal(inPath);
    }
    for (const { path, verb } of placed())
      if (verb === 'LIST')
        expect(
          shown(path, 'get')?.parameters.map(({ name }) => name),
          path,
        ).to.include('list');
  });

  it('gives every operation a unique id, and resolves every reference', () => {
    const ids = Object.values(document.paths).flatMap((item) => Object.values(item).map(({ operationId }) => operationId));
    expect(new Set(ids).size).to.equal(ids.length);
    for (const [, reference = ''] of JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      let place: unknown = document;
      for (const step of reference.split('/')) place = Reflect.get(place as object, step);
      expect(place, reference).to.be.an('object');
    }
  });

  it('shows the responses of every operation, and whether it needs a token', () => {
    for (const { path, verb, operation } of placed()) {
      const { responses, security } = shown(path, methods[verb]) as Shown;
      const answers = Object.keys(responses).filter((status) => status.startsWith('2'));
      const isRefused = path === '/sys/audit/{device}'; // enabling and disabling a device are always refused
      expect(answers.length > 0, `${verb} ${path}`).to.equal(!isRefused);
      expect(security.length === 0, `${verb} ${path}`).to.equal(operation.access === 'open');
    }
  });

  it('declares every field that is read: few files read bodies directly, all others read declared fields', () => {
    const folder = join(import.meta.dirname, '../../src');
    const readers = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => {
      if (!name.endsWith('.ts') || name.startsWith('pipeline/')) return false;
      const text = readFileSync(join(folder, name), 'utf8');
      return /\bfields\(/.test(text) || /[{,] body[,} ]/.test(text) || /\.body\b/.test(text);
    });
    expect(readers.toSorted()).to.deep.equal([
      'openapi/openapi.ts', // the body schema of an operation that reads its body itself
      'operation/operation.ts', // readFields(): where fields are read
      'operation/rights.ts', // values that policies restrict
      'sys/auth.ts', // the fields of `config`
      'sys/mounts.ts', // the same
      'sys/raft-join.ts', // messages of a join, read by schemas of their own
      'sys/tools.ts', // the meaning of a path segment depends on its value
      'sys/wrapping.ts', // returns the body that was sent
      'transit/transit-operation.ts', // the same for the data plane
    ]);
  });
});

describe('sys/internal/specs/openapi', () => {
  let node: Served;
  before(async () => {
    node = await served();
    await node.ask('POST sys/auth/people', { body: { type: 'userpass' } });
    await node.ask('POST transit/keys/k');
  });
  after(() => node.close());
  const pathsFor = async (token?: string | null, query = ''): Promise<readonly string[]> => {
    const { status, body } = await node.ask(`GET sys/internal/specs/openapi${query}`, token === undefined ? {} : { token });
    expect(status).to.equal(200);
    expect(body.openapi).to.equal('3.1.1');
    return Object.keys(body.paths);
  };

  it('shows mounts at their paths', async () => {
    const paths = await pathsFor();
    expect(paths).to.include.members(['/transit/keys/{name}', '/auth/people/login/{name}', '/sys/health', '/auth/token/create']);
    expect(paths.filter((path) => /^\/auth\/(?!token|people)/.test(path))).to.deep.equal([]);
  });

  it('shows path parameters instead of mounts on request', async () => {
    const paths = await pathsFor(undefined, '?generic_mount_paths=true');
    expect(paths).to.include.members(['/{transit_mount_path}/keys/{name}', '/auth/{userpass_mount_path}/login/{name}']);
    expect(paths).not.to.include('/transit/keys/{name}');
  });

  it('shows no path without a token or with an invalid token', async () => {
    expect(await pathsFor(null)).to.deep.equal([]);
    expect(await pathsFor('s.unknown')).to.deep.equal([]);
  });

  it('shows a token the mounts on which it has any capability', async () => {
    await node.ask('POST sys/policies/acl/enc', { body: { policy: 'path "transit/encrypt/k" { capabilities = ["update"] }' } });
    const made = await node.ask('POST auth/token/create', { body: { policies: ['enc'], no_default_policy: true } });
    const paths = await pathsFor(made.body.auth.client_token);
    expect(paths).to.include('/transit/encrypt/{name}');
    expect(paths.filter((path) => !path.startsWith('/transit/'))).to.deep.equal([]);
  });

  for (const [path, at] of Object.entries({
    '/transit/keys/{name}': 'transit/keys/k',
    '/transit/config/keys': 'transit/config/keys',
    '/transit/cache-config': 'transit/cache-config',
    '/auth/userpass-here/users/{name}': 'auth/people/users/k',
    '/auth/token/lookup-self': 'auth/token/lookup-self',
    '/auth/token/roles/{name}': 'auth/token/roles/k',
    '/sys/auth/{method}': 'sys/auth/people',
    '/sys/auth/{method}/tune': 'sys/auth/people/tune',
    '/sys/policies/acl/{name}': 'sys/policies/acl/default',
    '/sys/quotas/config': 'sys/quotas/config',
    '/sys/quotas/rate-limit/{name}': 'sys/quotas/rate-limit/k',
  }))
    it(`describes exactly the members in the response to ${path}`, async () => {
      await node.ask('POST auth/people/users/k', { body: { password: 'password' } });
      await node.ask('POST auth/token/roles/k');
      await node.ask('POST sys/quotas/rate-limit/k', { body: { path: 'transit/', rate: 1000 } });
      const { body } = await node.ask(`GET ${at}`);
      const responses = shown(path, 'get')?.responses as { 200: { content: { 'application/json': { schema: JsonSchema } } } };
      const data = responses[200].content['application/json'].schema.properties?.['data'];
      expect(Object.keys(data?.properties ?? {})).to.include.members(Object.keys(body.data));
      expect(Object.keys(body.data)).to.include.members(data?.required ?? []);
    });

  it('marks a field as required only if the operation refuses without it', async () => {
    const accepted: string[] = [];
    for (const { path, verb, described } of placed()) {
      const required = Object.entries(described.takes ?? {}).filter(
        ([name, field]) => field.required && !path.includes(`{${name}}`),
      );
      if (required.length === 0 || /^\/sys\/(rotate\/r|rekey-)/.test(path) || path.startsWith('/sys/storage')) continue;
      const here = path
        .replace('/team/keys/', '/transit/')
        .replace('userpass-here', 'people')
        .replaceAll(/\{\w+\}/g, 'k');
      const { status } = await node.ask(`${verb} ${here.slice(1)}`, verb === 'POST' ? { body: {} } : {});
      if (status < 400) accepted.push(`${verb} ${path}`);
    }
    expect(accepted).to.deep.equal([]);
  });

  for (const [word, members] of Object.entries({
    encrypt: [
      ...(['plaintext', 'context', 'associated_data', 'padding_scheme', 'hash_algorithm'] as const),
      ...(['key_version', 'nonce', 'reference'] as const),
    ],
    decrypt: ['ciphertext', 'context', 'associated_data', 'padding_scheme', 'hash_algorithm', 'nonce', 'reference'],
    rewrap: [
      ...(['ciphertext', 'context', 'associated_data', 'key_version', 'nonce', 'decrypt_padding_scheme'] as const),
      ...(['encrypt_padding_scheme', 'decrypt_hash_algorithm', 'encrypt_hash_algorithm', 'reference'] as const),
    ],
    hmac: ['input', 'reference'],
    cmac: ['input', 'mac_length', 'reference'],
    sign: ['input', 'context', 'reference'],
    verify: ['input', 'context', 'signature', 'hmac', 'cmac', 'mac_length', 'reference'],
  } satisfies Record<string, (keyof typeof itemFields)[]>)) {
    it(`describes exactly the members that are read of an item for ${word}`, async () => {
      const batch = shown(`/transit/${word}/{name}`, 'post')?.requestBody?.content['application/json']?.schema.properties;
      expect(Object.keys(Reflect.get(batch ?? {}, 'batch_input').items.properties)).to.have.members(members);
      for (const name of Object.keys(itemFields)) {
        const item = { plaintext: '', ciphertext: 'x', input: '', signature: 'x', [name]: {} };
        const { body } = await node.ask(`POST transit/${word}/k`, { body: { batch_input: [item] } });
        const isRead = JSON.stringify(body).includes(`'[0].${name}'`);
        expect(isRead, name).to.equal((members as readonly string[]).includes(name));
      }
    });
  }
});
