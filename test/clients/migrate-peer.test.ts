// @live
// Moves keys from a real Vault to a node and to another Vault. docs/moving.md says where the binary is published.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { expect } from 'chai';
import { wrapForImport } from '../../packages/cli/src/local/import-material.ts';
import { type Answer, base64, type LiveServer, processMs, Workbench } from '../process/live-server.ts';
import { expectCode, type Ran, run } from '../process/transitd-command.ts';
import { peerBinary, VaultPeer } from './vault-peer.ts';

const context = base64('context');
const importedTypes = ['aes256-gcm96', 'chacha20-poly1305', 'aes128-gcm96', 'ed25519'];
const pkcs8 = { type: 'pkcs8', format: 'der' } as const;
const derived = { derived: true };
const convergent = { derived: true, convergent_encryption: true };

/** Keys by name, with the fields of the request that creates them. */
const keys: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  aes128: { type: 'aes128-gcm96' },
  aes256: {},
  chacha: { type: 'chacha20-poly1305' },
  'aes256-derived': derived,
  'aes256-convergent': convergent,
  'chacha-derived': { type: 'chacha20-poly1305', ...derived },
  'aes128-convergent': { type: 'aes128-gcm96', ...convergent },
  ed: { type: 'ed25519' },
  'ed-derived': { type: 'ed25519', ...derived },
  p256: { type: 'ecdsa-p256' },
  p384: { type: 'ecdsa-p384' },
  p521: { type: 'ecdsa-p521' },
  rsa2048: { type: 'rsa-2048' },
  rsa3072: { type: 'rsa-3072' },
  hmac: { type: 'hmac', key_size: 48 },
};
/** Types of transitd that the free edition of the peer refuses. */
const refused = {
  cmac: { type: 'aes256-cmac' },
  'ml-dsa': { type: 'ml-dsa', parameter_set: '65' },
  hybrid: { type: 'hybrid', parameter_set: '65', hybrid_key_type_pqc: 'ml-dsa', hybrid_key_type_ec: 'ecdsa-p256' },
} as const;

interface Outcome {
  readonly name: string;
  readonly state: string;
  readonly method?: string;
  readonly remarks: readonly string[];
}
type Service = Pick<LiveServer, 'url' | 'rootToken' | 'call'>;

/** Says so instead of leaving pending tests: a run with those would not end with two numbers. */
const notRun = (title: string): void =>
  console.log(`  NOT RUN: ${title}, because MIGRATE_PEER_BINARY names no binary of Vault (see docs/moving.md)`);
const suite: (title: string, tests: (this: Mocha.Suite) => void) => unknown = peerBinary === undefined ? notRun : describe;

suite('transitd migrate and a real Vault', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  /** A request for each ciphertext, signature and HMAC of the services, and the answer that shows it to be valid. */
  const made: {
    readonly path: string;
    readonly body: Readonly<Record<string, unknown>>;
    readonly answer: readonly [string, unknown];
  }[] = [];
  let first: VaultPeer;
  let second: VaultPeer;
  let target: LiveServer;

  before(async () => {
    if (peerBinary === undefined) throw new Error('no binary');
    target = await bench.start({ dataDir: bench.folder() });
    first = await VaultPeer.start(peerBinary, bench.folder());
    second = await VaultPeer.start(peerBinary, bench.folder());
  });
  after(async () => {
    first?.end();
    second?.end();
    await bench.clean();
  });

  async function done(answer: Promise<Answer>): Promise<Answer> {
    const { status, text } = await answer;
    expect(status, text).to.be.lessThan(300);
    return answer;
  }

  const migrate = (from: Service, to: Service, ...options: readonly string[]): Promise<Ran> =>
    run(['migrate', `--from=${from.url}`, `--state=${join(bench.folder(), 'state')}`, '--format=json', ...options], {
      env: { HOME: bench.folder(), TRANSITD_ADDR: to.url, TRANSITD_TOKEN: to.rootToken, TRANSITD_SOURCE_TOKEN: from.rootToken },
    });
  const outcomes = (ran: Ran): ReadonlyMap<string, Outcome> =>
    new Map(ran.json<Outcome[]>().map((outcome) => [outcome.name.replace('transit/', ''), outcome]));

  /** Makes a ciphertext, a signature and an HMAC with the newest version of a key, each with the request that shows it to be valid. */
  async function use(service: Service, name: string): Promise<void> {
    const {
      supports_encryption,
      supports_signing,
      derived: isDerived,
      type,
    } = (await done(service.call('GET', `transit/keys/${name}`))).at('data') as Readonly<Record<string, unknown>>;
    const input = base64(`with ${name}`);
    const more = isDerived === true ? { context } : {};
    const result = async (path: string, body: object, field: string): Promise<string> =>
      (await done(service.call('POST', path, { ...body, ...more }))).string(`data.${field}`);
    if (supports_encryption === true) {
      const ciphertext = await result(`transit/encrypt/${name}`, { plaintext: input }, 'ciphertext');
      made.push({ path: `transit/decrypt/${name}`, body: { ciphertext, ...more }, answer: ['data.plaintext', input] });
    }
    if (supports_signing === true) {
      const signature = await result(`transit/sign/${name}`, { input }, 'signature');
      made.push({ path: `transit/verify/${name}`, body: { input, signature, ...more }, answer: ['data.valid', true] });
    }
    if (type === 'hmac' || String(type).startsWith('aes256')) {
      const hmac = (await done(service.call('POST', `transit/hmac/${name}`, { input }))).string('data.hmac');
      made.push({ path: `transit/verify/${name}`, body: { input, hmac }, answer: ['data.valid', true] });
    }
  }

  async function expectValid(service: Service, prefixes: readonly string[], which = made): Promise<void> {
    expect(which).to.have.length.above(20);
    for (const { path, body, answer } of which)
      for (const prefix of prefixes) {
        const own = JSON.parse(JSON.stringify(body).replace('"vault:', `"${prefix}:`));
        const found = await done(service.call('POST', path, own));
        expect(found.at(answer[0]), `${path} ${JSON.stringify(own)}`).to.equal(answer[1]);
      }
  }

  it('moves every type of key, and what Vault made with each version stays valid under both prefixes', async () => {
    const source = first;
    for (const [name, body] of Object.entries(keys)) {
      await done(source.call('POST', `transit/keys/${name}`, body));
      await use(source, name);
      await done(source.call('POST', `transit/keys/${name}/rotate`));
      await use(source, name);
    }
    const policy = 'path "transit/encrypt/aes256" {\n  capabilities = ["update"]\n}\n';
    await done(source.call('PUT', 'sys/policies/acl/shop', { policy }));
    const planned = outcomes(expectCode(await migrate(source, target, '--dry-run'), 2));
    expect([...planned.keys()]).to.include.members(Object.keys(keys));
    const ran = expectCode(await migrate(source, target, '--yes-set-exportable', '--yes-allow-plaintext-backup'), 0);
    for (const name of Object.keys(keys)) expect(outcomes(ran).get(name)).to.include({ state: 'checked', method: 'backup' });
    await expectValid(target, ['vault', 'svc']);
    expect((await target.call('GET', 'sys/policies/acl/shop')).at('data.policy')).to.equal(policy);
  });

  it('has a derived key that was imported', async () => {
    for (const type of importedTypes) {
      const name = `imported-${type}`;
      const size = type === 'aes128-gcm96' ? 16 : 32;
      const material = type === 'ed25519' ? generateKeyPairSync('ed25519').privateKey.export(pkcs8) : randomBytes(size);
      const ciphertext = wrapForImport(
        material,
        (await done(target.call('GET', 'transit/wrapping_key'))).string('data.public_key'),
      );
      const body = { type, ciphertext, derived: true, exportable: true, allow_rotation: true };
      await done(target.call('POST', `transit/keys/${name}/import`, body));
      await use(target, name);
    }
  });

  it('moves every key back to a new Vault, also with versions that transitd made', async () => {
    for (const name of Object.keys(keys)) {
      await done(target.call('POST', `transit/keys/${name}/config`, { exportable: true }));
      await done(target.call('POST', `transit/keys/${name}/rotate`));
      await use(target, name);
    }
    const ran = expectCode(await migrate(target, second), 0);
    for (const [name, { derived: isDerived }] of Object.entries(keys))
      expect(outcomes(ran).get(name), name).to.include({ state: 'checked', method: isDerived === true ? 'backup' : 'import' });
    // An import gives a key new HMAC secrets; the page says so.
    const kept = made.filter(({ path, body }) => !('hmac' in body) || path.endsWith('/hmac') || path.includes('-'));
    await expectValid(second, ['vault'], kept);
    for (const type of importedTypes) await done(second.call('POST', `transit/keys/imported-${type}/rotate`));
    await expectValid(second, ['vault'], kept);
  });

  it('names the types that Vault refuses, which it does', async () => {
    for (const [name, body] of Object.entries(refused)) {
      const asked = await second.call('POST', `transit/keys/${name}`, body);
      expect(asked.status, asked.text).to.be.at.least(400);
      await done(target.call('POST', `transit/keys/${name}`, { ...body, exportable: true }));
    }
    const found = outcomes(expectCode(await migrate(target, second, '--dry-run'), 2));
    for (const name of Object.keys(refused)) expect(JSON.stringify(found.get(name)), name).to.include('has no keys of the type');
  });
});
