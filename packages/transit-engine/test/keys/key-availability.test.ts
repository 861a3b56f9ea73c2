import { generateKeyPairSync } from 'node:crypto';
import { memoryStore, type Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import type { TransitEngine } from '../../src/index.ts';
import { disabledVersionsMax } from '../../src/keys/key-availability.ts';
import { encodeBackup } from '../../src/transfers/backup.ts';
import {
  anything,
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

const hourMs = 3_600_000;
const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const publicPem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
const open = { exportable: true, allowPlaintextBackup: true };

/** An engine with one key of each kind, each with two versions, and what version 1 has made. */
async function withKeys() {
  const { engine, store, clock } = newEngine();
  await engine.createKey('aes', open);
  await engine.createKey('pair', { ...open, type: 'ecdsa-p256' });
  await engine.createKey('mac', { ...open, type: 'aes256-cmac' });
  await engine.createKey('derived', { ...open, derived: true });
  await engine.transfers.importKey('half', { type: 'rsa-2048', publicKey: publicPem });
  await engine.transfers.importKey('wrapper', { type: 'rsa-2048', publicKey: publicPem });
  const { ciphertext } = await encryptOne(engine, 'aes', { plaintext: fox });
  const { signature } = one(await engine.signing.sign('pair', { input: fox }));
  const { hmac } = one(await engine.signing.hmac('aes', { input: fox }));
  const { cmac } = one(await engine.signing.cmac('mac', { input: fox }));
  for (const name of ['aes', 'pair', 'mac', 'derived']) await engine.rotateKey(name);
  return { engine, store, clock, made: { ciphertext, signature, hmac, cmac } };
}

function one<R>(reply: R): Exclude<R, { readonly results: unknown }> {
  return reply as Exclude<R, { readonly results: unknown }>;
}

type Made = Awaited<ReturnType<typeof withKeys>>['made'];
type Use = readonly [name: string, use: (engine: TransitEngine, made: Made) => Promise<unknown>];

/** Uses of version 1 of a key. */
const usesOfVersion: Readonly<Record<string, Use>> = {
  encrypt: ['aes', (engine) => engine.ciphertexts.encrypt('aes', { plaintext: fox, keyVersion: 1, ...anything })],
  decrypt: ['aes', (engine, { ciphertext }) => engine.ciphertexts.decrypt('aes', { ciphertext })],
  rewrap: ['aes', (engine, { ciphertext }) => engine.ciphertexts.rewrap('aes', { ciphertext })],
  datakey: ['aes', (engine) => engine.ciphertexts.datakey('aes', { kind: 'wrapped', keyVersion: 1 })],
  datakeys: ['aes', (engine) => engine.ciphertexts.datakeys('aes', { kind: 'plaintext', count: 2, keyVersion: 1 })],
  'encrypt under a derived key': [
    'derived',
    (engine) => engine.ciphertexts.encrypt('derived', { plaintext: fox, context: contextOne, keyVersion: 1, ...anything }),
  ],
  sign: ['pair', (engine) => engine.signing.sign('pair', { input: fox, keyVersion: 1 })],
  'verify a signature': ['pair', (engine, { signature }) => engine.signing.verify('pair', { input: fox, signature })],
  hmac: ['aes', (engine) => engine.signing.hmac('aes', { input: fox, keyVersion: 1 })],
  'verify an HMAC': ['aes', (engine, { hmac }) => engine.signing.verify('aes', { input: fox, hmac })],
  cmac: ['mac', (engine) => engine.signing.cmac('mac', { input: fox, keyVersion: 1 })],
  'verify a CMAC': ['mac', (engine, { cmac }) => engine.signing.verify('mac', { input: fox, cmac })],
  csr: ['pair', (engine) => engine.certificates.request('pair', { version: '1' })],
  'set-certificate': ['pair', (engine) => engine.certificates.setChain('pair', { version: '1', chain: 'none' })],
  export: ['aes', (engine) => engine.transfers.exportKey('aes', { exportType: 'encryption-key', version: '1' })],
  'export of the public key': [
    'pair',
    (engine) => engine.transfers.exportKey('pair', { exportType: 'public-key', version: 'v1' }),
  ],
  'byok-export': ['aes', (engine) => engine.transfers.wrapForTransfer('aes', { destination: 'wrapper', version: '1' })],
};

/** Uses of a key that name no version. */
const usesOfKey: Readonly<Record<string, Use>> = {
  ...usesOfVersion,
  'encrypt without a version': ['aes', (engine) => encryptOne(engine, 'aes', { plaintext: fox })],
  'a batch': [
    'aes',
    (engine) => engine.ciphertexts.encrypt('aes', { items: [{ plaintext: fox }, { plaintext: fox }], ...anything }),
  ],
  rotate: ['pair', (engine) => engine.rotateKey('pair')],
  import_version: ['half', (engine) => engine.transfers.importVersion('half', { publicKey: publicPem })],
  'export of all versions': ['aes', (engine) => engine.transfers.exportKey('aes', { exportType: 'hmac-key' })],
  'byok-export under it': ['wrapper', (engine) => engine.transfers.wrapForTransfer('aes', { destination: 'wrapper' })],
};

describe('a soft-deleted key', () => {
  for (const [title, [name, use]] of Object.entries(usesOfKey))
    it(`refuses to be used, until it is restored: ${title}`, async () => {
      const { engine, store, made } = await withKeys();
      const before = await use(engine, made).catch((error: unknown) => error);
      const { key, warnings } = await engine.softDeleteKey(name);
      expect(key.softDeleted).to.equal(true);
      expect(warnings).to.deep.equal([]);
      const state = await everything(store);
      expect(await refusalOf(use(engine, made))).to.deep.equal({
        code: 'soft_deleted',
        message: 'refusing to use soft-deleted key',
      });
      expect(await everything(store)).to.deep.equal(state);
      expect((await engine.restoreDeletedKey(name)).key).not.to.have.property('softDeleted');
      const after = await use(engine, made).catch((error: unknown) => error);
      expect(after instanceof Error).to.equal(before instanceof Error);
    });

  it('says when it was soft-deleted or restored already, and changes nothing then', async () => {
    const { engine } = await withKeys();
    expect((await engine.restoreDeletedKey('aes')).warnings).to.deep.equal(['key was already restored']);
    const { key } = await engine.softDeleteKey('aes');
    expect(await engine.softDeleteKey('aes')).to.deep.equal({ key, warnings: ['key was already marked as soft deleted'] });
    for (const change of [engine.softDeleteKey('none'), engine.restoreDeletedKey('none')])
      expect(await refusalOf(change)).to.include({ code: 'key_not_found' });
  });

  it('is read, listed, configured, trimmed, backed up and deleted', async () => {
    const { engine } = await withKeys();
    await engine.softDeleteKey('aes');
    expect(await engine.readKey('aes')).to.include({ softDeleted: true, latestVersion: 2 });
    expect(await engine.listKeys()).to.include('aes');
    expect((await engine.createKey('aes', {})).warnings).to.deep.equal([]);
    const minimums = { minDecryptionVersion: 2, minEncryptionVersion: 2, deletionAllowed: true };
    expect((await engine.configureKey('aes', minimums)).key).to.include({ softDeleted: true });
    expect((await engine.trimKey('aes', { minAvailableVersion: 2 })).key).to.include({ softDeleted: true });
    const backup = (await engine.transfers.backupKey('aes')).toString('base64');
    await engine.deleteKey('aes');
    await engine.transfers.restoreKey({ backup });
    expect(await engine.readKey('aes')).to.include({ softDeleted: true });
    expect(await refusalOf(encryptOne(engine, 'aes', { plaintext: fox }))).to.include({ code: 'soft_deleted' });
  });

  it('is not rotated automatically, of which its deletion warns, and rotates after its restore', async () => {
    const { engine, store, clock } = newEngine();
    await engine.createKey('k', { autoRotatePeriodS: 3600 });
    const { warnings } = await engine.softDeleteKey('k');
    expect(warnings).to.deep.equal(['the key is not rotated automatically while it is soft-deleted']);
    clock.nowMs = startMs + 2 * hourMs;
    expect(await engine.rotateDue(10)).to.deep.equal({ done: 0, failed: [] });
    await engine.configureKey('k', { autoRotatePeriodS: 7200 });
    expect(Object.keys(await everything(store)).filter((path) => path.startsWith(paths.rotations.prefix))).to.deep.equal([]);
    await engine.restoreDeletedKey('k');
    expect(await engine.rotateDue(10)).to.deep.equal({ done: 1, failed: [] });
  });

  it('loses no versions by trim_after before it is restored', async () => {
    const { engine, clock } = newEngine();
    await engine.createKey('k', {});
    await engine.rotateKey('k');
    await engine.configureKey('k', { keepDecryptionVersions: 1, trimAfterS: 3600 });
    expect((await engine.softDeleteKey('k')).key.nextTrim).to.equal(undefined);
    clock.nowMs += 2 * hourMs;
    expect(await engine.trimDue(10, () => true)).to.deep.equal({ done: 0, failed: [] });
    await engine.restoreDeletedKey('k');
    expect(await engine.trimDue(10, () => true)).to.deep.equal({ done: 1, failed: [] });
  });
});

describe('a disabled version', () => {
  for (const [title, [name, use]] of Object.entries(usesOfVersion))
    it(`refuses to be used, until it is enabled: ${title}`, async () => {
      const { engine, store, made } = await withKeys();
      const before = await use(engine, made).catch((error: unknown) => error);
      const { key } = await engine.disableVersion(name, { version: 1, reason: 'leaked' });
      expect(key.disabledVersions).to.deep.equal({ 1: { reason: 'leaked', timeMs: startMs } });
      const state = await everything(store);
      expect(await refusalOf(use(engine, made))).to.deep.equal({
        code: 'key_version_unavailable',
        message: 'key version 1 is disabled',
      });
      expect(await everything(store)).to.deep.equal(state);
      expect((await engine.enableVersion(name, 1)).key).not.to.have.property('disabledVersions');
      const after = await use(engine, made).catch((error: unknown) => error);
      expect(after instanceof Error).to.equal(before instanceof Error);
    });

  it('leaves every other version as it was', async () => {
    const { engine } = await withKeys();
    await engine.disableVersion('aes', { version: 1 });
    const { ciphertext } = await encryptOne(engine, 'aes', { plaintext: fox });
    expect(ciphertext).to.match(/^svc:v2:/);
    expect(await decryptOne(engine, 'aes', { ciphertext })).to.deep.equal({ plaintext: fox });
    expect((await engine.readKey('aes')).versions.map(({ version }) => version)).to.deep.equal([1, 2]);
  });

  it('fails alone in a batch', async () => {
    const { engine, made } = await withKeys();
    await engine.disableVersion('aes', { version: 1 });
    const { ciphertext } = await encryptOne(engine, 'aes', { plaintext: fox });
    const items = [{ ciphertext: made.ciphertext }, { ciphertext }];
    expect(await engine.ciphertexts.decrypt('aes', { items })).to.deep.equal({
      results: [
        { error: 'key version 1 is disabled', reference: '' },
        { plaintext: fox, reference: '' },
      ],
      outcome: 'some_failed',
    });
  });

  it('is left out of an export of all versions, with a warning', async () => {
    const { engine } = await withKeys();
    await engine.disableVersion('aes', { version: 1 });
    for (const { versions, warnings } of [
      await engine.transfers.exportKey('aes', { exportType: 'encryption-key' }),
      await engine.transfers.wrapForTransfer('aes', { destination: 'wrapper' }),
    ]) {
      expect(versions.map(({ version }) => version)).to.deep.equal([2]);
      expect(warnings).to.deep.equal(['disabled versions were left out: 1']);
    }
  });

  for (const [version, reason, refusal] of [
    [2, '', 'version 2 is the latest and cannot be disabled: rotate the key first'],
    [0, '', 'no such key version'],
    [3, '', 'no such key version'],
    [1, 'a'.repeat(129), 'reason must be printable and have at most 128 characters'],
    [1, 'a\nb', 'reason must be printable and have at most 128 characters'],
    [1, '\ud800', 'reason must be printable and have at most 128 characters'],
  ] as const)
    it(`cannot be version ${version} of 2 for the reason ${JSON.stringify(reason).slice(0, 20)}: ${refusal}`, async () => {
      const { engine, store } = await withKeys();
      const before = await everything(store);
      expect((await refusalOf(engine.disableVersion('aes', { version, reason }))).message).to.equal(refusal);
      expect(await everything(store)).to.deep.equal(before);
    });

  it('keeps its reason and time when it is disabled again', async () => {
    const { engine, clock } = await withKeys();
    const { key } = await engine.disableVersion('aes', { version: 1, reason: 'leaked' });
    clock.nowMs += 1;
    expect(await engine.disableVersion('aes', { version: 1, reason: 'other' })).to.deep.equal({
      key,
      warnings: ['version 1 was already disabled'],
    });
    await engine.enableVersion('aes', 1);
    expect((await engine.enableVersion('aes', 1)).warnings).to.deep.equal(['version 1 was already enabled']);
  });

  it('is forgotten when it is trimmed', async () => {
    const { engine, store } = await withKeys();
    await engine.disableVersion('aes', { version: 1 });
    await engine.configureKey('aes', { minDecryptionVersion: 2, minEncryptionVersion: 2 });
    expect(await storedKey(store, 'aes')).to.have.property('disabledVersions');
    expect((await engine.trimKey('aes', { minAvailableVersion: 2 })).key).not.to.have.property('disabledVersions');
    expect(await refusalOf(engine.enableVersion('aes', 1))).to.include({ code: 'key_version_unavailable' });
  });

  it('stays disabled through a backup and a rotation', async () => {
    const { engine } = await withKeys();
    await engine.disableVersion('aes', { version: 1, reason: 'leaked' });
    const backup = (await engine.transfers.backupKey('aes')).toString('base64');
    await engine.transfers.restoreKey({ backup, name: 'copy' });
    const { key } = await engine.rotateKey('copy');
    expect(key.disabledVersions).to.deep.equal({ 1: { reason: 'leaked', timeMs: startMs } });
  });

  it(`is one of at most ${disabledVersionsMax}, whose longest reasons fit into a backup`, async () => {
    const { engine } = newEngine();
    await engine.createKey('k', open);
    for (let version = 1; version <= disabledVersionsMax + 1; version++) {
      await engine.rotateKey('k');
      const disabling = engine.disableVersion('k', { version, reason: '"'.repeat(128) });
      if (version <= disabledVersionsMax) await disabling;
      else expect((await refusalOf(disabling)).message).to.match(/^at most 100 versions of a key can be disabled/);
    }
    const backup = (await engine.transfers.backupKey('k')).toString('base64');
    await engine.transfers.restoreKey({ backup, name: 'copy' });
    expect(Object.keys((await engine.readKey('copy')).disabledVersions ?? {})).to.have.length(disabledVersionsMax);
  });

  for (const [because, disabledVersions] of [
    ['the latest version', { 2: { reason: '', timeMs: 1 } }],
    ['a version that no key has', { 9: { reason: '', timeMs: 1 } }],
    ['an unprintable reason', { 1: { reason: '\u0007', timeMs: 1 } }],
    ['a time before time', { 1: { reason: '', timeMs: -1 } }],
  ] as const)
    it(`of a backup is refused, and nothing written: ${because}`, async () => {
      const { engine, store } = await withKeys();
      const record = { ...(await storedKey(store, 'aes')), disabledVersions };
      const versions = await Promise.all(
        [1, 2].map(async (version) => ({ ...(await storedVersion(store, 'aes', version)), version })),
      );
      const backup = encodeBackup('aes', record, versions).toString('base64');
      const before = await everything(store);
      expect(await refusalOf(engine.transfers.restoreKey({ backup, name: 'copy' }))).to.include({ code: 'invalid_request' });
      expect(await everything(store)).to.deep.equal(before);
    });
});

const [weekS, dayMs] = [7 * 86_400, 24 * hourMs];
const always = (): boolean => true;

describe('a scheduled deletion', () => {
  async function scheduled(options: Parameters<typeof newEngine>[0] = {}) {
    const made = newEngine(options);
    await made.engine.createKey('k', { ...open, autoRotatePeriodS: 3600 });
    await made.engine.configureKey('k', { deletionAllowed: true });
    const answer = await made.engine.scheduleDeletion('k', weekS);
    return { ...made, answer, dueMs: startMs + 7 * dayMs };
  }
  const deletionsIn = async (store: Store) =>
    Object.keys(await everything(store))
      .filter((path) => path.startsWith(paths.deletions.prefix))
      .map((path) => paths.deletions.parse(path));

  it('soft-deletes the key now, and deletes it once, when it is due', async () => {
    const { engine, store, clock, answer, dueMs } = await scheduled();
    expect(answer.key).to.include({ softDeleted: true, scheduledDeletionMs: dueMs });
    expect(answer.warnings).to.deep.equal(['the key is not rotated automatically while it is soft-deleted']);
    expect(await refusalOf(encryptOne(engine, 'k', { plaintext: fox }))).to.include({ code: 'soft_deleted' });
    expect(await deletionsIn(store)).to.deep.equal([{ dueMs, name: 'k' }]);
    clock.nowMs = dueMs - 1;
    expect(await engine.deleteDue(10, always)).to.deep.equal({ done: 0, failed: [] });
    clock.nowMs = dueMs;
    expect(await engine.deleteDue(10, () => false), 'the state was restored').to.deep.equal({ done: 0, failed: [] });
    const outcomes: unknown[] = [];
    for (let round = 0; round < 2; round++)
      await engine.deleteDue(10, always, async (name, remove) => {
        const version = await remove();
        outcomes.push([name, version]);
        return version;
      });
    expect(outcomes).to.deep.equal([['k', 1]]);
    expect(await engine.keyExists('k')).to.equal(false);
    expect((await engine.sweep(100)).removed).to.equal(1);
    expect(Object.keys(await everything(store))).to.deep.equal([]);
  });

  it('happens once when several nodes try at the same time', async () => {
    const { store, dueMs } = await scheduled();
    const nodes = [newEngine({ store }), newEngine({ store }), newEngine({ store })];
    for (const { clock } of nodes) clock.nowMs = dueMs;
    const outcomes = await Promise.all(nodes.map(({ engine }) => engine.deleteDue(10, always)));
    expect(outcomes.reduce((sum, { done }) => sum + done, 0)).to.equal(1);
  });

  it('waits until both clocks agree that it is due', async () => {
    const readings = { ahead: startMs, behind: startMs };
    const clock = { nowMs: () => 0, utcMs: () => readings.ahead, dueMs: () => readings.behind };
    readings.ahead += dayMs;
    const { engine } = await scheduled({ clock });
    const dueMs = startMs + 8 * dayMs;
    expect(await engine.readKey('k')).to.include({ scheduledDeletionMs: dueMs });
    readings.ahead = dueMs + dayMs;
    readings.behind = dueMs - 1;
    expect(await engine.deleteDue(10, always)).to.include({ done: 0 });
    readings.behind = dueMs;
    expect(await engine.deleteDue(10, always)).to.include({ done: 1 });
  });

  for (const afterS of [0, -1, weekS - 1, 90 * 86_400 + 1])
    it(`is refused for ${afterS} s`, async () => {
      const { engine, store } = await withKeys();
      await engine.configureKey('aes', { deletionAllowed: true });
      const before = await everything(store);
      expect((await refusalOf(engine.scheduleDeletion('aes', afterS))).message).to.equal('after must be from 7 to 90 days');
      expect(await everything(store)).to.deep.equal(before);
    });

  it('needs deletion_allowed when it is scheduled', async () => {
    const { engine } = await withKeys();
    expect(await refusalOf(engine.scheduleDeletion('aes', weekS))).to.include({ code: 'deletion_not_allowed' });
    expect(await engine.readKey('aes')).not.to.have.property('softDeleted');
  });

  it('ends without a deletion if deletion_allowed is false when it is due', async () => {
    const { engine, store, clock, dueMs } = await scheduled();
    await engine.configureKey('k', { deletionAllowed: false });
    clock.nowMs = dueMs;
    const { done, failed } = await engine.deleteDue(10, always);
    expect(done).to.equal(0);
    expect(failed.map(({ name, error }) => `${name}: ${error}`)).to.deep.equal([
      'k: TransitError: its deletion_allowed is false: the schedule ended, and the key stays soft-deleted',
    ]);
    clock.nowMs += dayMs;
    expect(await engine.deleteDue(10, always)).to.deep.equal({ done: 0, failed: [] });
    expect(await engine.readKey('k'))
      .to.include({ softDeleted: true })
      .and.not.to.have.property('scheduledDeletionMs');
    expect(await deletionsIn(store)).to.deep.equal([]);
  });

  it('is replaced by another one, of which the answer warns', async () => {
    const { engine, store, clock, dueMs } = await scheduled();
    clock.nowMs += hourMs;
    const { key, warnings } = await engine.scheduleDeletion('k', 2 * weekS);
    expect(key.scheduledDeletionMs).to.equal(startMs + hourMs + 14 * dayMs);
    expect(warnings).to.deep.equal([`replaces the deletion that was scheduled for ${new Date(dueMs).toISOString()}`]);
    expect(await deletionsIn(store)).to.deep.equal([{ dueMs: startMs + hourMs + 14 * dayMs, name: 'k' }]);
  });

  it('is cancelled by a restore and by a deletion, and is not part of a backup', async () => {
    const { engine, store, clock, dueMs } = await scheduled();
    const backup = (await engine.transfers.backupKey('k')).toString('base64');
    expect((await engine.restoreDeletedKey('k')).key).not.to.have.any.keys('softDeleted', 'scheduledDeletionMs');
    expect(await deletionsIn(store)).to.deep.equal([]);
    await engine.scheduleDeletion('k', weekS);
    await engine.transfers.restoreKey({ backup, force: true });
    expect(await engine.readKey('k'))
      .to.include({ softDeleted: true })
      .and.not.to.have.property('scheduledDeletionMs');
    expect(await deletionsIn(store)).to.deep.equal([]);
    await engine.scheduleDeletion('k', weekS);
    await engine.deleteKey('k');
    await engine.createKey('k', {});
    clock.nowMs = dueMs + dayMs;
    expect(await engine.deleteDue(10, always)).to.deep.equal({ done: 0, failed: [] });
    expect(await engine.keyExists('k')).to.equal(true);
  });

  for (const [title, change] of [
    ['restored', (other: TransitEngine) => other.restoreDeletedKey('k')],
    ['scheduled for a later time', (other: TransitEngine) => other.scheduleDeletion('k', 2 * weekS)],
  ] as const)
    for (const moment of ['before it is recorded', 'before it is written'] as const)
      it(`does not delete a key that is ${title} by another node ${moment}`, async () => {
        const { store: inner, dueMs } = await scheduled();
        const other = newEngine({ store: inner });
        other.clock.nowMs = dueMs;
        let isOvertaken = moment === 'before it is recorded';
        const store: Store = {
          ...inner,
          commit: async (transaction) => {
            if (!isOvertaken) {
              isOvertaken = true;
              await change(other.engine);
            }
            return inner.commit(transaction);
          },
        };
        const { engine, clock } = newEngine({ store });
        clock.nowMs = dueMs;
        const { done } = await engine.deleteDue(10, always, async (_, remove) => {
          if (moment === 'before it is recorded') await change(other.engine);
          return remove();
        });
        expect(done).to.equal(0);
        expect(await engine.keyExists('k')).to.equal(true);
      });

  it('does not happen after a restore of the cluster that takes effect while it is recorded', async () => {
    const { engine, clock, dueMs } = await scheduled();
    clock.nowMs = dueMs;
    let mayDestroy = true;
    const { done } = await engine.deleteDue(
      10,
      () => mayDestroy,
      async (_, remove) => {
        mayDestroy = false;
        return remove();
      },
    );
    expect(done).to.equal(0);
    expect(await engine.keyExists('k')).to.equal(true);
  });

  it('continues after a key that cannot be deleted', async () => {
    const { engine, store, clock, dueMs } = await scheduled();
    await engine.createKey('a', {});
    await engine.configureKey('a', { deletionAllowed: true });
    await engine.scheduleDeletion('a', weekS);
    await store.commit({ conditions: [], writes: [{ path: paths.key('a'), value: Buffer.from('damaged') }] });
    clock.nowMs = dueMs;
    const { done, failed } = await engine.deleteDue(10, always);
    expect(done).to.equal(1);
    expect(failed.map(({ name }) => name)).to.deep.equal(['a']);
  });
});

describe('a change of availability that meets another node', () => {
  /** A node whose first commit is preceded by a change of another node. */
  async function overtaken(change: (other: TransitEngine) => Promise<unknown>) {
    const inner = memoryStore();
    const other = newEngine({ store: inner }).engine;
    await other.createKey('k', {});
    await other.rotateKey('k');
    let isOvertaken = false;
    const store: Store = {
      ...inner,
      commit: async (transaction) => {
        if (!isOvertaken) {
          isOvertaken = true;
          await change(other);
        }
        return inner.commit(transaction);
      },
    };
    return { engine: newEngine({ store }).engine, other };
  }

  it('does not disable a version that another node trimmed', async () => {
    const { engine } = await overtaken(async (other) => {
      await other.configureKey('k', { minDecryptionVersion: 2, minEncryptionVersion: 2 });
      await other.trimKey('k', { minAvailableVersion: 2 });
    });
    expect(await refusalOf(engine.disableVersion('k', { version: 1 }))).to.include({ code: 'key_version_unavailable' });
  });

  it('keeps the rotation of another node', async () => {
    const { engine, other } = await overtaken((node) => node.rotateKey('k'));
    await engine.disableVersion('k', { version: 1 });
    expect(await other.readKey('k')).to.deep.include({
      latestVersion: 3,
      disabledVersions: { 1: { reason: '', timeMs: startMs } },
    });
  });

  it('lets no rotation undo a soft deletion', async () => {
    const { engine, other } = await overtaken((node) => node.softDeleteKey('k'));
    expect(await refusalOf(engine.rotateKey('k'))).to.include({ code: 'soft_deleted' });
    expect(await other.readKey('k')).to.include({ softDeleted: true, latestVersion: 2 });
  });

  for (const [title, change] of [
    ['soft deletion', (other: TransitEngine) => other.softDeleteKey('k')],
    ['disabled version', (other: TransitEngine) => other.disableVersion('k', { version: 1 })],
  ] as const)
    it(`is obeyed by every request that begins after it was applied, although the node had cached the key: ${title}`, async () => {
      const store = memoryStore();
      const [node, other] = [newEngine({ store }).engine, newEngine({ store }).engine];
      await node.createKey('k', {});
      const { ciphertext } = await encryptOne(node, 'k', { plaintext: fox });
      await node.rotateKey('k');
      await decryptOne(other, 'k', { ciphertext });
      await change(node);
      await refusalOf(decryptOne(other, 'k', { ciphertext }));
      await refusalOf(encryptOne(other, 'k', { plaintext: fox, keyVersion: 1 }));
    });

  it('is obeyed by a key whose load began before it', async () => {
    const inner = memoryStore();
    const other = newEngine({ store: inner }).engine;
    await other.createKey('k', {});
    let release = (): void => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    let loads = 0;
    const store: Store = {
      ...inner,
      get: async (path) => {
        const found = await inner.get(path);
        if (path === paths.key('k') && loads++ === 0) await gate;
        return found;
      },
    };
    const { engine } = newEngine({ store });
    const early = engine.signing.hmac('k', { input: fox });
    await other.softDeleteKey('k');
    const late = refusalOf(encryptOne(engine, 'k', { plaintext: fox }));
    release();
    expect(await early, 'it began before the deletion').to.include({ keyVersion: 1 });
    expect(await late).to.include({ code: 'soft_deleted' });
    expect(await refusalOf(encryptOne(engine, 'k', { plaintext: fox }))).to.include({ code: 'soft_deleted' });
  });
});
