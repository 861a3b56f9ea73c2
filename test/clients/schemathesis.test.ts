// What the document says is held against what a live node does, by a program that makes requests of it: no fault of the server, no
// status, no content type and no answer that the document does not have.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { freePort } from '../cluster/free-port.ts';
import { startAudited } from '../process/audited-server.ts';
import { type LiveServer, Workbench } from '../process/live-server.ts';
import { pythonWith } from './python.ts';
import { run } from './run.ts';

const versions = ['schemathesis==4.32.5', 'openapi-spec-validator==0.9.0'];
/** The same seed asks the same questions; another one, and more of them, for a longer look. */
const seed = Number(process.env['SCHEMATHESIS_SEED'] ?? 1);
const examplesMax = Number(process.env['SCHEMATHESIS_EXAMPLES'] ?? 4);

/** What a run cannot ask of the node that it runs against. */
const leftOut: Readonly<Record<string, string>> = {
  'POST /sys/seal': 'the node is sealed',
  'POST /sys/step-down': 'there is no active node for a moment',
  'POST /sys/storage/raft/remove-peer': 'the node may be removed',
  'POST /sys/remount': 'the keys lie elsewhere',
  'DELETE /sys/mounts/{path}': 'the keys are gone',
  'DELETE /sys/auth/{method}': 'the users and roles are gone',
  'POST /sys/quotas/rate-limit/{name}': 'everything behind it is 429',
  'POST /auth/token/revoke-self': 'everything behind it is 403',
};

// Weak typing takes more than the schemas say, and names decide what is there: so nothing is said of what must be accepted or refused.
const checks = ['not_a_server_error', 'status_code_conformance', 'content_type_conformance', 'response_schema_conformance'];

/** Names that are there, below a tag, and one that is not: so that answers are seen, and not refusals alone. */
const names: Readonly<Record<string, readonly string[]>> = {
  transit: ['aes', 'derived', 'rsa', 'ec', 'ed', 'mac', 'nobody'],
  'auth/userpass': ['ada', 'nobody'],
  'auth/approle': ['app', 'nobody'],
  'auth/jwt': ['job', 'nobody'],
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
  ['auth/userpass/users/ada', { password: 'lovelace' }],
  ['auth/approle/role/app', {}],
  ['auth/token/roles/work', {}],
  ['sys/policies/acl/reader', { policy: 'path "transit/keys/*" { capabilities = ["read"] }' }],
];

interface Parameter {
  readonly name: string;
  readonly in: string;
  schema: { enum?: readonly string[]; maximum?: number };
}
interface Operation {
  readonly tags: readonly [string];
  readonly parameters?: readonly Parameter[];
  readonly responses: object;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: object };
}

/** Answers have no members but those that are described: clients may live with more, the document must not lack any. */
function close(schema: unknown): void {
  if (typeof schema !== 'object' || schema === null) return;
  for (const member of Object.values(schema)) close(member);
  if ('properties' in schema && !('additionalProperties' in schema) && !('$ref' in schema))
    Object.assign(schema, { additionalProperties: false });
}

function prepare({ paths, components }: Document): void {
  close(components.schemas);
  for (const [path, item] of Object.entries(paths)) {
    for (const { tags, parameters = [], responses } of Object.values(item)) {
      close(responses);
      for (const parameter of parameters) {
        const known = names[tags[0]];
        const named = ['name', 'role', 'source', 'destination'].includes(parameter.name) && parameter.schema.enum === undefined;
        if (parameter.in === 'path' && named && known !== undefined) parameter.schema = { enum: known };
        // A status of 500 and above would be what was asked for, and look like a fault.
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

describe('the document', () => {
  const bench = new Workbench();
  after(() => bench.clean());

  it('is OpenAPI 3.1, and a live node does what it says', async function () {
    this.timeout(1_200_000);
    const folder = bench.folder();
    const python = await pythonWith(versions, folder);
    if (python === undefined) return this.skip();
    const env = { TRANSITD_CLUSTER_ADDR: `127.0.0.1:${await freePort('127.0.0.1')}` };
    const { server, rootToken } = await startAudited(bench, { env });
    for (const [path, body] of made) {
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
    prepare(document);
    writeFileSync(join(folder, 'prepared.json'), JSON.stringify(document));
    writeFileSync(join(folder, 'schemathesis.toml'), '[phases.coverage.generation]\nmode = "positive"\n');

    console.log(`      seed ${seed}, ${examplesMax} examples at most for each of ${operations.length} operations`);
    // One request at a time: of two changes of one record at once, one is told to come again (503).
    const { code, stdout, stderr } = await run(
      join(folder, 'venv/bin/schemathesis'),
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
