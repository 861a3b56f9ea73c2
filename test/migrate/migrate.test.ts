// Moves the recorded keys of a peer to a live node and back, and from node to node.
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { StateFile } from '../../packages/cli/src/migrate/state-file.ts';
import { runBlocks, shellBlocks } from '../docs/page.ts';
import { type LiveServer, processMs, root, Workbench } from '../process/live-server.ts';
import { expectCode, type Ran, run } from '../process/transitd-command.ts';
import { PeerKey } from './peer-key.ts';
import { StubPeer } from './stub-peer.ts';

interface RecordedKey {
  readonly type: string;
  readonly derived?: boolean;
  readonly convergent_encryption?: boolean;
  readonly encryption_key?: Readonly<Record<string, string>>;
  readonly hmac_key?: Readonly<Record<string, string>>;
  readonly signing_key?: Readonly<Record<string, string>>;
  readonly cases: readonly Readonly<Record<string, string>>[];
}

interface Outcome {
  readonly kind: string;
  readonly name: string;
  readonly state: string;
  readonly method?: string;
  readonly samples?: number;
  readonly remarks: readonly string[];
}

const recorded: readonly RecordedKey[] = JSON.parse(
  readFileSync(join(root, 'packages/transit-engine/test/vectors/recorded-keys.json'), 'utf8'),
).keys;

/** Keys of the recording, each with its versions, in the stub peer. */
function recordedKey(at: number, settings: Partial<PeerKey['settings']> = {}): PeerKey {
  const { type, derived = false, convergent_encryption = false, ...material } = recorded[at] as RecordedKey;
  const key = new PeerKey(`recorded-${at}`, type, { derived, convergent_encryption, ...settings });
  for (const one of Object.values(material.encryption_key ?? material.hmac_key ?? material.signing_key ?? {})) key.add(one);
  return key;
}

const open = { exportable: true, allow_plaintext_backup: true };

describe('transitd migrate', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  const peers: StubPeer[] = [];
  let target: LiveServer;
  let peer: StubPeer;
  let state = '';

  const newPeer = async (): Promise<StubPeer> => {
    const started = await new StubPeer().start();
    peers.push(started);
    return started;
  };
  const migrate = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> =>
    run(['migrate', `--from=${peer.url}`, `--state=${state}`, '--format=json', ...args], {
      env: {
        HOME: bench.folder(),
        TRANSITD_ADDR: target.url,
        TRANSITD_TOKEN: target.rootToken,
        TRANSITD_SOURCE_TOKEN: peer.token,
        ...env,
      },
    });
  const keysOf = (ran: Ran): readonly Outcome[] => ran.json<Outcome[]>().filter(({ kind }) => kind === 'key');
  const outcomeOf = (ran: Ran, name: string): Outcome | undefined => ran.json<Outcome[]>().find((one) => one.name === name);

  before(async () => {
    target = await bench.start({ dataDir: bench.folder() });
  });
  beforeEach(async () => {
    peer = await newPeer();
    state = join(bench.folder(), 'state.json');
    for (const name of ((await target.call('LIST', 'transit/keys')).at('data.keys') ?? []) as string[]) {
      await target.call('POST', `transit/keys/${name}/config`, { deletion_allowed: true });
      await target.call('DELETE', `transit/keys/${name}`);
    }
  });
  afterEach(() => {
    for (const one of peers.splice(0)) one.stop();
  });
  after(() => bench.clean());

  it('moves every recorded key by backup, and everything that the peer made with it stays valid', async () => {
    for (const at of recorded.keys()) peer.put(recordedKey(at, { ...open, deletion_allowed: at % 2 === 0 }));
    const planned = expectCode(await migrate(['--dry-run']), 0);
    expect(planned.json<{ method: { kind: string } }[]>().map(({ method }) => method.kind)).to.deep.equal(
      recorded.map(() => 'backup'),
    );
    expect((await target.call('LIST', 'transit/keys')).status, 'a dry run changes nothing').to.equal(404);
    const ran = expectCode(await migrate([]), 0);
    expect(keysOf(ran)).to.have.length(recorded.length);
    for (const outcome of keysOf(ran)) expect(outcome, outcome.name).to.include({ state: 'checked', method: 'backup' });
    expect(keysOf(ran).every(({ samples = 0 }) => samples >= 1)).to.equal(true);
    for (const [at, { cases }] of recorded.entries())
      for (const each of cases)
        for (const prefix of ['vault', 'svc'])
          expect(await holds(`recorded-${at}`, each, prefix), JSON.stringify(each)).to.equal(true);
  });

  /** Whether the target decrypts or verifies a recorded case. */
  async function holds(name: string, recordedCase: Readonly<Record<string, string>>, prefix: string): Promise<boolean> {
    const { op, version: _, plaintext, ciphertext = '', signature = '', hmac = '', ...options } = recordedCase;
    const own = (text: string): string => text.replace(/^vault:/, `${prefix}:`);
    if (op === 'encrypt')
      return (
        (await target.call('POST', `transit/decrypt/${name}`, { ciphertext: own(ciphertext), ...options })).at(
          'data.plaintext',
        ) === plaintext
      );
    const proof = op === 'sign' ? { signature: own(signature) } : { hmac: own(hmac) };
    const path = op === 'sign' ? `transit/verify/${name}` : `transit/verify/${name}/${options['algorithm']}`;
    return (await target.call('POST', path, { ...options, ...proof })).at('data.valid') === true;
  }

  it('moves exportable keys by export and import, and says what is lost', async () => {
    for (const at of recorded.keys()) peer.put(recordedKey(at, { exportable: true }));
    const ran = expectCode(await migrate([]), 2);
    for (const [at, { convergent_encryption: convergent }] of recorded.entries()) {
      const outcome = outcomeOf(ran, `transit/recorded-${at}`);
      if (convergent === true) {
        expect(outcome).to.include({ state: 'not moved' });
        expect(outcome?.remarks.join()).to.match(/does not allow|allow plaintext backups/);
      } else expect(outcome, JSON.stringify(outcome)).to.include({ state: 'checked', method: 'import' });
    }
    const again = expectCode(await migrate(['--yes-allow-plaintext-backup']), 0);
    expect(outcomeOf(again, 'transit/recorded-4')).to.include({ state: 'checked', method: 'backup' });
    expect(outcomeOf(again, 'transit/recorded-0'), 'what was moved stays').to.include({ method: 'import' });
  });

  it('keeps version numbers, minimums and trimmed versions of an imported key', async () => {
    const settings = { exportable: true, min_decryption_version: 3, min_encryption_version: 4, min_available_version: 2 };
    const key = peer.put(new PeerKey('old', 'aes256-gcm96', settings).add().add().add().add());
    const ran = expectCode(await migrate([]), 0);
    expect(outcomeOf(ran, 'transit/old')).to.include({ state: 'checked', method: 'import' });
    const ciphertext = key.encrypt(Buffer.from('x'), { version: 3 });
    expect((await target.call('POST', 'transit/decrypt/old', { ciphertext })).at('data.plaintext')).to.equal('eA==');
    const read = await target.call('GET', 'transit/keys/old');
    expect(read.at('data')).to.include({ min_available_version: 2, min_decryption_version: 3, min_encryption_version: 4 });
  });

  it('recognizes a transitd target without any mount, and creates the mount', async () => {
    peer.put(new PeerKey('first', 'aes256-gcm96', open).add());
    await target.call('DELETE', 'sys/mounts/transit');
    expect(outcomeOf(expectCode(await migrate([]), 0), 'transit/first')).to.include({ state: 'checked', method: 'backup' });
    expect((await target.call('GET', 'sys/mounts/transit')).text).to.include('"ciphertext_prefix":"vault"');
  });

  it('puts no random material in place of a version that the source does not export, and moves the other keys', async () => {
    const key = peer.put(new PeerKey('gap', 'aes256-gcm96', { exportable: true }).add().add());
    const exported = key.exported.bind(key);
    key.exported = (version) => (version === key.versions[0] ? (undefined as unknown as string) : exported(version));
    peer.put(new PeerKey('next', 'aes256-gcm96', { exportable: true }).add());
    const ran = expectCode(await migrate([]), 2);
    expect(outcomeOf(ran, 'transit/gap')).to.deep.include({
      state: 'not moved',
      remarks: ['the source exported no version 1 of gap'],
    });
    expect((await target.call('GET', 'transit/keys/gap')).status).to.equal(404);
    expect(outcomeOf(ran, 'transit/next')).to.include({ state: 'checked' });
  });

  it('reports a key that is less protected at the target than before', async () => {
    const key = peer.put(new PeerKey('loose', 'aes256-gcm96').add());
    const backup = key.backup.bind(key);
    const spaced = (text: string): string => Buffer.from(text, 'base64').toString().replace('"exportable":', '"exportable" :');
    key.backup = () => Buffer.from(spaced(backup())).toString('base64');
    const ran = expectCode(await migrate(['--yes-set-exportable', '--yes-allow-plaintext-backup']), 2);
    expect(outcomeOf(ran, 'transit/loose')).to.deep.include({
      state: 'differs',
      remarks: ['exportable is true at the target, but was false at the source'],
    });
  });

  it('warns about keys that both services would rotate', async () => {
    peer.put(new PeerKey('often', 'aes256-gcm96', { ...open, auto_rotate_period: 86_400 }).add());
    const planned = expectCode(await migrate(['--dry-run']), 0);
    expect(planned.stderr).to.match(/^1\. Set auto_rotate_period to 0 at the source for transit\/often before/m);
  });

  it('keeps the moves of two namespaces apart', async () => {
    peer.put(new PeerKey('k', 'aes256-gcm96', open).add());
    expectCode(await migrate(['--from-namespace=a']), 0);
    expect(expectCode(await migrate(['--from-namespace=b']), 1).stderr).to.match(/belongs to a move from .* namespace a to /);
  });

  it('changes nothing at the source unless told to, and gives the target key its original protection', async () => {
    const key = peer.put(new PeerKey('locked', 'aes256-gcm96').add().add());
    const ran = expectCode(await migrate([]), 2);
    expect(outcomeOf(ran, 'transit/locked')?.remarks.join()).to.equal(
      'it is not exportable and does not allow plaintext backups at the source',
    );
    expect(key.settings).to.include({ exportable: false, allow_plaintext_backup: false });
    expect((await target.call('GET', 'transit/keys/locked')).status).to.equal(404);
    expectCode(await migrate(['--yes-set-exportable', '--yes-allow-plaintext-backup']), 0);
    expect(key.settings).to.include(open);
    const moved = await target.call('GET', 'transit/keys/locked');
    expect(moved.at('data')).to.include({ exportable: false, allow_plaintext_backup: false, latest_version: 2 });
  });

  it('moves a key again that was rotated during the move', async () => {
    const key = peer.put(new PeerKey('busy', 'aes256-gcm96', open).add());
    let rotations = 0;
    peer.before = (_, path) => {
      if (path === 'transit/encrypt/busy' && rotations++ === 0) key.add();
    };
    const ran = expectCode(await migrate([]), 0);
    expect(outcomeOf(ran, 'transit/busy')).to.include({ state: 'checked' });
    expect((await target.call('GET', 'transit/keys/busy')).at('data.latest_version')).to.equal(2);
    key.add();
    peer.put(new PeerKey('later', 'aes256-gcm96', open).add());
    peer.before = (_, path) => {
      if (path === 'transit/backup/later') key.add();
    };
    expectCode(await migrate([]), 0);
    expect((await target.call('GET', 'transit/keys/busy')).at('data.latest_version')).to.equal(4);
  });

  it('does not run while another run uses the same state file; a dry run does', async () => {
    peer.put(new PeerKey('k', 'aes256-gcm96', open).add());
    expectCode(await migrate([]), 0);
    const [header = ''] = readFileSync(state, 'utf8').split('\n');
    const held = await StateFile.open(state, JSON.parse(header));
    const refused = expectCode(await migrate([]), 1);
    expect(refused.stderr).to.include(`another transitd migrate is using ${state}`);
    expectCode(await migrate(['--dry-run']), 0);
    await held.close();
    expectCode(await migrate([]), 0);
  });

  it('continues an import that was interrupted', async () => {
    peer.put(new PeerKey('half', 'ed25519', { exportable: true }).add().add().add());
    peer.before = (_, path) => {
      if (path === 'transit/export/signing-key/half') throw new Error('the peer fails');
    };
    expectCode(await migrate([]), 2);
    peer.before = () => undefined;
    expect(statSync(state).mode & 0o777).to.equal(0o600);
    expect(readFileSync(state, 'utf8')).to.include('"started"');
    // The first version arrived before the interruption.
    const first = peer.keys.get('half')?.versions[0];
    if (first?.pair === undefined) throw new Error('no version');
    const { wrapForImport } = await import('../../packages/cli/src/local/import-material.ts');
    const wrappingKey = (await target.call('GET', 'transit/wrapping_key')).string('data.public_key');
    const ciphertext = wrapForImport(first.pair.export({ type: 'pkcs8', format: 'der' }), wrappingKey);
    await target.call('POST', 'transit/keys/half/import', {
      type: 'ed25519',
      ciphertext,
      exportable: true,
      allow_rotation: true,
    });
    expect(outcomeOf(expectCode(await migrate([]), 0), 'transit/half')).to.include({ state: 'checked', samples: 3 });
  });

  it('replaces no other key of the same name, and no key that was rotated at the target', async () => {
    peer.put(new PeerKey('taken', 'aes256-gcm96', open).add());
    peer.put(new PeerKey('mine', 'aes256-gcm96', open).add());
    await target.call('POST', 'transit/keys/taken');
    const made = (await target.call('POST', 'transit/encrypt/taken', { plaintext: 'eA==' })).string('data.ciphertext');
    const ran = expectCode(await migrate([]), 2);
    expect(outcomeOf(ran, 'transit/taken')).to.include({ state: 'not moved' });
    expect((await target.call('POST', 'transit/decrypt/taken', { ciphertext: made })).status).to.equal(200);
    await target.call('POST', 'transit/keys/mine/rotate');
    peer.keys.get('mine')?.add();
    expect(outcomeOf(expectCode(await migrate([]), 2), 'transit/mine')?.state).to.equal('not moved');
  });

  it('reports a key whose samples fail', async () => {
    const key = peer.put(new PeerKey('wrong', 'aes256-gcm96', open).add());
    const encrypt = key.encrypt.bind(key);
    key.encrypt = (plaintext, options) =>
      new PeerKey('x', 'aes256-gcm96').add().encrypt(plaintext, options) && encrypt(Buffer.from('y'), options);
    const outcome = outcomeOf(expectCode(await migrate([]), 2), 'transit/wrong');
    expect(outcome?.remarks.join()).to.match(/decrypt with version 1: the result at the target differs/);
  });

  it('moves the policies that concern transit, and reports one that differs', async () => {
    const text = 'path "transit/encrypt/orders" {\n  capabilities = ["update"]\n}\n';
    peer.policies.set('shop', text);
    peer.policies.set('kv', 'path "secret/*" { capabilities = ["read"] }');
    peer.policies.set('changed', 'path "+/decrypt/*" { capabilities = ["update"] }');
    await target.call('PUT', 'sys/policies/acl/changed', { policy: 'path "transit/decrypt/a" { capabilities = ["update"] }' });
    const ran = expectCode(await migrate([]), 2);
    expect((await target.call('GET', 'sys/policies/acl/shop')).at('data.policy')).to.equal(text);
    expect((await target.call('GET', 'sys/policies/acl/kv')).status).to.equal(404);
    expect(outcomeOf(ran, 'changed')).to.include({ kind: 'policy', state: 'differs' });
  });

  it('names what is missing: rights, a token, a server, another cluster', async () => {
    peer.put(new PeerKey('k', 'aes256-gcm96', open).add());
    peer.denied.add('sys/mounts').add('sys/policies');
    expect(expectCode(await migrate([]), 1).stderr).to.match(/name each transit mount with --mount/);
    expectCode(await migrate(['--mount=transit']), 2, 'policies were not compared');
    expect(outcomeOf(await migrate(['--mount=transit']), 'transit/k')).to.include({ state: 'checked' });
    expect(expectCode(await migrate([], { TRANSITD_SOURCE_TOKEN: '' }), 1).stderr).to.match(/TRANSITD_SOURCE_TOKEN/);
    expect(expectCode(await migrate(['--from-token=s.plain']), 1).stderr)
      .to.match(/must not be on the command line/)
      .and.not.include('s.plain');
    const same = run(['migrate', `--from=${target.url}`, `--state=${state}`], {
      env: { HOME: '/', TRANSITD_ADDR: target.url, TRANSITD_TOKEN: target.rootToken, TRANSITD_SOURCE_TOKEN: target.rootToken },
    });
    expect(expectCode(await same, 1).stderr).to.match(/are the same cluster/);
  });

  it('moves those keys back to the peer that the peer accepts', async () => {
    for (const [name, body] of [
      ['aes', { exportable: true }],
      ['pen', { type: 'ed25519', exportable: true }],
      ['ec', { type: 'ecdsa-p384', exportable: true }],
      ['mac', { type: 'hmac', key_size: 48, exportable: true }],
      ['tag', { type: 'aes256-cmac', exportable: true }],
      ['perctx', { derived: true, exportable: true }],
    ] as const) {
      await target.call('POST', `transit/keys/${name}`, body);
      await target.call('POST', `transit/keys/${name}/rotate`);
    }
    const ran = await run(['migrate', `--from=${target.url}`, `--state=${state}`, '--format=json'], {
      env: { HOME: '/', TRANSITD_ADDR: peer.url, TRANSITD_TOKEN: peer.token, TRANSITD_SOURCE_TOKEN: target.rootToken },
    });
    expectCode(ran, 2);
    for (const name of ['aes', 'pen', 'ec', 'mac'])
      expect(outcomeOf(ran, `transit/${name}`), JSON.stringify(outcomeOf(ran, `transit/${name}`))).to.include({
        state: 'checked',
        method: 'import',
      });
    expect(outcomeOf(ran, 'transit/tag')?.remarks.join()).to.match(/no keys of the type aes256-cmac/);
    expect(outcomeOf(ran, 'transit/perctx')).to.include({ state: 'checked', method: 'backup' });
    expect(peer.keys.get('aes')?.latest).to.equal(2);
  });

  it('moves every recorded key to transitd and back, and what the peer made with it stays valid there', async () => {
    for (const at of recorded.keys()) peer.put(recordedKey(at, { ...open, deletion_allowed: at % 2 === 0 }));
    expectCode(await migrate([]), 0);
    const back = await newPeer();
    const ran = await run(['migrate', `--from=${target.url}`, `--state=${state}.back`, '--format=json'], {
      env: { HOME: '/', TRANSITD_ADDR: back.url, TRANSITD_TOKEN: back.token, TRANSITD_SOURCE_TOKEN: target.rootToken },
    });
    for (const [at, { derived = false, cases }] of recorded.entries()) {
      const name = `recorded-${at}`;
      expect(outcomeOf(ran, `transit/${name}`), name).to.include({ state: 'checked', method: derived ? 'backup' : 'import' });
      const key = back.keys.get(name);
      const first = peer.keys.get(name);
      for (const { op, ciphertext = '', plaintext, context = '', associated_data: associated } of cases)
        if (op === 'encrypt' && associated === undefined)
          expect(key?.decrypt(ciphertext, context).toString('base64'), name).to.equal(plaintext);
      if (derived) expect(key?.hmac(Buffer.from('x')), name).to.equal(first?.hmac(Buffer.from('x')));
    }
  });

  it('keeps the numbers of trimmed and hidden versions of a derived key on the way back', async () => {
    await target.call('POST', 'transit/keys/turned', { derived: true, convergent_encryption: true, exportable: true });
    for (let version = 2; version <= 5; version++) await target.call('POST', 'transit/keys/turned/rotate');
    await target.call('POST', 'transit/keys/turned/config', { min_decryption_version: 4, min_encryption_version: 4 });
    await target.call('POST', 'transit/keys/turned/trim', { min_available_version: 2 });
    const ran = await run(['migrate', `--from=${target.url}`, `--state=${state}`, '--format=json'], {
      env: { HOME: '/', TRANSITD_ADDR: peer.url, TRANSITD_TOKEN: peer.token, TRANSITD_SOURCE_TOKEN: target.rootToken },
    });
    expect(outcomeOf(ran, 'transit/turned')).to.include({ state: 'checked', method: 'backup' });
    expect(peer.keys.get('turned')?.settings).to.include({
      min_decryption_version: 4,
      min_encryption_version: 4,
      min_available_version: 2,
    });
  });

  it('moves keys from one transitd to another by backup, and sets up a missing mount', async () => {
    const source = await bench.start({ dataDir: bench.folder() });
    await source.call('POST', 'sys/mounts/team/a', { type: 'transit', description: 'theirs', config: { max_lease_ttl: '2h' } });
    await source.call('POST', 'team/a/keys/one', { type: 'rsa-2048', exportable: true, allow_plaintext_backup: true });
    await source.call('POST', 'team/a/keys/tag', { type: 'aes128-cmac', exportable: true, allow_plaintext_backup: true });
    const ran = await run(['migrate', `--from=${source.url}`, `--state=${state}`, '--mount=team/a', '--format=json'], {
      env: { HOME: '/', TRANSITD_ADDR: target.url, TRANSITD_TOKEN: target.rootToken, TRANSITD_SOURCE_TOKEN: source.rootToken },
    });
    expectCode(ran, 0);
    expect(keysOf(ran).map(({ method, state: found }) => [method, found])).to.deep.equal([
      ['backup', 'checked'],
      ['backup', 'checked'],
    ]);
    const mount = await target.call('GET', 'sys/mounts/team/a');
    expect(mount.text).to.include('theirs').and.include('"ciphertext_prefix":"vault"');
  });

  it('runs the commands of docs/moving.md as they are written', async () => {
    peer.put(new PeerKey('orders', 'aes256-gcm96', open).add());
    const ran = await runBlocks([...shellBlocks('docs/moving.md', 'Look first'), ...shellBlocks('docs/moving.md', 'Move')], {
      replace: { 'https://n1.example:8200': target.url, 'https://vault.example:8200': peer.url },
      files: { 'target-token': target.rootToken, 'source-token': peer.token },
    });
    expect(ran.code, ran.stdout + ran.stderr).to.equal(0);
    expect(ran.stdout)
      .to.match(/^key +transit\/orders +aes256-gcm96 +1 +backup/m)
      .and.match(/^key +transit\/orders +checked +backup +2/m);
  });
});
