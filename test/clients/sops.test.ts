// @live
// sops keeps encrypted files in repositories. Here its data keys are encrypted under transit keys of a live node.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { type LiveServer, Workbench } from '../process/live-server.ts';
import { build, runProgram } from './go-programs.ts';
import type { Ended } from './run.ts';

const plain = 'database:\n    password: correct horse\n    port: 5432\n';

describe('sops', () => {
  const bench = new Workbench();
  let server: LiveServer;
  let folder = '';

  before(async function () {
    await build(this, 'sops');
    server = await bench.start({ dataDir: bench.folder() });
    const config = { ciphertext_prefix: 'vault' };
    expect((await server.call('POST', 'sys/mounts/team/files', { type: 'transit', config })).status).to.equal(204);
    const policy =
      'path "transit/+/reader" { capabilities = ["update"] } path "team/files/+/reader" { capabilities = ["update"] }';
    expect((await server.call('POST', 'sys/policies/acl/reader', { policy })).status).to.equal(204);
  });
  beforeEach(() => {
    folder = bench.folder();
    writeFileSync(join(folder, 'secrets.yaml'), plain);
  });
  after(() => bench.clean());

  const text = (): string => readFileSync(join(folder, 'secrets.yaml'), 'utf8');
  const keyUri = (mount: string, key: string): string => `${server.url}/v1/${mount}/keys/${key}`;
  /** Runs sops with its own home folder, so that sops finds no token of this machine's user. */
  const ask = (args: readonly string[], token = server.rootToken): Promise<Ended> =>
    runProgram('sops', args, { cwd: folder, env: { HOME: folder, VAULT_TOKEN: token } });
  const sops = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await ask(args);
    expect(code, `sops ${args.join(' ')}: ${stderr}`).to.equal(0);
    return stdout;
  };
  const encrypt = (mount: string, key: string): Promise<string> =>
    sops('encrypt', '--in-place', '--hc-vault-transit', keyUri(mount, key), 'secrets.yaml');

  for (const { mount, prefix } of [
    { mount: 'transit', prefix: 'svc' },
    { mount: 'team/files', prefix: 'vault' },
  ])
    describe(`with ciphertexts that begin with ${prefix}`, () => {
      it('encrypts a file under a new key, and decrypts it', async () => {
        await encrypt(mount, 'fresh');
        expect(text())
          .to.match(new RegExp(`enc: ${prefix}:v1:`))
          .and.not.include('correct horse');
        expect(await sops('decrypt', 'secrets.yaml')).to.equal(plain);
        expect(await sops('decrypt', '--extract', '["database"]["port"]', 'secrets.yaml')).to.equal('5432\n');
      });

      it('sets a value in an encrypted file', async () => {
        await encrypt(mount, 'values');
        await sops('set', 'secrets.yaml', '["database"]["port"]', '6432');
        expect(await sops('decrypt', 'secrets.yaml')).to.equal(plain.replace('5432', '6432'));
      });

      it('rotates the data key under the newest version of the key, and older files stay readable', async () => {
        await encrypt(mount, 'rotated');
        const before = text();
        expect((await server.call('POST', `${mount}/keys/rotated/rotate`)).status).to.equal(200);
        await sops('rotate', '--in-place', 'secrets.yaml');
        expect(text()).to.match(new RegExp(`enc: ${prefix}:v2:`));
        expect(await sops('decrypt', 'secrets.yaml')).to.equal(plain);
        writeFileSync(join(folder, 'secrets.yaml'), before);
        expect(await sops('decrypt', 'secrets.yaml')).to.equal(plain);
      });

      it('encrypts a file under the keys that the rules of its folder name', async () => {
        await encrypt(mount, 'old');
        const rules = `creation_rules:\n  - path_regex: .*\n    hc_vault_transit_uri: ${keyUri(mount, 'new')}\n`;
        writeFileSync(join(folder, '.sops.yaml'), rules);
        await sops('updatekeys', '--yes', 'secrets.yaml');
        expect(text()).to.include('key_name: new').and.not.include('key_name: old');
        expect(await sops('decrypt', 'secrets.yaml')).to.equal(plain);
      });

      it('decrypts a file with either of two keys, but not with a key whose versions were deleted', async () => {
        const both = `${keyUri(mount, 'first')},${keyUri(mount, 'second')}`;
        await sops('encrypt', '--in-place', '--hc-vault-transit', both, 'secrets.yaml');
        for (const [key, code] of [
          ['first', 0],
          ['second', 128],
        ] as const) {
          await server.call('POST', `${mount}/keys/${key}/config`, { deletion_allowed: true });
          expect((await server.call('DELETE', `${mount}/keys/${key}`)).status).to.equal(204);
          expect((await ask(['decrypt', 'secrets.yaml'])).code, `without ${key}`).to.equal(code);
        }
      });

      it('is refused without a valid token, and with a token that may not use the key', async () => {
        const made = await server.call('POST', 'auth/token/create', { policies: ['reader'] });
        const limited = made.string('auth.client_token');
        await encrypt(mount, 'other');
        for (const token of ['s.nobody', '', limited]) {
          const { code, stdout, stderr } = await ask(['decrypt', 'secrets.yaml'], token);
          expect(code).to.equal(128);
          expect(stdout).to.equal('');
          expect(stderr).to.match(/Code: 403\. Errors:[\s|*]+permission denied/);
        }
        writeFileSync(join(folder, 'secrets.yaml'), plain);
        await server.call('POST', `${mount}/keys/reader`);
        await encrypt(mount, 'reader');
        expect((await ask(['decrypt', 'secrets.yaml'], limited)).stdout).to.equal(plain);
      });
    });
});
