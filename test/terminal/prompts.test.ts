// @live
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { PeerKey } from '../migrate/peer-key.ts';
import { StubPeer } from '../migrate/stub-peer.ts';
import { type LiveServer, processMs, Workbench } from '../process/live-server.ts';
import { PseudoTerminal } from './pseudo-terminal.ts';

describe('the prompts of the command line, on a terminal', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let server: LiveServer;
  let folder = '';
  let env: Record<string, string>;
  before(async () => {
    folder = bench.folder();
    server = await bench.start({ dataDir: bench.folder() });
    env = { HOME: folder, TRANSITD_ADDR: server.url, TRANSITD_TOKEN: server.rootToken };
  });
  after(() => bench.clean());

  it('take a password without showing it', async () => {
    await server.call('POST', 'sys/auth/userpass', { type: 'userpass' });
    await server.call('POST', 'auth/userpass/users/alice', { password: 'the s3cret wörds' });
    const terminal = new PseudoTerminal(['login', '-method=userpass', '-no-store', 'username=alice'], env);
    await terminal.answer('assword', 'the s3cret wörds\r');
    expect(await terminal.end(), terminal.shown).to.equal(0);
    expect(terminal.shown)
      .to.match(/token_policies/)
      .and.not.include('s3cret');
  });

  it('take the passphrase of a PKCS#12 file', async () => {
    const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' });
    writeFileSync(join(folder, 'key.pem'), key);
    const options = ['-inkey', 'key.pem', '-nocerts', '-out', 'key.p12', '-passout', 'pass:open s3same'];
    execFileSync('openssl', ['pkcs12', '-export', ...options], { cwd: folder, stdio: 'pipe' });
    const terminal = new PseudoTerminal(['key', 'import', 'signer', `@${join(folder, 'key.p12')}`], env);
    await terminal.answer('Passphrase', 'open s3same\r');
    expect(await terminal.end(), terminal.shown).to.equal(0);
    expect(terminal.shown)
      .to.match(/Imported key signer/)
      .and.not.include('s3same');
    expect((await server.call('GET', 'transit/keys/signer')).at('data.type')).to.equal('ecdsa-p256');
  });

  it('end with the interrupt key, and change nothing', async () => {
    const terminal = new PseudoTerminal(['key', 'import', 'never', `@${join(folder, 'key.p12')}`], env);
    await terminal.answer('Passphrase', 'open\u0003');
    expect(await terminal.end(), terminal.shown).to.equal(1);
    expect(terminal.shown).to.match(/interrupted/);
    expect((await server.call('GET', 'transit/keys/never')).status).to.equal(404);
  });

  it('ask before something is deleted for good, and take only yes for an answer', async () => {
    await server.call('POST', 'sys/mounts/doomed', { type: 'transit' });
    await server.call('POST', 'doomed/keys/old');
    await server.call('POST', 'doomed/keys/old/rotate');
    await server.call('POST', 'doomed/keys/old/config', {
      min_decryption_version: 2,
      min_encryption_version: 2,
      deletion_allowed: true,
    });
    const isThere = async (path: string): Promise<boolean> => (await server.call('GET', path)).status === 200;
    for (const [args, question, isDone] of [
      [
        ['key', 'trim', 'old', '2', '--mount=doomed', '--unless-used-within=0'],
        'the versions of the key old below 2?',
        async () => (await server.call('GET', 'doomed/keys/old')).at('data.min_available_version') === 2,
      ],
      [
        ['key', 'delete', 'old', '--mount=doomed', '--unless-used-within=0'],
        'Delete the key old?',
        async () => !(await isThere('doomed/keys/old')),
      ],
      [['secrets', 'disable', 'doomed'], 'Delete all keys of doomed?', async () => !(await isThere('sys/mounts/doomed'))],
    ] as const) {
      const careful = new PseudoTerminal(args, env);
      await careful.answer(question, 'y\r');
      expect(await careful.end(), careful.shown).to.equal(1);
      expect(careful.shown).to.include('nothing was changed');
      expect(await isDone(), args.join(' ')).to.equal(false);
      const agreed = new PseudoTerminal(args, env);
      await agreed.answer(question, 'yes\r');
      expect(await agreed.end(), agreed.shown).to.equal(0);
      expect(await isDone(), args.join(' ')).to.equal(true);
    }
    await server.call('POST', 'transit/keys/rotten');
    await server.call('POST', 'transit/keys/rotten/config', { deletion_allowed: true });
    expect(await new PseudoTerminal(['key', 'delete', 'rotten', '--yes', '--unless-used-within=0'], env).end()).to.equal(0);
    expect(await isThere('transit/keys/rotten')).to.equal(false);
  });

  it('ask before they change a key at the source of a move, and take only yes for an answer', async () => {
    const peer = await new StubPeer().start();
    try {
      const key = peer.put(new PeerKey('locked', 'aes256-gcm96').add());
      const args = ['migrate', `--from=${peer.url}`, `--state=${join(folder, 'state.json')}`];
      const careful = new PseudoTerminal(args, env);
      await careful.answer('Token of the source', `${peer.token}\r`);
      await careful.answer('Set exportable', 'y\r');
      await careful.answer('Set allow_plaintext_backup', 'no\r');
      expect(await careful.end(), careful.shown).to.equal(2);
      expect(careful.shown).not.to.include(peer.token);
      expect(key.settings).to.include({ exportable: false, allow_plaintext_backup: false });
      const agreed = new PseudoTerminal(args, { ...env, TRANSITD_SOURCE_TOKEN: peer.token });
      await agreed.answer('Set exportable', 'yes\r');
      await agreed.answer('Set allow_plaintext_backup', 'yes\r');
      expect(await agreed.end(), 'the mount of the target had a key, so it keeps its settings').to.equal(2);
      expect(agreed.shown).to.match(/transit\/locked +checked +backup/);
      expect(key.settings).to.include({ exportable: true, allow_plaintext_backup: true });
      expect(agreed.shown).to.match(/\[[#.]{24}\] +\d+ % transit\/locked/);
    } finally {
      peer.stop();
    }
  });
});
