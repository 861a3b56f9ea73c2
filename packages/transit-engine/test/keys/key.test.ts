import { expect } from 'chai';
import fc from 'fast-check';
import { rotateKey, type StoredKey, settingsOf, trimKey, versionsPerTrimMax } from '../../src/keys/key.ts';
import { configureKey } from '../../src/keys/key-config.ts';
import { TransitError } from '../../src/values/errors.ts';
import { paths } from '../fixtures.ts';

const fresh = { material: Buffer.alloc(32, 1), hmacSecret: Buffer.alloc(32, 2), createdMs: 5 };

/** Returns a key with five versions and the given fields. */
const keyWith = (fields: Partial<StoredKey['record']> = {}): StoredKey => ({
  name: 'k',
  revision: 9,
  record: { id: 'ab', ...settingsOf({}), latestVersion: 5, ...fields },
});

describe('settingsOf', () => {
  for (const [request, message] of [
    [{ type: 'aes512-gcm' }, 'unknown key type aes512-gcm'],
    [{ type: 'AES256-GCM96' }, 'unknown key type AES256-GCM96'],
    [{ type: '' }, 'unknown key type '],
    [{ type: 'constructor' }, 'unknown key type constructor'],
    [{ convergentEncryption: true }, 'convergent encryption requires derivation to be enabled'],
    [{ autoRotatePeriodS: 3599 }, 'auto rotate period must be 0 to disable or at least an hour'],
    [{ autoRotatePeriodS: 1 }, 'auto rotate period must be 0 to disable or at least an hour'],
    [{ autoRotatePeriodS: -3600 }, 'auto rotate period must be 0 to disable or at least an hour'],
    [{ keySize: 32 }, 'key_size is not valid for algorithm aes256-gcm96'],
    [{ keySize: -1, type: 'chacha20-poly1305' }, 'key_size is not valid for algorithm chacha20-poly1305'],
    [{ autoRotatePeriodS: 1, convergentEncryption: true, type: 'x' }, 'auto rotate period'],
    [{ convergentEncryption: true, type: 'x', keySize: 1 }, 'convergent encryption requires'],
    [{ type: 'x', keySize: 1 }, 'unknown key type x'],
  ] as const) {
    it(`refuses ${JSON.stringify(request)}: ${message}`, () => {
      expect(() => settingsOf(request)).to.throw(TransitError, message);
    });
  }
});

describe('configureKey', () => {
  for (const { fields = {}, request, message } of [
    { request: { minDecryptionVersion: -1 }, message: 'min decryption version cannot be negative' },
    { request: { minDecryptionVersion: 6 }, message: 'cannot set min decryption version of 6, latest key version is 5' },
    { request: { minEncryptionVersion: -1 }, message: 'min encryption version cannot be negative' },
    { request: { minEncryptionVersion: 6 }, message: 'cannot set min encryption version of 6, latest key version is 5' },
    {
      request: { minDecryptionVersion: 2, minEncryptionVersion: 1 },
      message:
        'cannot set min encryption/decryption values; min encryption version of 1 must be greater than or equal to min decryption version of 2',
    },
    {
      fields: { minEncryptionVersion: 2 },
      request: { minDecryptionVersion: 3 },
      message:
        'cannot set min encryption/decryption values; min encryption version of 2 must be greater than or equal to min decryption version of 3',
    },
    {
      fields: { minAvailableVersion: 3, minDecryptionVersion: 3, minEncryptionVersion: 3 },
      request: { minDecryptionVersion: 1 },
      message: 'min decryption version should not be less then min available version',
    },
    {
      fields: { minAvailableVersion: 3, minDecryptionVersion: 3, minEncryptionVersion: 3 },
      request: { minEncryptionVersion: 0 },
      message: 'min encryption version should not be less than min available version',
    },
    { request: { autoRotatePeriodS: 300 }, message: 'auto rotate period must be 0 to disable or at least an hour' },
  ]) {
    it(`refuses ${JSON.stringify(request)} on ${JSON.stringify(fields)}: ${message}`, () => {
      expect(() => configureKey(paths, keyWith(fields), request, 5)).to.throw(TransitError, message);
    });
  }

  it('accepts minimums that are valid only together', () => {
    const key = keyWith({ minDecryptionVersion: 1, minEncryptionVersion: 1 });
    const { record } = configureKey(paths, key, { minDecryptionVersion: 4, minEncryptionVersion: 4 }, 5);
    expect(record).to.include({ minDecryptionVersion: 4, minEncryptionVersion: 4 });
  });

  it('raises min_decryption_version 0 to 1, with a warning', () => {
    const { record, warnings } = configureKey(paths, keyWith({ minDecryptionVersion: 2 }), { minDecryptionVersion: 0 }, 5);
    expect(record.minDecryptionVersion).to.equal(1);
    expect(warnings.join()).to.contain('starts at 1');
  });

  it('keeps a flag that cannot be turned off, with a warning', () => {
    const key = keyWith({ exportable: true, allowPlaintextBackup: true });
    const { record, transaction, warnings } = configureKey(paths, key, { exportable: false, allowPlaintextBackup: false }, 5);
    expect(record).to.include({ exportable: true, allowPlaintextBackup: true });
    expect(transaction).to.equal(undefined);
    expect(warnings).to.have.lengthOf(2);
  });

  it('keeps settings that are absent in the request', () => {
    const key = keyWith({ autoRotatePeriodS: 7200, deletionAllowed: true, exportable: true });
    expect(configureKey(paths, key, { minDecryptionVersion: 2 }, 5).record).to.deep.equal({
      ...key.record,
      minDecryptionVersion: 2,
    });
  });

  it('writes nothing when nothing changes', () => {
    expect(configureKey(paths, keyWith(), {}, 5).transaction).to.equal(undefined);
  });
});

describe('rotateKey', () => {
  it('writes two records, however many versions there are', () => {
    for (const latestVersion of [1, 10_000]) {
      const { transaction } = rotateKey(paths, keyWith({ latestVersion }), fresh, 5);
      const version = paths.version({ keyId: 'ab', version: latestVersion + 1 });
      expect(transaction?.writes.map(({ path }) => path)).to.deep.equal([paths.key('k'), version]);
      expect(transaction?.conditions).to.deep.equal([
        { path: paths.key('k'), revision: 9 },
        { path: version, revision: 0 },
      ]);
      expect(transaction?.writes.every(({ value }) => (value?.length ?? 0) < 1000)).to.equal(true);
    }
  });
});

describe('trimKey', () => {
  const ready = { minDecryptionVersion: 3, minEncryptionVersion: 4 };
  for (const { fields = {}, version, message } of [
    { version: undefined, message: 'missing min_available_version' },
    { version: -1, message: 'minimum available version cannot be decremented' },
    { fields: { ...ready, minAvailableVersion: 3 }, version: 2, message: 'minimum available version cannot be decremented' },
    { version: 1, message: 'minimum available version cannot be set when minimum encryption version is not set' },
    { fields: ready, version: 5, message: 'minimum available version cannot be greater than minmum encryption version' },
    { fields: ready, version: 4, message: 'minimum available version cannot be greater than minimum decryption version' },
    { fields: ready, version: 0, message: 'minimum available version should be positive' },
  ]) {
    it(`refuses ${version} on ${JSON.stringify(fields)}: ${message}`, () => {
      expect(() => trimKey(paths, keyWith(fields), version)).to.throw(TransitError, message);
    });
  }

  it('deletes every version below, in the transaction that raises the bound', () => {
    const { record, transaction } = trimKey(paths, keyWith(ready), 3);
    expect(record.minAvailableVersion).to.equal(3);
    expect(transaction?.writes.filter(({ value }) => value === null).map(({ path }) => path)).to.deep.equal([
      paths.version({ keyId: 'ab', version: 1 }),
      paths.version({ keyId: 'ab', version: 2 }),
    ]);
  });

  it('leaves versions beyond one transaction to the sweep', () => {
    const key = keyWith({ latestVersion: 10_000, minDecryptionVersion: 9000, minEncryptionVersion: 9000 });
    expect(trimKey(paths, key, 9000).transaction?.writes).to.have.lengthOf(versionsPerTrimMax + 1);
  });

  it('accepts the present value and writes nothing', () => {
    expect(trimKey(paths, keyWith({ ...ready, minAvailableVersion: 3 }), 3).transaction).to.equal(undefined);
  });
});

describe('the minimums of a key', () => {
  const change = fc.oneof(
    fc.constant({ rotate: true as const }),
    fc.record({ trim: fc.integer({ min: -1, max: 8 }) }),
    fc.record(
      { minDecryptionVersion: fc.integer({ min: -1, max: 8 }), minEncryptionVersion: fc.integer({ min: -1, max: 8 }) },
      { requiredKeys: [] },
    ),
  );

  it('keep their order under any changes, and the lowest available version never falls', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 25 }), (changes) => {
        let key = keyWith({ latestVersion: 1 });
        for (const request of changes) {
          const before = key.record;
          try {
            if ('rotate' in request) key = { ...key, record: rotateKey(paths, key, fresh, 5).record };
            else if ('trim' in request) key = { ...key, record: trimKey(paths, key, request.trim).record };
            else key = { ...key, record: configureKey(paths, key, request, 5).record };
          } catch (error) {
            if (!(error instanceof TransitError)) throw error;
          }
          const { latestVersion, minDecryptionVersion, minEncryptionVersion, minAvailableVersion } = key.record;
          expect(minAvailableVersion).to.be.at.least(before.minAvailableVersion);
          expect(minDecryptionVersion).to.be.within(Math.max(minAvailableVersion, 1), latestVersion);
          expect(minEncryptionVersion).to.be.at.most(latestVersion);
          expect(minEncryptionVersion).to.be.at.least(minAvailableVersion);
          expect(minEncryptionVersion === 0 || minEncryptionVersion >= minDecryptionVersion).to.equal(true);
        }
      }),
    );
  });
});
