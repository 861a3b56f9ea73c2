import { expect } from 'chai';
import fc from 'fast-check';
import { decodeKeyRecord, encodeKeyRecord, type KeyRecord } from '../../src/keys/key-record.ts';
import { decodeVersionRecord, encodeVersionRecord } from '../../src/keys/version-record.ts';
import { DamagedRecord } from '../../src/values/errors.ts';

const record: KeyRecord = {
  id: '00112233445566778899aabbccddeeff',
  type: 'aes256-gcm96',
  derived: true,
  convergent: true,
  exportable: false,
  allowPlaintextBackup: true,
  deletionAllowed: true,
  imported: false,
  allowRotation: true,
  keySize: 0,
  kdf: 'hmac-sha256-counter',
  minMacLength: 8,
  convergentVersion: 2,
  autoRotatePeriodS: 3600,
  latestVersion: 7,
  latestCreatedMs: 1_760_000_000_000,
  minDecryptionVersion: 3,
  minEncryptionVersion: 4,
  minAvailableVersion: 2,
  backup: { timeMs: 1, version: 6 },
  restore: { timeMs: 2, version: 7 },
};
const disabled = { reason: 'leaked', timeMs: 3 };
const text = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

describe('a key record', () => {
  it('is decoded to the encoded record', () => {
    const taken = { ...record, softDeleted: true, scheduledDeletionMs: 4, disabledVersions: { 3: disabled } } as const;
    for (const each of [record, taken]) expect(decodeKeyRecord(encodeKeyRecord(each))).to.deep.equal(each);
  });

  for (const [bytes, because] of [
    [text({ format: 2, ...record }), 'a later format'],
    [text({ format: 1, ...record, softDeleted: false }), 'a soft deletion of another kind'],
    [text({ format: 1, ...record, disabledVersions: { 0: disabled } }), 'a disabled version that no key has'],
    [text({ format: 1, ...record, disabledVersions: { '03': disabled } }), 'a disabled version in another spelling'],
    [text({ format: 1, ...record, disabledVersions: { 3: { ...disabled, more: 1 } } }), 'a disabled version with more members'],
    [text({ format: 1, ...record, latestVersion: '7' }), 'a field of another kind'],
    [text({ format: 1, ...record, derived: undefined }), 'a field that is missing'],
    [text({ format: 1, ...record, type: 'aes512-gcm' }), 'a type that this program does not know'],
    [text({ format: 1, ...record, kdf: 'x' }), 'a key derivation that this program does not know'],
    [text({ format: 1, ...record, convergentVersion: 4 }), 'a convergent version that this program does not know'],
    [text({ format: 1, ...record, backup: { timeMs: '1', version: 1 } }), 'a backup without a time'],
    [text(null), 'no object'],
    [Buffer.from('{"format":1'), 'cut JSON'],
    [Buffer.alloc(0), 'nothing'],
  ] as const) {
    it(`is refused: ${because}`, () => {
      expect(() => decodeKeyRecord(bytes)).to.throw(DamagedRecord);
    });
  }
});

describe('a version record', () => {
  const version = { keyName: 'k', createdMs: 1, material: Buffer.alloc(32, 1), hmacSecret: Buffer.alloc(32, 2) };
  const whole = encodeVersionRecord(version);

  it('is decoded to the encoded record, for any lengths', () => {
    const bytes = fc.uint8Array({ maxLength: 100 }).map((array) => Buffer.from(array));
    fc.assert(
      fc.property(fc.string(), fc.nat(), bytes, bytes, (keyName, createdMs, material, hmacSecret) => {
        const decoded = decodeVersionRecord(encodeVersionRecord({ keyName, createdMs, material, hmacSecret }));
        expect(decoded.keyName).to.equal(keyName);
        expect(decoded.createdMs).to.equal(createdMs);
        expect([...decoded.material]).to.deep.equal([...material]);
        expect([...decoded.hmacSecret]).to.deep.equal([...hmacSecret]);
      }),
    );
  });

  it('contains its secrets as raw bytes after the header', () => {
    expect(Buffer.from(whole.subarray(-64)).equals(Buffer.concat([version.material, version.hmacSecret]))).to.equal(true);
  });

  it('is refused when truncated at any byte', () => {
    for (let length = 0; length < whole.length; length++) {
      expect(() => decodeVersionRecord(whole.subarray(0, length)), `${length}`).to.throw(DamagedRecord);
    }
  });

  it('is refused with trailing bytes', () => {
    expect(() => decodeVersionRecord(Buffer.concat([whole, Buffer.alloc(1)]))).to.throw(DamagedRecord);
  });

  it('is refused in an unknown format', () => {
    const later = Buffer.from(whole);
    later[0] = 2;
    expect(() => decodeVersionRecord(later)).to.throw(DamagedRecord);
  });
});
