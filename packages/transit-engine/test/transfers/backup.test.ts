import { memoryStore, type Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { clockOf } from '../../../process/test/test-clock.ts';
import type { TransitEngine } from '../../src/index.ts';
import { encodeBackup } from '../../src/transfers/backup.ts';
import {
  base64,
  contextOne,
  decryptOne,
  encryptOne,
  everything,
  fox,
  newEngine,
  paths,
  refusalOf,
  startMs,
  storedKey,
  storedVersion,
} from '../fixtures.ts';

describe('backup and restore', () => {
  const restorable = { exportable: true, allowPlaintextBackup: true };

  async function backupOf(engine: TransitEngine, name: string): Promise<string> {
    return (await engine.transfers.backupKey(name)).toString('base64');
  }

  it('restore a key under another name in another engine, with every version, secret and setting', async () => {
    const { engine, store, clock } = newEngine();
    const settings = { ...restorable, derived: true, convergentEncryption: true, autoRotatePeriodS: 7200 };
    await engine.createKey('k', settings);
    const context = contextOne;
    const one = await encryptOne(engine, 'k', { plaintext: fox, context });
    await engine.rotateKey('k');
    await engine.rotateKey('k');
    const hmac = await engine.signing.hmac('k', { input: fox });
    await engine.configureKey('k', { minDecryptionVersion: 2, minEncryptionVersion: 2, deletionAllowed: true });
    await engine.trimKey('k', { minAvailableVersion: 2 });
    await engine.configureKey('k', { minDecryptionVersion: 3, minEncryptionVersion: 3 });
    clock.nowMs += 1000;
    const backup = await backupOf(engine, 'k');
    expect(await engine.readKey('k')).to.deep.include({ backup: { timeMs: startMs + 1000, version: 3 } });

    const other = newEngine();
    other.clock.nowMs += 5000;
    await other.engine.transfers.restoreKey({ backup, name: 'copy' });
    const { name, revision, ...original } = await engine.readKey('k');
    const { name: _, revision: __, restore, ...copy } = await other.engine.readKey('copy');
    expect(copy).to.deep.equal(original);
    expect(restore).to.deep.equal({ timeMs: startMs + 5000, version: 3 });
    expect((await storedKey(other.store, 'copy')).id).to.not.equal((await storedKey(store, 'k')).id);
    expect(await other.engine.signing.hmac('copy', { input: fox })).to.deep.equal(hmac);
    await other.engine.configureKey('copy', { minDecryptionVersion: 2 });
    const two = await encryptOne(engine, 'k', { plaintext: fox, context });
    expect(await encryptOne(other.engine, 'copy', { plaintext: fox, context })).to.deep.equal(two);
    expect(
      (await refusalOf(other.engine.ciphertexts.decrypt('copy', { ciphertext: one.ciphertext, context }))).message,
    ).to.contain('too old');
    expect((await other.engine.rotateKey('copy')).key).to.include({ latestVersion: 4 });
    other.clock.nowMs += 7200_000;
    expect(await other.engine.rotateDue(10)).to.deep.equal({ done: 1, failed: [] });
  });

  for (const type of ['aes128-gcm96', 'chacha20-poly1305', 'hmac', 'aes256-cmac']) {
    it(`work for type ${type}`, async () => {
      const { engine, store } = newEngine();
      await engine.createKey('k', { ...restorable, type });
      await engine.transfers.restoreKey({ backup: await backupOf(engine, 'k'), name: 'copy' });
      expect(await storedVersion(store, 'copy', 1)).to.deep.equal({ ...(await storedVersion(store, 'k', 1)), keyName: 'copy' });
    });
  }

  it('keep an existing key unless forced; then they replace it completely', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', restorable);
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    const backup = await backupOf(engine, 'k');
    await engine.rotateKey('k');
    await engine.configureKey('k', { autoRotatePeriodS: 3600 });
    expect((await refusalOf(engine.transfers.restoreKey({ backup }))).message).to.equal('key "k" already exists');
    await engine.transfers.restoreKey({ backup, force: true });
    expect(await engine.readKey('k')).to.include({ latestVersion: 1, autoRotatePeriodS: 0 });
    expect(await decryptOne(engine, 'k', { ciphertext })).to.deep.equal({ plaintext: fox });
    expect(await engine.sweep(100)).to.include({ removed: 2 });
    expect(Object.keys(await everything(store)).filter((path) => path.startsWith(paths.rotations.prefix))).to.deep.equal([]);
  });

  for (const [sweeper, parts, because] of [
    ['another node', 6, 'two attempts of two parts and a name each'],
    ['this node', 3, 'one attempt'],
  ] as const)
    it(`restore more versions than fit into one transaction, in ${because} if ${sweeper} sweeps meanwhile`, async () => {
      const inner = memoryStore();
      const { engine } = newEngine({ store: inner });
      await engine.createKey('k', restorable);
      const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
      const record = { ...(await storedKey(inner, 'k')), latestVersion: 1500 };
      const first = await storedVersion(inner, 'k', 1);
      const versions = Array.from({ length: 1500 }, (_, index) => ({ ...first, version: index + 1 }));
      const backup = encodeBackup('k', record, versions).toString('base64');
      let commits = 0;
      const store: Store = {
        ...inner,
        commit: async (transaction) => {
          const result = await inner.commit(transaction);
          commits += 1;
          const sweeping = sweeper === 'this node' ? restoring : newEngine({ store: inner }).engine;
          if (commits === 2) while (!(await sweeping.sweep(10_000)).finished);
          return result;
        },
      };
      const restoring = newEngine({ store }).engine;
      await restoring.transfers.restoreKey({ backup, name: 'copy' });
      expect(commits, because).to.equal(parts);
      expect(await decryptOne(restoring, 'copy', { ciphertext })).to.deep.equal({ plaintext: fox });
      expect((await restoring.readKey('copy')).versions).to.have.lengthOf(1500);
      expect(await restoring.sweep(10_000)).to.deep.equal({ removed: 0, finished: true });
    });

  it('refuse a backup that was modified or truncated anywhere, before any write', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', restorable);
    const backup = await engine.transfers.backupKey('k');
    const before = await everything(store);
    for (let at = 0; at < backup.length; at += 7) {
      const changed = Buffer.from(backup);
      changed[at] = (changed[at] ?? 0) ^ 0x10;
      for (const bytes of [changed, backup.subarray(0, at)]) {
        const { code } = await refusalOf(engine.transfers.restoreKey({ backup: bytes.toString('base64') || '=', name: 'copy' }));
        expect(code).to.equal('invalid_request');
      }
    }
    expect(await everything(store)).to.deep.equal(before);
  });

  for (const [fields, because] of [
    [{ junk: 'x'.repeat(1000) }, 'a member that no key has'],
    [{ backup: { timeMs: 1e300, version: 1 } }, 'a backup at no time'],
    [{ backup: { timeMs: -1, version: 1 } }, 'a backup before time'],
    [{ backup: { timeMs: 1, version: 0.5 } }, 'a backup of no version'],
    [{ latestCreatedMs: Number.MAX_SAFE_INTEGER }, 'a creation behind the last date there is'],
  ] as const) {
    it(`refuse ${because}, and write nothing`, async () => {
      const { engine, store } = newEngine();
      await engine.createKey('k', restorable);
      const record = { ...(await storedKey(store, 'k')), ...fields };
      const version = { ...(await storedVersion(store, 'k', 1)), version: 1, createdMs: record.latestCreatedMs };
      const backup = encodeBackup('k', record, [version]).toString('base64');
      const { engine: other, store: empty } = newEngine();
      expect((await refusalOf(other.transfers.restoreKey({ backup }))).code).to.equal('invalid_request');
      expect(await everything(empty)).to.deep.equal({});
    });
  }

  it('store only the time and the version of the last backup', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', restorable);
    const occasion = { timeMs: 1, version: 1, junk: 'x' };
    const record = { ...(await storedKey(store, 'k')), backup: occasion };
    const version = { ...(await storedVersion(store, 'k', 1)), version: 1 };
    await engine.transfers.restoreKey({ backup: encodeBackup('k', record, [version]).toString('base64'), name: 'copy' });
    expect((await storedKey(store, 'copy')).backup).to.deep.equal({ timeMs: 1, version: 1 });
  });

  it('date the restore by the later clock, because the key may have been used elsewhere until then', async () => {
    const source = newEngine();
    await source.engine.createKey('k', restorable);
    const clock = clockOf(
      () => startMs,
      () => startMs - 86_400_000,
    );
    const { engine } = newEngine({ clock });
    await engine.transfers.restoreKey({ backup: await backupOf(source.engine, 'k') });
    expect((await engine.readKey('k')).restore).to.deep.include({ timeMs: startMs });
  });

  it('check the permission for the name in the backup, before any write', async () => {
    const { engine } = newEngine();
    await engine.createKey('k', restorable);
    const backup = await backupOf(engine, 'k');
    const { engine: other, store } = newEngine();
    const mayRestore = (name: string): boolean => name !== 'k';
    expect((await refusalOf(other.transfers.restoreKey({ backup, mayRestore }))).code).to.equal('permission_denied');
    expect(await everything(store)).to.deep.equal({});
    await other.transfers.restoreKey({ backup, name: 'copy', mayRestore });
    expect(await other.keyExists('copy')).to.equal(true);
  });

  it('are refused for a key without permission, an unknown key, and an absent or invalid backup', async () => {
    const { engine } = newEngine();
    await engine.createKey('a', { allowPlaintextBackup: true });
    await engine.createKey('b', { exportable: true });
    const messageOf = async (request: Promise<unknown>) => (await refusalOf(request)).message;
    expect(await messageOf(engine.transfers.backupKey('a'))).to.equal('exporting is disallowed on the policy');
    expect(await messageOf(engine.transfers.backupKey('b'))).to.equal('plaintext backup is disallowed on the policy');
    expect(await messageOf(engine.transfers.backupKey('c'))).to.equal('key "c" not found');
    expect(await messageOf(engine.transfers.restoreKey({}))).to.equal("'backup' must be supplied");
    expect(await messageOf(engine.transfers.restoreKey({ backup: '!!' }))).to.contain('illegal base64');
    expect(await messageOf(engine.transfers.restoreKey({ backup: base64('{}') }))).to.contain('cannot be restored');
    expect(await messageOf(engine.transfers.restoreKey({ backup: base64('null') }))).to.contain('cannot be restored');
  });
});
