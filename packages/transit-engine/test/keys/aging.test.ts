import { memoryStore, type Store } from '@transitd/storage-fsm';
import { expect } from 'chai';
import fc from 'fast-check';
import { clockOf } from '../../../process/test/test-clock.ts';
import { type ConfigureKeyRequest, type Confirmation, TransitEngine, TransitError } from '../../src/index.ts';
import { deletesEarlier } from '../../src/keys/aging.ts';
import { settingsOf } from '../../src/keys/key.ts';
import { configureKey } from '../../src/keys/key-config.ts';
import { decodeKeyRecord, encodeKeyRecord, type KeyRecord } from '../../src/keys/key-record.ts';
import { encodeBackup } from '../../src/transfers/backup.ts';
import {
  decryptOne,
  encryptOne,
  everything,
  fox,
  mountId,
  newEngine,
  paths,
  refusalOf,
  startMs,
  storedKey,
} from '../fixtures.ts';

const hourS = 3600;
const hourMs = hourS * 1000;
const always = (): boolean => true;
const settings = { exportable: true, allowPlaintextBackup: true };

/** Returns a key with five versions and the given fields. */
const recordWith = (fields: Partial<KeyRecord> = {}): KeyRecord => ({
  ...{ id: 'ab', ...settingsOf({}), latestVersion: 5 },
  ...fields,
});
const configured = (fields: Partial<KeyRecord>, request: ConfigureKeyRequest) =>
  configureKey(paths, { name: 'k', revision: 9, record: recordWith(fields) }, request, startMs);
const trimsIn = async (store: Store) =>
  Object.keys(await everything(store))
    .filter((path) => path.startsWith(paths.trims.prefix))
    .map((path) => paths.trims.parse(path));

describe('settings by which versions age', () => {
  const kept = (keepEncryptionVersions: number, keepDecryptionVersions: number, trimAfterS = 0): Partial<KeyRecord> => ({
    aging: { keepEncryptionVersions, keepDecryptionVersions, trimAfterS, retired: [] },
  });
  const range = 'must be from 0, which disables it, to 1000000';

  for (const [request, message, fields = {}] of [
    [{ keepEncryptionVersions: -1 }, `keep_encryption_versions ${range}`],
    [{ keepDecryptionVersions: -1 }, `keep_decryption_versions ${range}`],
    [{ keepEncryptionVersions: 1_000_001 }, `keep_encryption_versions ${range}`],
    [{ keepDecryptionVersions: 2 ** 60 }, `keep_decryption_versions ${range}`],
    [{ keepDecryptionVersions: 1.5 }, `keep_decryption_versions ${range}`],
    [{ trimAfterS: -1 }, 'trim_after must be 0 to disable or at least an hour'],
    [{ trimAfterS: 3599 }, 'trim_after must be 0 to disable or at least an hour'],
    [{ trimAfterS: Number.MAX_VALUE }, 'trim_after must be 0 to disable or at least an hour'],
    [
      { keepEncryptionVersions: 3, keepDecryptionVersions: 2 },
      'keep_encryption_versions of 3 must not exceed keep_decryption_versions of 2',
    ],
    [{ keepEncryptionVersions: 3 }, 'must not exceed keep_decryption_versions of 2', kept(0, 2)],
    [{ keepDecryptionVersions: 1 }, 'keep_encryption_versions of 2 must not exceed', kept(2, 3)],
    [
      { keepDecryptionVersions: 2, minDecryptionVersion: 3 },
      'min_decryption_version of 3 is below version 4, the oldest that keep_decryption_versions of 2 keeps',
    ],
    [{ minDecryptionVersion: 0 }, 'min_decryption_version of 0 is below version 4', kept(0, 2)],
    [
      { minEncryptionVersion: 4 },
      'min_encryption_version of 4 is below version 5, the oldest that keep_encryption_versions of 1 keeps',
      kept(1, 0),
    ],
    [{ keepEncryptionVersions: 9, minEncryptionVersion: 0 }, 'min_encryption_version of 0 is below version 1'],
    [{ minEncryptionVersion: 0 }, 'min_encryption_version cannot be 0 while trim_after is set', kept(0, 0, hourS)],
    [{ trimAfterS: hourS }, 'trim_after cannot be used with managed keys', { type: 'managed_key' }],
  ] as const satisfies readonly (readonly [ConfigureKeyRequest, string, Partial<KeyRecord>?])[])
    it(`are refused: ${JSON.stringify(request)} on ${JSON.stringify(fields)}`, () => {
      expect(() => configured(fields, request)).to.throw(TransitError, message);
    });

  for (const [what, fields, request, minimums] of [
    ['keep versions that decrypt', {}, { keepDecryptionVersions: 2 }, [4, 0]],
    ['keep versions that encrypt', {}, { keepEncryptionVersions: 2 }, [1, 4]],
    ['keep more versions than there are', {}, { keepEncryptionVersions: 9, keepDecryptionVersions: 9 }, [1, 1]],
    ['keep only the newest version', {}, { keepEncryptionVersions: 1, keepDecryptionVersions: 1 }, [5, 5]],
    ['never lower a minimum that was set by hand', { minDecryptionVersion: 5 }, { keepDecryptionVersions: 3 }, [5, 0]],
    ['allow a higher minimum by hand', kept(0, 3), { minDecryptionVersion: 5 }, [5, 0]],
    [
      'raise the minimum for encryption with that for decryption',
      { minEncryptionVersion: 1 },
      { keepDecryptionVersions: 2 },
      [4, 4],
    ],
    ['set the minimum for encryption that a trim needs', {}, { trimAfterS: hourS }, [1, 5]],
    ['count from the newest version that is confirmed', { confirmedVersion: 4 }, { keepDecryptionVersions: 2 }, [3, 0]],
    [
      'take nothing from a key without a usable version',
      { confirmedVersion: 0 },
      { keepDecryptionVersions: 1, trimAfterS: hourS },
      [1, 1],
    ],
    [
      'leave the minimums where they are when they are turned off',
      { ...kept(1, 2), minDecryptionVersion: 4 },
      { keepEncryptionVersions: 0, keepDecryptionVersions: 0 },
      [4, 0],
    ],
  ] as const satisfies readonly (readonly [string, Partial<KeyRecord>, ConfigureKeyRequest, readonly [number, number]])[])
    it(what, () => {
      const { minDecryptionVersion, minEncryptionVersion } = configured(fields, request).record;
      expect([minDecryptionVersion, minEncryptionVersion]).to.deep.equal(minimums);
    });

  it('name the minimums that they move at once', () => {
    expect(configured({}, { keepEncryptionVersions: 1, keepDecryptionVersions: 2 }).warnings).to.deep.equal([
      'min_decryption_version is now 4: older versions no longer decrypt or verify',
      'min_encryption_version is now 5',
    ]);
    expect(configured({}, { keepDecryptionVersions: 9 }).warnings).to.deep.equal([]);
  });

  it('are written only if they change', () => {
    const { record } = configured({}, { keepDecryptionVersions: 2, trimAfterS: hourS });
    const backedUp = { ...record, backup: { timeMs: 1, version: 5 } };
    const request = { keepDecryptionVersions: 2, trimAfterS: hourS, minDecryptionVersion: 4, minEncryptionVersion: 5 };
    expect(configured(backedUp, request)).to.deep.equal({ record: backedUp, warnings: [] });
  });

  it('leave no trace once all of them are off', () => {
    const { record } = configured(kept(1, 2, hourS), { keepEncryptionVersions: 0, keepDecryptionVersions: 0, trimAfterS: 0 });
    expect(record).not.to.have.property('aging');
  });

  it('are refused in a record that has others than numbers', () => {
    for (const aging of [null, {}, { ...kept(1, 1).aging, trimAfterS: '1h' }, { ...kept(1, 1).aging, retired: [null] }]) {
      const bytes = Buffer.from(JSON.stringify({ format: 1, ...recordWith(), aging }));
      expect(() => decodeKeyRecord(bytes)).to.throw('lacks a field');
    }
    expect(decodeKeyRecord(encodeKeyRecord(recordWith(kept(1, 2))))).to.deep.include(kept(1, 2));
  });
});

describe('a key whose versions age', () => {
  it('moves its minimums in the transaction that makes a version usable', async () => {
    const inner = memoryStore();
    const { engine } = newEngine({ store: inner });
    await engine.createKey('k', {});
    await engine.configureKey('k', { keepEncryptionVersions: 1, keepDecryptionVersions: 2 });
    const { ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
    expect((await engine.readKey('k')).nextVersion).to.deep.equal({ minDecryptionVersion: 1, minEncryptionVersion: 2 });
    expect((await engine.rotateKey('k')).key).to.include({ minDecryptionVersion: 1, minEncryptionVersion: 2 });
    expect((await decryptOne(engine, 'k', { ciphertext })).plaintext).to.equal(fox);
    const before = (await inner.get(paths.key('k')))?.revision ?? 0;
    const { key } = await engine.rotateKey('k');
    expect(key).to.include({ revision: before + 1, latestVersion: 3, minDecryptionVersion: 2, minEncryptionVersion: 3 });
    expect(key.versions.map(({ version }) => version)).to.deep.equal([2, 3]);
    expect(key).to.deep.equal(await engine.readKey('k'));
    expect((await refusalOf(decryptOne(engine, 'k', { ciphertext }))).message).to.include('too old');
  });

  it('is rotated automatically under the same settings', async () => {
    const { engine, clock } = newEngine();
    await engine.createKey('k', { autoRotatePeriodS: hourS });
    await engine.configureKey('k', { keepDecryptionVersions: 2 });
    expect((await engine.readKey('k')).nextVersion).to.include({ timeMs: startMs + hourMs });
    for (let version = 2; version <= 4; version++) {
      clock.nowMs += hourMs;
      expect(await engine.rotateDue(10)).to.deep.equal({ done: 1, failed: [] });
      expect(await engine.readKey('k')).to.include({ latestVersion: version, minDecryptionVersion: Math.max(version - 1, 1) });
    }
  });

  it('keeps versions counted from the newest that the secondary clusters have, and moves with their confirmation', async () => {
    const store = memoryStore();
    let answer: Confirmation = 'confirmed';
    const secondaries = { required: async () => true, of: async () => answer };
    const active = new TransitEngine({ store, mountId, clock: clockOf(() => startMs), secondaries });
    const standby = newEngine({ store }).engine;
    await active.createKey('k', {});
    await active.configureKey('k', { keepEncryptionVersions: 1, keepDecryptionVersions: 1, trimAfterS: hourS });
    const { ciphertext } = await encryptOne(standby, 'k', { plaintext: fox });
    answer = 'unconfirmed';
    await active.rotateKey('k').catch(() => undefined);
    expect(await standby.readKey('k')).to.include({ latestVersion: 1, minDecryptionVersion: 1, minEncryptionVersion: 1 });
    expect(await encryptOne(standby, 'k', { plaintext: fox })).to.include({ keyVersion: 1 });
    expect((await decryptOne(standby, 'k', { ciphertext })).plaintext).to.equal(fox);
    expect(await trimsIn(store)).to.deep.equal([]);
    answer = 'confirmed';
    await active.useConfirmed();
    const seen = await standby.readKey('k');
    expect(seen).to.include({ latestVersion: 2, minDecryptionVersion: 2, minEncryptionVersion: 2 });
    expect(seen.versions.map(({ version }) => version)).to.deep.equal([2]);
    expect(await encryptOne(standby, 'k', { plaintext: fox })).to.include({ keyVersion: 2 });
    expect((await refusalOf(decryptOne(standby, 'k', { ciphertext }))).message).to.include('too old');
    expect(await trimsIn(store)).to.deep.equal([{ dueMs: startMs + hourMs, name: 'k' }]);
  });
});

describe('trim_after', () => {
  it('deletes versions once each has been below the minimum for this time, and says before which will be next', async () => {
    const { engine, store, clock } = newEngine();
    await engine.createKey('k', {});
    await engine.configureKey('k', { keepDecryptionVersions: 1, trimAfterS: 2 * hourS });
    await engine.rotateKey('k');
    clock.nowMs += hourMs;
    await engine.rotateKey('k');
    expect((await engine.readKey('k')).nextTrim).to.deep.equal({ timeMs: startMs + 2 * hourMs, minAvailableVersion: 2 });
    clock.nowMs = startMs + 2 * hourMs - 1;
    expect(await engine.trimDue(10, always)).to.deep.equal({ done: 0, failed: [] });
    clock.nowMs += 1;
    expect(await engine.trimDue(10, always)).to.deep.equal({ done: 1, failed: [] });
    expect(await engine.trimDue(10, always), 'once').to.deep.equal({ done: 0, failed: [] });
    const key = await engine.readKey('k');
    expect(key).to.include({ latestVersion: 3, minAvailableVersion: 2, minDecryptionVersion: 3 });
    expect(key.nextTrim).to.deep.equal({ timeMs: startMs + 3 * hourMs, minAvailableVersion: 3 });
    expect(Object.keys(await everything(store)).filter((path) => path.startsWith(paths.versions))).to.have.length(2);
    clock.nowMs += 100 * hourMs;
    await engine.trimDue(10, always);
    expect(await engine.readKey('k'))
      .to.include({ minAvailableVersion: 3 })
      .and.not.have.property('nextTrim');
    expect(await trimsIn(store)).to.deep.equal([]);
  });

  it('counts for versions that were below the minimum already from when it is set', async () => {
    const { engine, clock } = newEngine();
    await engine.createKey('k', {});
    await engine.rotateKey('k');
    await engine.configureKey('k', { minDecryptionVersion: 2 });
    clock.nowMs += 1000 * hourMs;
    const { key } = await engine.configureKey('k', { trimAfterS: hourS });
    expect(key).to.deep.include({ minEncryptionVersion: 2, nextTrim: { timeMs: clock.nowMs + hourMs, minAvailableVersion: 2 } });
    await engine.configureKey('k', { trimAfterS: 0 });
    expect(await engine.readKey('k')).not.to.have.property('nextTrim');
    clock.nowMs += hourMs;
    await engine.configureKey('k', { trimAfterS: hourS });
    expect(await engine.trimDue(10, always)).to.deep.equal({ done: 0, failed: [] });
  });

  it('begins anew for versions that a lower minimum has made usable again', async () => {
    const { engine, clock } = newEngine();
    await engine.createKey('k', {});
    for (let version = 2; version <= 4; version++) await engine.rotateKey('k');
    await engine.configureKey('k', { trimAfterS: hourS, minDecryptionVersion: 4, minEncryptionVersion: 4 });
    clock.nowMs += hourMs - 1;
    await engine.configureKey('k', { minDecryptionVersion: 2 });
    await engine.configureKey('k', { minDecryptionVersion: 4 });
    clock.nowMs += 1;
    await engine.trimDue(10, always);
    const key = await engine.readKey('k');
    expect(key.minAvailableVersion).to.equal(2);
    expect(key.nextTrim).to.deep.equal({ timeMs: startMs + 2 * hourMs - 1, minAvailableVersion: 4 });
  });

  it('is followed by a trim by hand, a deletion and a change of the time', async () => {
    const { engine, store, clock } = newEngine();
    await engine.createKey('k', {});
    await engine.configureKey('k', { keepDecryptionVersions: 1, trimAfterS: hourS, deletionAllowed: true });
    await engine.rotateKey('k');
    await engine.configureKey('k', { trimAfterS: 3 * hourS });
    expect(await trimsIn(store)).to.deep.equal([{ dueMs: startMs + 3 * hourMs, name: 'k' }]);
    await engine.trimKey('k', { minAvailableVersion: 2 });
    expect(await trimsIn(store)).to.deep.equal([]);
    await engine.rotateKey('k');
    expect(await trimsIn(store)).to.have.length(1);
    await engine.deleteKey('k');
    expect(await trimsIn(store)).to.deep.equal([]);
    clock.nowMs += 9 * hourMs;
    expect(await engine.trimDue(10, always)).to.deep.equal({ done: 0, failed: [] });
  });

  it('waits until both clocks call it due, and counts from the later one', async () => {
    const store = memoryStore();
    const now = { utcMs: startMs + 24 * hourMs, dueMs: startMs };
    const engine = new TransitEngine({
      store,
      mountId,
      clock: clockOf(
        () => now.utcMs,
        () => now.dueMs,
      ),
    });
    await engine.createKey('k', {});
    await engine.configureKey('k', { keepDecryptionVersions: 1, trimAfterS: hourS });
    await engine.rotateKey('k');
    now.utcMs += hourMs;
    expect(await engine.trimDue(10, always), 'due by one clock').to.deep.equal({ done: 0, failed: [] });
    now.dueMs = now.utcMs;
    expect(await engine.trimDue(10, always)).to.deep.equal({ done: 1, failed: [] });
  });

  it('deletes what both clocks call due, although one clock calls more due', async () => {
    const store = memoryStore();
    const now = { utcMs: startMs + 10 * hourMs, dueMs: startMs };
    const engine = new TransitEngine({
      store,
      mountId,
      clock: clockOf(
        () => now.utcMs,
        () => now.dueMs,
      ),
    });
    const wait = (ms: number): void => {
      now.utcMs += ms;
      now.dueMs += ms;
    };
    await engine.createKey('k', {});
    await engine.configureKey('k', { keepDecryptionVersions: 1, trimAfterS: hourS });
    await engine.rotateKey('k');
    wait(9 * hourMs);
    await engine.rotateKey('k');
    wait(2 * hourMs);
    expect(await engine.trimDue(10, always)).to.deep.equal({ done: 1, failed: [] });
    expect((await engine.readKey('k')).minAvailableVersion).to.equal(2);
  });

  it('is carried out once when several nodes try, and not while nothing may be destroyed', async () => {
    const store = memoryStore();
    const nodes = [newEngine({ store }), newEngine({ store }), newEngine({ store })];
    const [first = newEngine({ store })] = nodes;
    for (const name of ['a', 'b']) {
      await first.engine.createKey(name, {});
      await first.engine.configureKey(name, { keepDecryptionVersions: 1, trimAfterS: hourS });
      await first.engine.rotateKey(name);
    }
    for (const { clock } of nodes) clock.nowMs += hourMs;
    const recorded: string[] = [];
    const around = async (name: string, trim: () => Promise<number | undefined>): Promise<number | undefined> => {
      recorded.push(name);
      return trim();
    };
    expect(await first.engine.trimDue(10, () => false, around)).to.deep.equal({ done: 0, failed: [] });
    expect(recorded).to.deep.equal([]);
    let asked = 0;
    await first.engine.trimDue(1, () => ++asked < 2, around); // a restore of the cluster, while the removal is recorded
    expect(await storedKey(store, 'a')).to.include({ minAvailableVersion: 0 });
    const rounds = await Promise.all(nodes.map(({ engine }) => engine.trimDue(10, always)));
    expect(rounds.reduce((sum, { done }) => sum + done, 0)).to.equal(2);
    for (const name of ['a', 'b']) expect(await storedKey(store, name)).to.include({ minAvailableVersion: 2 });
  });

  it('leaves a key to the next round that another node changes meanwhile', async () => {
    const inner = memoryStore();
    const other = newEngine({ store: inner }).engine;
    await other.createKey('k', {});
    await other.configureKey('k', { keepDecryptionVersions: 1, trimAfterS: hourS });
    await other.rotateKey('k');
    let changes = 0;
    const commit: Store['commit'] = async (transaction) => {
      if (++changes === 1) await other.configureKey('k', { trimAfterS: 0 });
      return inner.commit(transaction);
    };
    const { engine, clock } = newEngine({ store: { ...inner, commit } });
    clock.nowMs += hourMs;
    expect(await engine.trimDue(10, always)).to.deep.equal({ done: 0, failed: [] });
    expect(await storedKey(inner, 'k')).to.include({ minAvailableVersion: 0 });
    expect(changes).to.equal(1);
  });

  it('deletes thousands of versions with one transaction and the sweep', async () => {
    const { engine, store, clock } = newEngine();
    await engine.createKey('k', {});
    for (let version = 2; version <= 1200; version++) await engine.rotateKey('k');
    await engine.configureKey('k', { keepDecryptionVersions: 1, trimAfterS: hourS });
    clock.nowMs += hourMs;
    expect(await engine.trimDue(10, always)).to.deep.equal({ done: 1, failed: [] });
    while (!(await engine.sweep(500)).finished);
    expect(Object.keys(await everything(store)).filter((path) => path.startsWith(paths.versions))).to.have.length(1);
  });

  it('keeps the record of a key small: versions retired soon after each other share the later time', async () => {
    const { engine, store, clock } = newEngine();
    await engine.createKey('k', {});
    await engine.configureKey('k', { keepDecryptionVersions: 1, trimAfterS: 64 * hourS });
    for (let hour = 1; hour <= 300; hour++) {
      clock.nowMs += hourMs;
      await engine.rotateKey('k'); // retires the version with the number of the hour
      await engine.trimDue(10, always);
      const { aging, minAvailableVersion } = await storedKey(store, 'k');
      expect(aging?.retired.length).to.be.at.most(35);
      const newestDeleted = Math.max(minAvailableVersion - 1, 0);
      expect(newestDeleted).to.be.within(Math.max(hour - 64 - 4, 0), Math.max(hour - 64, 0));
    }
    expect(encodeKeyRecord(await storedKey(store, 'k')).length).to.be.below(3000);
  });

  it('keeps the record of a key small while nothing may be destroyed', async () => {
    const { engine, store, clock } = newEngine();
    await engine.createKey('k', {});
    await engine.configureKey('k', { keepDecryptionVersions: 1, trimAfterS: hourS });
    for (let version = 2; version <= 500; version++) {
      clock.nowMs += hourMs / 8;
      await engine.rotateKey('k');
    }
    expect((await storedKey(store, 'k')).aging?.retired.length).to.be.at.most(35);
  });
});

describe('a backup of a key whose versions age', () => {
  /** A key with versions 1 to 3, of which the last is the oldest that decrypts. */
  const made = async (store: Store) => {
    const { engine, clock } = newEngine({ store });
    await engine.createKey('k', settings);
    await engine.configureKey('k', { keepEncryptionVersions: 1, keepDecryptionVersions: 1, trimAfterS: hourS });
    await engine.rotateKey('k');
    await engine.rotateKey('k');
    return { engine, clock };
  };

  it('keeps the settings; its old versions get their whole time again', async () => {
    const { engine, clock } = await made(memoryStore());
    const backup = (await engine.transfers.backupKey('k')).toString('base64');
    clock.nowMs += 100 * hourMs;
    await engine.transfers.restoreKey({ backup, name: 'copy' });
    const copy = await engine.readKey('copy');
    expect(copy).to.deep.include({
      ...{ keepEncryptionVersions: 1, keepDecryptionVersions: 1, trimAfterS: hourS, minDecryptionVersion: 3 },
      nextTrim: { timeMs: clock.nowMs + hourMs, minAvailableVersion: 3 },
    });
    expect(await engine.trimDue(10, always)).to.deep.equal({ done: 1, failed: [] }); // of the original
    expect(await engine.readKey('copy')).to.include({ minAvailableVersion: 0 });
    expect((await engine.rotateKey('copy')).key).to.include({ latestVersion: 4, minDecryptionVersion: 4 });
  });

  it('that meets a removal of versions has either all of them or none', async () => {
    const inner = memoryStore();
    const { engine: other, clock } = await made(inner);
    clock.nowMs += hourMs;
    for (const held of ['range', 'commit'] as const) {
      let isTrimmed = false;
      const trimmed = async (): Promise<void> => {
        if (isTrimmed) return;
        isTrimmed = true;
        await other.trimDue(10, always);
      };
      const store: Store = {
        ...inner,
        range: async (query) => {
          if (held === 'range') await trimmed(); // the record was read, its versions were not
          return inner.range(query);
        },
        commit: async (transaction) => {
          if (held === 'commit') await trimmed(); // all of it was read, and nothing was noted
          return inner.commit(transaction);
        },
      };
      const backup = (await newEngine({ store }).engine.transfers.backupKey('k')).toString('base64');
      expect(isTrimmed).to.equal(true);
      const { engine } = newEngine();
      await engine.transfers.restoreKey({ backup });
      const record = await engine.readKey('k');
      expect(record).to.include({
        minAvailableVersion: (await other.readKey('k')).minAvailableVersion,
        latestVersion: 3 + Number(held === 'commit'),
      });
      await other.rotateKey('k'); // for the next round
      clock.nowMs += hourMs;
    }
  });

  it('is refused with settings that a configuration refuses', async () => {
    const { engine } = newEngine();
    const fields = { keepEncryptionVersions: 0, keepDecryptionVersions: 0, trimAfterS: 0, retired: [] };
    for (const [aging, message] of [
      [{ ...fields, keepEncryptionVersions: 2, keepDecryptionVersions: 1 }, 'must not exceed'],
      [{ ...fields, trimAfterS: 1 }, 'at least an hour'],
      [{ ...fields, keepDecryptionVersions: -1 }, 'must be from 0'],
    ] as const) {
      const version = { version: 1, keyName: 'k', createdMs: 0, material: Buffer.alloc(32), hmacSecret: Buffer.alloc(32) };
      const backup = encodeBackup('k', recordWith({ latestVersion: 1, aging }), [version]).toString('base64');
      expect((await refusalOf(engine.transfers.restoreKey({ backup }))).message).to.include(message);
    }
  });
});

describe('the versions of a key, after any changes', () => {
  const small = fc.integer({ min: 0, max: 4 });
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.constant({ kind: 'rotate' as const }) },
    fc.constant({ kind: 'confirm' as const }),
    fc.record({ kind: fc.constant('late' as const), late: fc.boolean() }),
    fc.record({ kind: fc.constant('trim' as const), to: fc.integer({ min: 0, max: 8 }) }),
    fc.record({ kind: fc.constant('wait' as const), hours: fc.integer({ min: 0, max: 5 }) }),
    fc.record({
      kind: fc.constant('config' as const),
      request: fc.record(
        {
          keepEncryptionVersions: small,
          keepDecryptionVersions: small,
          trimAfterS: small.map((hours) => hours * hourS),
          minDecryptionVersion: fc.integer({ min: 0, max: 8 }),
          minEncryptionVersion: fc.integer({ min: 0, max: 8 }),
        },
        { requiredKeys: [] },
      ),
    }),
  );

  it('have a usable newest one, as many as are kept, and lose none before its time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const store = memoryStore();
        const now = { ms: startMs };
        let isLate = false;
        const secondaries = {
          required: async () => true,
          of: async (): Promise<Confirmation> => (isLate ? 'unconfirmed' : 'confirmed'),
        };
        const engine = new TransitEngine({ store, mountId, clock: clockOf(() => now.ms), secondaries });
        const ignored = (change: Promise<unknown>): Promise<unknown> => change.catch(() => undefined);
        await engine.createKey('k', {});
        /** When each version was last at or above the minimum. */
        const decryptedMs = new Map<number, number>();
        let byHand = 0;
        for (const each of steps) {
          const before = await engine.readKey('k');
          if (each.kind === 'rotate') await ignored(engine.rotateKey('k'));
          else if (each.kind === 'confirm') await engine.useConfirmed();
          else if (each.kind === 'late') isLate = each.late;
          else if (each.kind === 'config') await ignored(engine.configureKey('k', each.request));
          else if (each.kind === 'trim') await ignored(engine.trimKey('k', { minAvailableVersion: each.to }));
          else {
            now.ms += each.hours * hourMs;
            await engine.trimDue(10, always);
          }
          const key = await engine.readKey('k');
          const { latestVersion, minDecryptionVersion, minEncryptionVersion, minAvailableVersion, trimAfterS } = key;
          const { keyVersion, ciphertext } = await encryptOne(engine, 'k', { plaintext: fox });
          expect(keyVersion, 'the newest version may encrypt').to.equal(latestVersion);
          await decryptOne(engine, 'k', { ciphertext });
          expect(minDecryptionVersion).to.be.within(1, latestVersion);
          if (minEncryptionVersion > 0) expect(minEncryptionVersion).to.be.within(minDecryptionVersion, latestVersion);
          for (const [keep, minimum] of [
            [key.keepDecryptionVersions, minDecryptionVersion],
            [key.keepEncryptionVersions, minEncryptionVersion],
          ] as const)
            if (keep > 0) expect(minimum).to.be.at.least(Math.max(latestVersion - keep + 1, 1));
          if (each.kind !== 'config') {
            const kept = Math.max(latestVersion - key.keepDecryptionVersions + 1, 1);
            const raised =
              key.keepDecryptionVersions === 0 ? before.minDecryptionVersion : Math.max(before.minDecryptionVersion, kept);
            expect(minDecryptionVersion, 'no more is retired than must be').to.equal(raised);
          }
          expect(minAvailableVersion).to.be.at.most(minDecryptionVersion);
          if (each.kind === 'trim') byHand = Math.max(byHand, minAvailableVersion);
          for (let version = byHand + 1; version < minAvailableVersion; version++) {
            if (version < before.minAvailableVersion) continue;
            expect(now.ms - (decryptedMs.get(version) ?? startMs), `version ${version} is deleted`).to.be.at.least(
              trimAfterS * 1000,
            );
            expect(trimAfterS).to.be.above(0);
          }
          for (let version = minDecryptionVersion; version <= latestVersion; version++) decryptedMs.set(version, now.ms);
          if (trimAfterS === 0) expect(key).not.to.have.property('nextTrim');
          else expect(key.nextTrim !== undefined).to.equal(Math.max(minAvailableVersion, 1) < minDecryptionVersion);
        }
      }),
    );
  });
});

describe('a change of settings', () => {
  const aging = { keepEncryptionVersions: 0, keepDecryptionVersions: 0, trimAfterS: 2 * hourS, retired: [] };
  for (const [what, fields, request, isEarlier] of [
    ['turns trim_after on', {}, { trimAfterS: hourS }, true],
    ['shortens it', { aging }, { trimAfterS: hourS }, true],
    ['repeats it', { aging }, { trimAfterS: 2 * hourS, minDecryptionVersion: 1 }, false],
    ['makes it longer', { aging }, { trimAfterS: 3 * hourS }, false],
    ['turns it off', { aging }, { trimAfterS: 0, minDecryptionVersion: 3 }, false],
    ['raises the minimum', { aging, minEncryptionVersion: 5 }, { minDecryptionVersion: 3 }, true],
    ['raises the minimum without it', { minEncryptionVersion: 5 }, { minDecryptionVersion: 3 }, false],
    ['lowers the minimum', { aging, minEncryptionVersion: 5, minDecryptionVersion: 3 }, { minDecryptionVersion: 2 }, false],
    ['keeps fewer versions', { aging: { ...aging, keepDecryptionVersions: 9 } }, { keepDecryptionVersions: 8 }, true],
    ['limits the versions', { aging }, { keepDecryptionVersions: 9 }, true],
    ['keeps more versions', { aging: { ...aging, keepDecryptionVersions: 8 } }, { keepDecryptionVersions: 9 }, false],
    ['rotates a key that keeps few', { aging: { ...aging, keepDecryptionVersions: 9 } }, { autoRotatePeriodS: hourS }, true],
    ['rotates a key that keeps all', { aging }, { autoRotatePeriodS: hourS }, false],
    ['allows deletion', { aging }, { deletionAllowed: true }, false],
  ] as const)
    it(`deletes versions ${isEarlier ? '' : 'no '}earlier if it ${what}`, () => {
      expect(deletesEarlier(recordWith(fields), configured(fields, request).record)).to.equal(isEarlier);
    });
});
