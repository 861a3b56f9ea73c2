// @live
// schemathesis generates requests from the OpenAPI document and checks the responses of a live node. It accepts no 500, and only the
// statuses, content types and bodies that the document describes.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { clusterKeyPem, StubApiServer, serveReviews, tokenOf } from '../../packages/api/test/auth/stub-api-server.ts';
import { makeCertificate } from '../../packages/process/test/certificate.ts';
import { freePort } from '../cluster/harness/free-port.ts';
import { startAudited } from '../process/audited-server.ts';
import { type LiveServer, Workbench } from '../process/live-server.ts';
import { pythonWith } from './python.ts';
import { run } from './run.ts';

const versions = ['schemathesis==4.32.5', 'openapi-spec-validator==0.9.0'];
/** The same seed generates the same requests. Use another seed and more requests for a longer run. */
const seed = Number(process.env['SCHEMATHESIS_SEED'] ?? 1);
const examplesMax = Number(process.env['SCHEMATHESIS_EXAMPLES'] ?? 4);

/** Operations that would end the run or change the node under test. */
const leftOut: Readonly<Record<string, string>> = {
  'GET /sys/monitor': 'the response has no end',
  'GET /sys/nodes': 'the response has no end with follow=true',
  'POST /sys/seal': 'the node is sealed',
  'POST /sys/step-down': 'no node is active for a moment',
  'POST /sys/storage/raft/remove-peer': 'the node may be removed',
  'POST /sys/remount': 'the keys are at another path',
  'DELETE /sys/mounts/{path}': 'the keys are gone',
  'DELETE /sys/auth/{method}': 'the users and roles are gone',
  'POST /sys/quotas/rate-limit/{name}': 'every later request gets 429',
  'POST /auth/token/revoke-self': 'every later request gets 403',
};

// Two checks are off: the node converts types, so it accepts more than the schemas say; and whether it refuses depends on the names that
// exist.
const checks = ['not_a_server_error', 'status_code_conformance', 'content_type_conformance', 'response_schema_conformance'];

/** For each tag an existing name and a missing one, so that the run sees successes as well as refusals. */
const names: Readonly<Record<string, readonly string[]>> = {
  transit: ['aes', 'derived', 'rsa', 'ec', 'ed', 'mac', 'nobody'],
  'auth/userpass': ['ada', 'nobody'],
  'auth/approle': ['app', 'nobody'],
  'auth/jwt': ['job', 'nobody'],
  'auth/kubernetes': ['web', 'nobody'],
  'auth/cert': ['web', 'nobody'],
  'auth/token': ['work', 'nobody'],
  sys: ['reader', 'nobody'],
};

const made: readonly (readonly [path: string, body: object])[] = [
  ['transit/keys/aes', { exportable: true, allow_plaintext_backup: true }],
  ['transit/keys/derived', { derived: true }],
  ['transit/keys/rsa', { type: 'rsa-2048', exportable: true }],
  ['transit/keys/ec', { type: 'ecdsa-p256' }],
  ['transit/keys/ed', { type: 'ed25519' }],
  ['transit/keys/mac', { type: 'aes256-cmac' }],
  ['sys/auth/userpass', { type: 'userpass' }],
  ['sys/auth/approle', { type: 'approle' }],
  ['sys/auth/jwt', { type: 'jwt' }],
  ['sys/auth/kubernetes', { type: 'kubernetes' }],
  ['sys/auth/cert', { type: 'cert' }],
  ['auth/userpass/users/ada', { password: 'lovelace' }],
  ['auth/approle/role/app', {}],
  ['auth/token/roles/work', {}],
  ['sys/policies/acl/reader', { policy: 'path "transit/keys/*" { capabilities = ["read"] }' }],
];

/**
 * Makes an API server of Kubernetes, an issuer of tokens and a certificate, as the three methods know them.
 * @returns what is made at the node, and values for members of bodies: `only` these for those that name a server or a file, or log in,
 * because a login that finds no keys or waits for a server that does not exist is a 503; `also` these for others. No generated request
 * changes the role of a login.
 */
async function identities(folder: string) {
  const api = new StubApiServer();
  api.reviewers.add('reviewer');
  const { cert_file, key_file } = makeCertificate(folder, 'localhost');
  const certificate = readFileSync(cert_file, 'utf8');
  const cluster = await serveReviews(api, { cert: certificate, key: readFileSync(key_file) });
  const exp = Math.floor(Date.now() / 1000) + 3_600;
  const issuer = { jwt_validation_pubkeys: [clusterKeyPem], bound_issuer: 'https://cluster' };
  const reviews = { kubernetes_host: cluster.url, kubernetes_ca_cert: certificate, token_reviewer_jwt: 'reviewer' };
  const job = { user_claim: 'sub', bound_audiences: 'transitd' };
  const web = { bound_service_account_names: 'web', bound_service_account_namespaces: 'shop', audience: 'transitd' };
  const configured: typeof made = [
    ['auth/jwt/config', issuer],
    ['auth/kubernetes/config', reviews],
    ...['job', 'fixed'].map((name) => [`auth/jwt/role/${name}`, job] as const),
    ...['web', 'fixed'].map((name) => [`auth/kubernetes/role/${name}`, web] as const),
    ['auth/cert/certs/web', { certificate }],
  ];
  const eachOf = (body: object) => Object.fromEntries(Object.entries(body).map(([name, value]) => [name, [value]]));
  const only: Bodies = {
    '/auth/jwt/config': {
      ...eachOf({ jwks_file: '', provider_config: {} }),
      jwks_url: ['', 'http://localhost'],
      oidc_discovery_url: ['', 'http://localhost'],
    },
    '/auth/jwt/login': { role: ['fixed', 'nobody'], jwt: [await tokenOf({ sub: 'job-7', exp }), 'x.y.z'] },
    '/auth/kubernetes/config': eachOf(reviews),
    '/auth/kubernetes/login': { role: ['fixed', 'nobody'], jwt: [await api.issue({ exp }), 'x.y.z'] },
  };
  const also: Bodies = {
    '/auth/jwt/config': { ...eachOf(issuer), jwks: ['{'], jwt_supported_algs: [['ES256'], ['none']] },
    '/auth/jwt/role/{name}': eachOf(job),
    '/auth/kubernetes/role/{name}': eachOf(web),
    '/auth/cert/certs/{name}': { certificate: [certificate] },
  };
  return { configured, only, also, cluster };
}

/** Values for members of bodies, by path and name. */
type Bodies = Readonly<Record<string, Readonly<Record<string, readonly unknown[]>>>>;

interface Parameter {
  readonly name: string;
  readonly in: string;
  schema: { enum?: readonly string[]; maximum?: number };
}
interface Operation {
  readonly tags: readonly [string];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly content: { readonly 'application/json'?: { readonly schema: { readonly properties?: Record<string, object> } } };
  };
  readonly responses: object;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: object };
}

/** Forbids members that a schema does not describe: clients may accept them, but the document must describe every member. */
function close(schema: unknown): void {
  if (typeof schema !== 'object' || schema === null) return;
  for (const member of Object.values(schema)) close(member);
  if ('properties' in schema && !('additionalProperties' in schema) && !('$ref' in schema))
    Object.assign(schema, { additionalProperties: false });
}

function prepare({ paths, components }: Document, { only, also }: { readonly only: Bodies; readonly also: Bodies }): void {
  close(components.schemas);
  for (const [path, item] of Object.entries(paths)) {
    for (const { tags, parameters = [], requestBody, responses } of Object.values(item)) {
      close(responses);
      const { properties = {} } = requestBody?.content['application/json']?.schema ?? {};
      const membersOf = (bodies: Bodies) => Object.entries(requestBody === undefined ? {} : (bodies[path] ?? {}));
      for (const [name] of [...membersOf(only), ...membersOf(also)])
        expect(properties, `${path} takes ${name}`).to.have.property(name);
      for (const [name, values] of membersOf(only)) properties[name] = { enum: values };
      for (const [name, values] of membersOf(also)) properties[name] = { anyOf: [{ enum: values }, properties[name]] };
      for (const parameter of parameters) {
        const known = names[tags[0]];
        const named = ['name', 'role', 'source', 'destination'].includes(parameter.name) && parameter.schema.enum === undefined;
        if (parameter.in === 'path' && named && known !== undefined) parameter.schema = { enum: known };
        // Health answers with a status that the query chooses; 500 and above would look like a bug.
        if (path === '/sys/health' && parameter.schema.maximum !== undefined) parameter.schema.maximum = 499;
      }
    }
  }
}

async function documentOf(server: LiveServer, token: string): Promise<string> {
  const answer = await server.call('GET', 'sys/internal/specs/openapi', undefined, token);
  expect(answer.status).to.equal(200);
  return answer.text;
}

describe('the OpenAPI document', () => {
  const bench = new Workbench();
  let end = (): void => undefined;
  after(() => {
    end();
    return bench.clean();
  });

  it('is valid OpenAPI 3.1, and a live node behaves as it says', async function () {
    this.timeout(1_200_000);
    const folder = bench.folder();
    const python = await pythonWith(versions);
    if (python === undefined) return this.skip();
    const env = { TRANSITD_CLUSTER_ADDR: `127.0.0.1:${await freePort('127.0.0.1')}` };
    const { server, rootToken } = await startAudited(bench, { env });
    const { configured, cluster, ...bodies } = await identities(folder);
    end = () => cluster.close();
    for (const [path, body] of [...made, ...configured]) {
      const { status, text } = await server.call('POST', path, body, rootToken);
      expect(status, `${path}: ${text}`).to.be.below(300);
    }

    const text = await documentOf(server, rootToken);
    writeFileSync(join(folder, 'openapi.json'), text);
    const valid = await run(python, ['-m', 'openapi_spec_validator', join(folder, 'openapi.json')]);
    expect(valid.code, `${valid.stdout}${valid.stderr}`).to.equal(0);

    const document = JSON.parse(text) as Document;
    const operations = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(operations, 'an operation that is left out is there').to.include.members(Object.keys(leftOut));
    prepare(document, bodies);
    writeFileSync(join(folder, 'prepared.json'), JSON.stringify(document));
    writeFileSync(join(folder, 'schemathesis.toml'), '[phases.coverage.generation]\nmode = "positive"\n');

    console.log(`      seed ${seed}, ${examplesMax} examples at most for each of ${operations.length} operations`);
    // Sends one request at a time: if two requests change a record at once, one of them gets 503.
    const { code, stdout, stderr } = await run(
      join(dirname(python), 'schemathesis'),
      [
        ...['run', 'prepared.json', '--url', `${server.url}/v1`, '--header', `X-Service-Token: ${rootToken}`],
        ...['--checks', checks.join(), '--phases', 'examples,coverage,fuzzing', '--max-examples', String(examplesMax)],
        ...['--seed', String(seed), '--workers', '1', '--generation-database', 'none', '--no-shrink', '--continue-on-failure'],
        ...['--request-timeout', '30', '--warnings', 'off', '--no-color'],
        ...Object.keys(leftOut).flatMap((name) => ['--exclude-name', name]),
      ],
      { cwd: folder },
    );
    expect(code, `${stdout}\n${stderr}`).to.equal(0);
    expect(stdout).to.include(`Tested: ${operations.length - Object.keys(leftOut).length}`);
    console.log(`      ${/\d+ generated.*/.exec(stdout)?.[0]}; ${/in [\d.]+s(?= =)/.exec(stdout)?.[0]}`);
    expect(server.stderr, 'the log').not.to.include('internal error');
  });
});
