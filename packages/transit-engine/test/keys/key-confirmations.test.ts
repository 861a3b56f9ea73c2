import { generateKeyPairSync } from 'node:crypto';
import { memoryStore, type Store, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { clockOf } from '../../../process/test/test-clock.ts';
import { type Confirmation, type SecondaryConfirmation, TransitEngine, TransitError } from '../../src/index.ts';
import { decryptOne, encryptOne, fox, mountId, paths, refusalOf, startMs, storedKey } from '../fixtures.ts';

/** Secondaries whose confirmations the test decides. */
class Secondaries implements SecondaryConfirmation {
  isRequired = true;
  /** The answer to a request that waits, and to one that does not. */
  waited: Confirmation = 'unconfirmed';
  present: Confirmation = 'unconfirmed';
  readonly asked: number[] = [];

  async required(): Promise<boolean> {
    return this.isRequired;
  }

  async of(index: number, wait: boolean): Promise<Confirmation> {
    this.asked.push(index);
    return wait ? this.waited : this.present;
  }
}

const exportable = { exportable: true, allowPlaintextBackup: true };
const lateText = 'did not confirm the new material of key k in time; it is stored, and it will be used once they confirm it';

describe('key material that secondary clusters must confirm', () => {
  let store: Store;
  let secondaries: Secondaries;
  let active: TransitEngine;
  /** Another node or gateway: it knows only the records. */
  let standby: TransitEngine;
  let nowMs = startMs;

  beforeEach(() => {
    nowMs = startMs;
    store = memoryStore();
    secondaries = new Secondaries();
    active = new TransitEngine({ store, mountId, clock: clockOf(() => nowMs), secondaries });
    standby = new TransitEngine({ store, mountId, clock: clockOf(() => nowMs) });
  });

  const createConfirmed = async (request = {}): Promise<void> => {
    secondaries.waited = 'confirmed';
    await active.createKey('k', request);
    secondaries.waited = 'unconfirmed';
  };
  const engines = () => [active, standby];
  const versionsUsed = () =>
    Promise.all(engines().map(async (each) => (await encryptOne(each, 'k', { plaintext: fox })).keyVersion));
  const outcomeOf = (request: Promise<unknown>): Promise<unknown> =>
    request.then(
      () => 'done',
      (error: unknown) => (error instanceof StoreError || error instanceof TransitError ? error.code : error),
    );
  const late = async (request: Promise<unknown>): Promise<void> => {
    expect(await outcomeOf(request)).to.equal('outcome_unknown');
  };

  it('is used by every node once it is confirmed, and leaves no mark', async () => {
    secondaries.waited = 'confirmed';
    const created = await active.createKey('k', {});
    expect(created).to.deep.include({ warnings: [] });
    expect(created.key).to.deep.include({ latestVersion: 1, revision: 2 });
    const { key, warnings } = await active.rotateKey('k');
    expect(key.versions.map(({ version }) => version)).to.deep.equal([1, 2]);
    expect(warnings).to.deep.equal([]);
    expect(await versionsUsed()).to.deep.equal([2, 2]);
    expect(await storedKey(store, 'k')).not.to.have.property('confirmedVersion');
    expect((await store.range({ prefix: paths.unconfirmed })).records).to.deep.equal([]);
    expect(secondaries.asked).to.deep.equal([1, 3]);
  });

  it('costs nothing where no secondary must confirm it', async () => {
    secondaries.isRequired = false;
    await active.createKey('k', {});
    await active.rotateKey('k');
    expect(secondaries.asked).to.deep.equal([]);
    expect((await store.get(paths.key('k')))?.revision).to.equal(2);
  });

  it('is not made while no secondary would confirm it', async () => {
    secondaries.required = () => Promise.reject(new TransitError('unconfirmed', 'w is not connected'));
    const refused = { code: 'unconfirmed', message: 'w is not connected' };
    expect(await refusalOf(active.createKey('k', {}))).to.deep.equal(refused);
    expect(await refusalOf(encryptOne(active, 'k', { plaintext: fox }))).to.deep.equal(refused);
    expect(await active.keyExists('k')).to.equal(false);
  });

  it('need not be confirmed where nothing is made: a key that exists is returned', async () => {
    await createConfirmed();
    secondaries.required = () => Promise.reject(new TransitError('unconfirmed', 'w is not connected'));
    expect((await active.createKey('k', {})).key.latestVersion).to.equal(1);
  });

  it('is never reported as not made once it is stored, whatever fails afterwards', async () => {
    await createConfirmed();
    const asked = secondaries.of.bind(secondaries);
    const refusals = [new StoreError('sealed', 'transitd is sealed'), new TransitError('too_many_conflicts', 'nothing was done')];
    for (const refusal of refusals) {
      secondaries.of = () => Promise.reject(refusal);
      await late(active.rotateKey('k'));
      secondaries.of = asked;
      secondaries.present = 'confirmed';
      await active.useConfirmed();
    }
    expect(await versionsUsed()).to.deep.equal([3, 3]);
  });

  it('is not used by any node while it is late: a new key cannot encrypt', async () => {
    const error = await active.createKey('k', {}).catch((caught: unknown) => caught);
    expect(error).to.be.instanceOf(StoreError).and.include({ code: 'outcome_unknown' });
    expect(String(error)).to.include(lateText);
    for (const engine of engines()) {
      expect((await refusalOf(encryptOne(engine, 'k', { plaintext: fox }))).code).to.equal('unconfirmed');
      const batch = engine.ciphertexts.encrypt('k', { items: [{ plaintext: fox }], mayCreate: true, mayUpdate: true });
      expect((await refusalOf(batch)).code).to.equal('unconfirmed');
      expect(await engine.readKey('k')).to.deep.include({ latestVersion: 0, versions: [] });
    }
  });

  it('is not used by any node while it is late: a rotated key uses its former version', async () => {
    await createConfirmed({ type: 'ed25519', ...exportable });
    await late(active.rotateKey('k'));
    for (const engine of engines()) {
      const signed = await engine.signing.sign('k', { input: fox });
      expect(signed).to.deep.include({ keyVersion: 1 });
      expect(await engine.signing.hmac('k', { input: fox })).to.deep.include({ keyVersion: 1 });
      expect((await refusalOf(engine.signing.sign('k', { input: fox, keyVersion: 2 }))).code).to.equal('key_version_unavailable');
      const shown = await engine.readKey('k');
      expect(shown.latestVersion).to.equal(1);
      expect(shown.versions.map(({ version }) => version)).to.deep.equal([1]);
      const exported = await engine.transfers.exportKey('k', { exportType: 'public-key' });
      expect(exported.versions.map(({ version }) => version)).to.deep.equal([1]);
      expect((await engine.certificates.request('k', {})).version).to.equal(1);
      expect((await refusalOf(engine.certificates.request('k', { version: '2' }))).code).to.equal('key_version_unavailable');
      expect((await refusalOf(engine.transfers.backupKey('k'))).code).to.equal('unconfirmed');
    }
    expect((await refusalOf(active.configureKey('k', { minEncryptionVersion: 2 }))).message).to.include(
      'latest key version is 1',
    );
    expect((await active.configureKey('k', { deletionAllowed: true })).key.latestVersion).to.equal(1);
  });

  it('is used after a late confirmation, without another request', async () => {
    await createConfirmed();
    await late(active.rotateKey('k'));
    expect(await versionsUsed()).to.deep.equal([1, 1]);
    expect(await active.useConfirmed()).to.equal(false);
    expect(await versionsUsed()).to.deep.equal([1, 1]);
    secondaries.present = 'confirmed';
    expect(await active.useConfirmed()).to.equal(true);
    expect(await versionsUsed()).to.deep.equal([2, 2]);
    expect((await active.readKey('k')).versions.map(({ version }) => version)).to.deep.equal([1, 2]);
  });

  it('is used without a confirmation if the operator prefers that, with a warning', async () => {
    secondaries.waited = 'degraded';
    const { key, warnings } = await active.createKey('k', {});
    expect(key.latestVersion).to.equal(1);
    expect(warnings).to.have.length(1);
    expect(warnings[0]).to.include('a promotion may lose it');
    expect(await versionsUsed()).to.deep.equal([1, 1]);
  });

  it('is not made twice: a further rotation is refused until the former one is confirmed', async () => {
    await createConfirmed();
    await late(active.rotateKey('k'));
    expect((await refusalOf(active.rotateKey('k'))).code).to.equal('unconfirmed');
    secondaries.waited = 'confirmed';
    expect((await active.rotateKey('k')).key.latestVersion).to.equal(3);
    expect(await versionsUsed()).to.deep.equal([3, 3]);
  });

  it('is made once if the creation of a key is repeated', async () => {
    await late(active.createKey('k', {}));
    expect((await refusalOf(active.createKey('k', {}))).code).to.equal('unconfirmed');
    secondaries.waited = 'confirmed';
    expect((await active.createKey('k', {})).key.latestVersion).to.equal(1);
    expect(await versionsUsed()).to.deep.equal([1, 1]);
  });

  it('encrypts nothing that is answered while an encryption creates its key', async () => {
    await late(encryptOne(active, 'k', { plaintext: fox }));
    secondaries.waited = 'confirmed';
    const { ciphertext } = await encryptOne(active, 'other', { plaintext: fox });
    expect((await decryptOne(standby, 'other', { ciphertext })).plaintext).to.equal(fox);
  });

  it('waits when it is restored or imported, and is confirmed as a whole', async () => {
    await createConfirmed(exportable);
    const backup = (await active.transfers.backupKey('k')).toString('base64');
    await late(active.transfers.restoreKey({ backup, name: 'k', force: true }));
    expect((await refusalOf(encryptOne(standby, 'k', { plaintext: fox }))).code).to.equal('unconfirmed');
    const publicKey = (): string =>
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'pem' }).toString();
    await late(active.transfers.importKey('i', { type: 'ecdsa-p256', publicKey: publicKey() }));
    expect((await standby.readKey('i')).latestVersion).to.equal(0);
    secondaries.present = 'confirmed';
    expect(await active.useConfirmed()).to.equal(true);
    expect(await versionsUsed()).to.deep.equal([1, 1]);
    await late(active.transfers.importVersion('i', { publicKey: publicKey() }));
    expect((await standby.readKey('i')).latestVersion).to.equal(1);
  });

  it('of an automatic rotation does not hold up the other rotations', async () => {
    await createConfirmed({ autoRotatePeriodS: 3600 });
    nowMs += 3_600_000;
    expect(await active.rotateDue(10)).to.deep.equal({ done: 1, failed: [] });
    expect(await versionsUsed()).to.deep.equal([1, 1]);
    nowMs += 3_600_000;
    expect(await active.rotateDue(10)).to.deep.equal({ done: 0, failed: [] });
    secondaries.present = 'confirmed';
    await active.useConfirmed();
    expect(await versionsUsed()).to.deep.equal([2, 2]);
    expect(await active.rotateDue(10)).to.deep.equal({ done: 1, failed: [] });
  });

  it('of an automatic rotation is asked for after the rotation was recorded, because the setting may have changed', async () => {
    secondaries.isRequired = false;
    await active.createKey('k', { autoRotatePeriodS: 3600 });
    nowMs += 3_600_000;
    await active.rotateDue(10, (_, rotate) => {
      secondaries.isRequired = true;
      return rotate();
    });
    expect(await versionsUsed(), 'unconfirmed, so not used').to.deep.equal([1, 1]);
  });

  it('of automatic rotations asks once for an absent secondary, and not once for each key', async () => {
    secondaries.isRequired = false;
    for (const name of ['a', 'b', 'c']) await active.createKey(name, { autoRotatePeriodS: 3600 });
    nowMs += 3_600_000;
    let asked = 0;
    secondaries.required = () => {
      asked += 1;
      return Promise.reject(new TransitError('unconfirmed', 'w is not connected'));
    };
    expect((await refusalOf(active.rotateDue(10))).code).to.equal('unconfirmed');
    expect(asked).to.equal(1);
  });

  it('of many keys is not asked for again, once an earlier entry has turned out to be unconfirmed', async () => {
    for (const name of ['a', 'b', 'c']) await late(active.createKey(name, {}));
    const before = secondaries.asked.length;
    expect(await active.useConfirmed()).to.equal(false);
    expect(secondaries.asked.length - before).to.equal(1);
    const newest = Math.max(...secondaries.asked);
    secondaries.of = (index) => Promise.resolve(index < newest ? 'confirmed' : 'unconfirmed');
    expect(await active.useConfirmed()).to.equal(false);
    const latest = await Promise.all(['a', 'b', 'c'].map(async (name) => (await standby.readKey(name)).latestVersion));
    expect(latest).to.deep.equal([1, 1, 0]);
  });

  it('decrypts while it is unconfirmed: a promoted cluster may have material that the former primary has used', async () => {
    await createConfirmed();
    secondaries.waited = 'degraded';
    await active.rotateKey('k');
    const { ciphertext } = await encryptOne(active, 'k', { plaintext: fox });
    const { records } = await store.range({ prefix: '' });
    const copy = memoryStore();
    await copy.commit({ conditions: [], writes: records.map(({ path, value }) => ({ path, value })) });
    const record = { ...(await storedKey(copy, 'k')), confirmedVersion: 1 };
    await copy.commit({
      conditions: [],
      writes: [
        { path: paths.key('k'), value: Buffer.from(JSON.stringify({ format: 1, ...record })) },
        { path: `${paths.unconfirmed}k`, value: Uint8Array.of(1) },
      ],
    });
    const promoted = new TransitEngine({ store: copy, mountId, clock: clockOf(() => nowMs) });
    expect((await decryptOne(promoted, 'k', { ciphertext })).plaintext).to.equal(fox);
    expect(await promoted.useConfirmed()).to.equal(true);
    expect((await encryptOne(promoted, 'k', { plaintext: fox })).keyVersion).to.equal(2);
  });

  it('leaves nothing behind when its key is deleted', async () => {
    await createConfirmed();
    await active.configureKey('k', { deletionAllowed: true });
    await late(active.rotateKey('k'));
    await active.deleteKey('k');
    expect((await store.range({ prefix: paths.unconfirmed })).records).to.deep.equal([]);
    expect(await active.useConfirmed()).to.equal(true);
  });
});
