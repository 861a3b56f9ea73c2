// @live
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { freePort } from '../cluster/harness/free-port.ts';
import { type AuditedServer, startAudited } from '../process/audited-server.ts';
import { processMs, root, Workbench } from '../process/live-server.ts';
import { expectCode, run } from '../process/transitd-command.ts';
import { runBlocks, shellBlocks } from './page.ts';

const page = 'docs/runbook.md';
const [, symptoms = ''] = /^## Symptoms\n(.*?)^## /ms.exec(readFileSync(join(root, page), 'utf8')) ?? [];
/** The messages in the first column of the tables. */
const messages = [...symptoms.matchAll(/^\| `([^`]+)` \|/gm)].map(([, message]) => message);
const policy = 'path "transit/encrypt/orders" { capabilities = ["update"] }';

describe(page, function () {
  this.timeout(processMs);
  const bench = new Workbench();
  const sealKey = Buffer.alloc(32, 7).toString('base64');
  let folder = '';
  let audited: AuditedServer;
  before(async () => {
    folder = bench.folder();
    audited = await startAudited(bench, {
      folder,
      name: 'main',
      settings: { cluster_addr: `127.0.0.1:${await freePort('127.0.0.1')}` },
      env: { TEST_SEAL_KEY: sealKey },
    });
    const { server, rootToken } = audited;
    expect((await server.call('POST', 'transit/keys/orders', {}, rootToken)).status).to.equal(200);
    expect((await server.call('POST', 'sys/policies/acl/app', { policy }, rootToken)).status).to.equal(204);
  });
  after(() => bench.clean());

  const env = (): Readonly<Record<string, string>> => ({
    HOME: folder,
    TRANSITD_ADDR: audited.server.url,
    TRANSITD_TOKEN: audited.rootToken,
  });

  it('has commands that a running node answers', async () => {
    const ran = await runBlocks(shellBlocks(page, 'Symptoms'), {
      replace: { '/var/log/transitd/audit.log': audited.auditFile },
      env: { ...env(), SUSPECT: 'a value' },
    });
    expect(ran.code, ran.stdout + ran.stderr).to.equal(0);
    expect(ran.stdout)
      .to.match(/^allowed/m)
      .and.to.include('hmac-sha256:');
  });

  it('has a command that names the cause why a node does not start', async () => {
    const check = (key: string) =>
      runBlocks(shellBlocks(page, 'A node does not start'), {
        replace: { '/etc/transitd/transitd.yaml': join(folder, 'transitd.json') },
        env: { ...env(), TEST_SEAL_KEY: key },
      });
    const broken = await check('short');
    expect(broken.code, broken.stdout + broken.stderr).to.equal(1);
    expect(broken.stdout, broken.stderr).to.match(/^fail +seal/m);
  });

  it('quotes messages that the command prints', async () => {
    const sealed = async (...options: readonly string[]): Promise<string> =>
      expectCode(await run(['key', 'encrypt', 'orders', 'x', ...options], { env: env() }), 0).stdout.trim();
    const first = await sealed();
    const bound = await sealed('--associated-data=a');
    const provoked: readonly (readonly [args: readonly string[], more?: Readonly<Record<string, string>>])[] = [
      [['status'], { TRANSITD_ADDR: `http://127.0.0.1:${await freePort('127.0.0.1')}` }],
      [['status'], { TRANSITD_ADDR: audited.server.url.replace('http:', 'https:') }],
      [['key', 'read', 'orders'], { TRANSITD_TOKEN: '' }],
      [['key', 'read', 'orders'], { TRANSITD_TOKEN: 's.000000000000000000000000' }],
      [['key', 'read', 'absent']],
      [['key', 'read', 'orders', '--mount=absent']],
      [['key', 'decrypt', 'orders', bound]],
      [['key', 'decrypt', 'orders', first.replace(':v1:', ':v9:')]],
      [['key', 'decrypt', 'orders', first]],
      [['key', 'decrypt', 'orders', 'svc:v2:AAAA']],
      [['key', 'decrypt', 'orders', 'plain text']],
    ];
    expect(provoked).to.have.length(messages.length);
    for (const [at, [args, more = {}]] of provoked.entries()) {
      if (args.includes(first)) {
        expectCode(await run(['key', 'rotate', 'orders'], { env: env() }), 0);
        expectCode(
          await run(['key', 'config', 'orders', '--min-decryption-version=2', '--unless-used-within=0'], { env: env() }),
          0,
        );
      }
      const ran = await run(args, { env: { ...env(), ...more } });
      expect(ran.code, args.join(' ')).to.be.oneOf([1, 2]);
      expect(ran.stderr, args.join(' ')).to.include(messages[at]);
    }
  });
});
