import { createCipheriv, createHmac, hkdfSync } from 'node:crypto';
import { expect } from 'chai';
import type { TransitEngine } from '../../src/index.ts';
import {
  contextOne,
  decryptOne,
  encryptOne,
  everything,
  fox,
  layoutOf,
  newEngine,
  refusalOf,
  rewrapOne,
  startMs,
} from '../fixtures.ts';

const convergent = { derived: true, convergent_encryption: true };
const material = (version: number): Buffer => Buffer.alloc(32, version);
const context = Buffer.from(contextOne, 'base64');
const nonce = Buffer.from('123456789012');
const plaintext = Buffer.from(fox, 'base64');

/** A version as the peers write it. */
const entry = (version: number, fields: object = {}) => ({
  key: material(version).toString('base64'),
  hmac_key: Buffer.alloc(32, 100 + version).toString('base64'),
  time: `2024-05-0${version}T01:02:03.123456789Z`,
  ec_x: null,
  rsa_key: null,
  public_key: '',
  convergent_version: 0,
  creation_time: 1_714_525_323 + version,
  ...fields,
});

/** Returns base64 of a peer's backup of a key with two versions, with the given differences. */
function backupWith(policy: object = {}, archived: object | null = { keys: [{}, entry(1), entry(2)] }): string {
  const whole = {
    policy: {
      name: 'old',
      keys: { '1': entry(1), '2': entry(2) },
      derived: false,
      kdf: 1,
      convergent_encryption: false,
      exportable: true,
      min_decryption_version: 1,
      min_encryption_version: 0,
      latest_version: 2,
      archive_version: 2,
      archive_min_version: 0,
      min_available_version: 0,
      deletion_allowed: true,
      convergent_version: -1,
      type: 0,
      backup_info: { time: '2024-06-01T00:00:00Z', version: 2 },
      restore_info: null,
      allow_plaintext_backup: true,
      version_template: '',
      storage_prefix: '',
      auto_rotate_period: 7_200_000_000_000,
      Imported: false,
      AllowImportedKeyRotation: false,
      ...policy,
    },
    archived_keys: archived,
  };
  return Buffer.from(JSON.stringify(whole)).toString('base64');
}

async function restored(backup: string): Promise<TransitEngine> {
  const { engine } = newEngine();
  await engine.transfers.restoreKey({ backup });
  return engine;
}

function sealed(key: Uint8Array, withNonce: Uint8Array): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, withNonce);
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

describe('a backup of a peer', () => {
  it('restores settings, times, versions and secrets', async () => {
    const engine = await restored(backupWith());
    expect(await engine.readKey('old')).to.deep.include({
      type: 'aes256-gcm96',
      exportable: true,
      allowPlaintextBackup: true,
      deletionAllowed: true,
      autoRotatePeriodS: 7200,
      latestVersion: 2,
      versions: [1, 2].map((version) => ({ version, createdMs: Date.parse(`2024-05-0${version}T01:02:03.123Z`) })),
    });
    const ciphertext = `vault:v1:${Buffer.concat([nonce, sealed(material(1), nonce)]).toString('base64')}`;
    expect(await decryptOne(engine, 'old', { ciphertext })).to.deep.equal({ plaintext: fox });
    const hmac = createHmac('sha256', Buffer.alloc(32, 102)).update(plaintext).digest('base64');
    expect(await engine.signing.verify('old', { input: fox, hmac: `vault:v2:${hmac}` })).to.deep.equal({ valid: true });
  });

  it('restores versions that only a trimmed archive has', async () => {
    const policy = { keys: { '3': entry(3) }, latest_version: 3, min_decryption_version: 3, min_encryption_version: 3 };
    const trimmed = { ...policy, min_available_version: 2, archive_min_version: 2 };
    const engine = await restored(backupWith(trimmed, { keys: [entry(2), entry(3)] }));
    await engine.configureKey('old', { minDecryptionVersion: 2 });
    const ciphertext = `vault:v2:${Buffer.concat([nonce, sealed(material(2), nonce)]).toString('base64')}`;
    expect(await decryptOne(engine, 'old', { ciphertext })).to.deep.equal({ plaintext: fox });
  });

  it('of a soft-deleted key of OpenBao restores it as soft-deleted', async () => {
    const engine = await restored(backupWith({ soft_deleted: true }));
    expect(await refusalOf(engine.signing.hmac('old', { input: fox }))).to.include({ code: 'soft_deleted' });
    expect((await engine.restoreDeletedKey('old')).key).to.include({ latestVersion: 2, autoRotatePeriodS: 7200 });
    expect(await engine.signing.hmac('old', { input: fox })).to.include({ keyVersion: 2 });
  });

  for (const [peer, type] of [
    ['Vault', 11],
    ['OpenBao', 10],
  ] as const) {
    it(`of a key of type hmac, which ${peer} numbers ${type}, restores the key size from the material`, async () => {
      const secret = Buffer.alloc(64, 9).toString('base64');
      const keys = { '1': entry(1, { key: secret, hmac_key: secret }) };
      const engine = await restored(
        backupWith({ type, key_size: 64, keys, latest_version: 1, auto_rotate_period: 0, backup_info: null }, null),
      );
      expect(await engine.readKey('old')).to.include({ type: 'hmac', keySize: 64 });
      const hmac = createHmac('sha256', Buffer.alloc(64, 9)).update(plaintext).digest('base64');
      expect(await engine.signing.hmac('old', { input: fox })).to.deep.equal({ hmac: `svc:v1:${hmac}`, keyVersion: 1 });
    });
  }

  it('distinguishes an HMAC key of 32 bytes from a cipher key by its secret', async () => {
    for (const type of [10, 11]) {
      const same = (version: number) => entry(version, { hmac_key: material(version).toString('base64') });
      const engine = await restored(backupWith({ type, key_size: 32, keys: { '1': same(1), '2': same(2) } }));
      expect(await engine.readKey('old')).to.include({ type: 'hmac', keySize: 32, latestVersion: 2 });
    }
  });

  it('of a CMAC key of Vault is restored', async () => {
    const engine = await restored(backupWith({ type: 13 }));
    expect(await engine.readKey('old')).to.include({ type: 'aes256-cmac', latestVersion: 2 });
  });

  it('keeps the time of the last backup, as the peers do', async () => {
    const engine = await restored(backupWith());
    expect((await engine.readKey('old')).backup).to.deep.equal({ timeMs: Date.parse('2024-06-01T00:00:00Z'), version: 2 });
  });

  it('generates an HMAC secret for the oldest versions, which have none', async () => {
    const engine = await restored(backupWith({ keys: { '1': entry(1, { hmac_key: null }), '2': entry(2) } }));
    expect(await engine.signing.hmac('old', { input: fox, keyVersion: 1 })).to.include({ keyVersion: 1 });
  });

  it('raises a period of automatic rotation below an hour to an hour', async () => {
    const engine = await restored(backupWith({ auto_rotate_period: 1_000_000_000 }));
    expect(await engine.readKey('old')).to.include({ autoRotatePeriodS: 3600 });
  });

  it('with times in the future gets the current time, and can be backed up and restored again', async () => {
    const [time, hourMs] = ['9999-01-01T00:00:00Z', 3_600_000];
    const { engine, clock } = newEngine();
    await engine.transfers.restoreKey({ backup: backupWith({ keys: { '1': entry(1), '2': entry(2, { time }) } }) });
    expect((await engine.readKey('old')).versions.at(-1)).to.deep.equal({ version: 2, createdMs: startMs });
    const backup = (await engine.transfers.backupKey('old')).toString('base64');
    await engine.transfers.restoreKey({ backup, name: 'again' });
    clock.nowMs += 2 * hourMs;
    expect(await engine.rotateDue(10)).to.deep.equal({ done: 2, failed: [] });
  });

  for (const [policy, because] of [
    [{ type: 14 }, 'a type that this program does not have'],
    [{ type: -1 }, 'a type below zero'],
    [{ type: 10, keys: { '1': entry(1, { key: null }), '2': entry(2, { key: null }) } }, 'a managed key of Vault'],
    [{ type: 10 }, 'the number of HMAC keys with the content of a cipher key'],
    [{ type: 11 }, 'xchacha20-poly1305 of OpenBao'],
    [{ type: 11, soft_deleted: false }, 'xchacha20-poly1305 of a newer OpenBao'],
    [{ type: 11, keys: { '1': entry(1, { hmac_key: null }), '2': entry(2, { hmac_key: null }) } }, 'a type that cannot be told'],
    [{ type: 11, keys: { '1': entry(1, { hmac_key: entry(1).key }), '2': entry(2) } }, 'versions that look like two types'],
    [{ type: 13, soft_deleted: false }, 'a number of Vault in a backup of OpenBao'],
    [{ backup_info: { time: 'never', version: 1 } }, 'a last backup at no time'],
    [{ type: 3 }, 'a key pair without its numbers'],
    [{ type: 2 }, 'a key pair without its public half'],
    [{ type: 8 }, 'material that does not fit the type'],
    [{ keys: {}, latest_version: 5 }, 'a version that is missing'],
    [{ latest_version: 0 }, 'no version'],
    [{ latest_version: 1e9 }, 'more versions than there can be'],
    [{ latest_version: '2' }, 'a number that is text'],
    [{ keys: { '1': entry(1, { key: '!!' }), '2': entry(2) } }, 'material that is not base64'],
    [{ name: 'a/b' }, 'a name that is a path'],
    [{ min_decryption_version: 3 }, 'a minimum above the latest version'],
    [{ min_encryption_version: 1, min_decryption_version: 2 }, 'minimums that contradict each other'],
    [{ auto_rotate_period: -1 }, 'a period below zero'],
    [
      {
        ...convergent,
        convergent_version: -1,
        keys: { '1': entry(1, { convergent_version: 1 }), '2': entry(2, { convergent_version: 3 }) },
      },
      'a version whose nonce would come from its caller, on a key that does not take one',
    ],
    [
      {
        ...convergent,
        convergent_version: 1,
        keys: { '1': entry(1, { convergent_version: 1 }), '2': entry(2, { convergent_version: 3 }) },
      },
      'a version that makes its nonce, on a key that takes it from its caller',
    ],
    [
      {
        latest_version: 1e10,
        min_available_version: 1e10,
        min_decryption_version: 1e10,
        min_encryption_version: 1e10,
        keys: { '10000000000': entry(2) },
      },
      'more digits than a version number has',
    ],
    [{ derived: true, kdf: 2 }, 'a key derivation that is not known'],
    [{ convergent_encryption: true }, 'convergent without derived'],
    [{ derived: true, kdf: 0, convergent_encryption: true, convergent_version: -1 }, 'a derivation too short for its nonces'],
  ] as const) {
    it(`is refused, and nothing written, for ${because}`, async () => {
      const { engine, store } = newEngine();
      expect((await refusalOf(engine.transfers.restoreKey({ backup: backupWith(policy) }))).code).to.equal('invalid_request');
      expect(await everything(store)).to.deep.equal({});
    });
  }
});

describe('convergent keys of old versions, which only a restore creates', () => {
  const derived = { derived: true, convergent_encryption: true };

  it('version 1 takes the nonce from the caller, and omits it in the ciphertext', async () => {
    const engine = await restored(backupWith({ ...derived, convergent_version: 1, auto_rotate_period: 0 }));
    const request = { plaintext: fox, context: contextOne, nonce: nonce.toString('base64') };
    const key = Buffer.from(hkdfSync('sha256', material(2), '', context, 32));
    const { ciphertext } = await encryptOne(engine, 'old', request);
    expect(ciphertext).to.equal(`svc:v2:${sealed(key, nonce).toString('base64')}`);
    expect(await decryptOne(engine, 'old', { ...request, ciphertext })).to.deep.equal({ plaintext: fox });
    await engine.rotateKey('old');
    expect(await rewrapOne(engine, 'old', { ...request, ciphertext })).to.include({ keyVersion: 3 });
    for (const wrong of [undefined, '', Buffer.alloc(11).toString('base64')]) {
      for (const asked of [
        engine.ciphertexts.encrypt('old', { ...request, nonce: wrong, mayCreate: true, mayUpdate: true }),
        engine.ciphertexts.decrypt('old', { ...request, ciphertext, nonce: wrong }),
      ]) {
        expect((await refusalOf(asked)).message).to.contain('nonce must be 12 bytes long');
      }
    }
  });

  it('version 2 computes the nonce under the context, and its next key version uses version 3', async () => {
    const engine = await restored(backupWith({ ...derived, convergent_version: 2 }));
    const expectedNonce = createHmac('sha256', context).update(plaintext).digest().subarray(0, 12);
    const key = Buffer.from(hkdfSync('sha256', material(2), '', context, 32));
    const { ciphertext } = await encryptOne(engine, 'old', { plaintext: fox, context: contextOne });
    const expected = Buffer.concat([expectedNonce, sealed(key, expectedNonce)]).toString('base64');
    expect(ciphertext).to.equal(`svc:v2:${expected}`);
    expect(await engine.readKey('old')).to.include({ convergentEncryptionVersion: 2 });
    await engine.rotateKey('old');
    const next = await encryptOne(engine, 'old', { plaintext: fox, context: contextOne });
    expect(layoutOf(next.ciphertext).nonce.equals(expectedNonce)).to.equal(false);
    expect(await encryptOne(engine, 'old', { plaintext: fox, context: contextOne })).to.deep.equal(next);
    expect(await decryptOne(engine, 'old', { ciphertext, context: contextOne })).to.deep.equal({ plaintext: fox });
  });

  it('versions 1 and 2 refuse to encrypt with associated data, on which the nonce does not depend', async () => {
    for (const version of [1, 2]) {
      const engine = await restored(backupWith({ ...derived, convergent_version: version }));
      const asked = { plaintext: fox, context: contextOne, associatedData: fox, mayCreate: true, mayUpdate: true };
      const request = { ...asked, ...(version === 1 && { nonce: nonce.toString('base64') }) };
      expect((await refusalOf(engine.ciphertexts.encrypt('old', request))).message).to.contain('associated_data cannot be used');
    }
  });

  it('keys with derivation in counter mode decrypt and encrypt', async () => {
    const engine = await restored(backupWith({ derived: true, kdf: 0 }));
    const input = Buffer.concat([Buffer.from('00000000', 'hex'), context, Buffer.from('00000100', 'hex')]);
    const key = createHmac('sha256', material(1)).update(input).digest();
    const ciphertext = `vault:v1:${Buffer.concat([nonce, sealed(key, nonce)]).toString('base64')}`;
    expect(await decryptOne(engine, 'old', { ciphertext, context: contextOne })).to.deep.equal({ plaintext: fox });
    expect(await engine.readKey('old')).to.include({ kdf: 'hmac-sha256-counter' });
  });
});
