import { expect } from 'chai';
import { withProtection } from '../../src/migrate/copy-key.ts';
import { differences } from '../../src/migrate/differences.ts';
import { methodOf, type Permission } from '../../src/migrate/method.ts';
import { presenceOf } from '../../src/migrate/plan.ts';
import { concerns } from '../../src/migrate/policies.ts';
import { versionsToSample } from '../../src/migrate/sample.ts';
import { type SeenKey, seenKey } from '../../src/migrate/source-key.ts';

const [own, peer] = [{ own: true }, { own: false }];
const key = (members: Readonly<Record<string, unknown>> = {}): SeenKey =>
  seenKey('k', { type: 'aes256-gcm96', latest_version: 2, keys: { 1: 100, 2: 200 }, ...members });
const methodFor = (
  members: Readonly<Record<string, unknown>>,
  { target = own, granted = [] }: { target?: { own: boolean }; granted?: readonly Permission[] } = {},
) => methodOf(key(members), { source: peer, target, granted: new Set(granted) });

const both = { exportable: true, allow_plaintext_backup: true };

describe('the method to move a key', () => {
  for (const { members, options = {}, kind, because } of [
    { members: both, kind: 'backup', because: 'the source may back it up' },
    { members: { exportable: true }, kind: 'import', because: 'the source may only export it' },
    {
      members: { exportable: true, convergent_encryption: true },
      kind: 'rewrap',
      because: 'an import would end its convergence',
    },
    { members: {}, kind: 'rewrap', because: 'it cannot leave the source' },
    { members: {}, options: { granted: ['exportable'] }, kind: 'import', because: 'the operator allows an export' },
    {
      members: {},
      options: { granted: ['exportable', 'allow_plaintext_backup'] },
      kind: 'backup',
      because: 'the operator allows a backup',
    },
    { members: { ...both, type: 'xchacha20-poly1305' }, kind: 'impossible', because: 'transitd has no such type' },
    { members: { ...both, type: 'managed_key' }, kind: 'impossible', because: 'its material is elsewhere' },
    { members: { ...both, soft_deleted: true }, kind: 'impossible', because: 'it is soft-deleted' },
    { members: { ...both, disabled_versions: { 1: {} } }, kind: 'backup', because: 'a backup keeps its disabled versions' },
    {
      members: { exportable: true, disabled_versions: { 1: {} } },
      kind: 'rewrap',
      because: 'an import would enable its disabled versions',
    },
    {
      members: { ...both, disabled_versions: { 1: {} } },
      options: { target: peer },
      kind: 'impossible',
      because: 'the peers would enable its disabled versions',
    },
    { members: { ...both, soft_deleted: true }, options: { target: peer }, kind: 'impossible', because: 'it is soft-deleted' },
    { members: { ...both, type: 'ml-dsa' }, kind: 'backup', because: 'a backup carries every type of transitd' },
    { members: { exportable: true, type: 'ml-dsa' }, kind: 'rewrap', because: 'ml-dsa cannot be imported' },
    { members: both, options: { target: peer }, kind: 'import', because: 'the peers read no backups of transitd' },
    { members: { ...both, derived: true }, options: { target: peer }, kind: 'impossible', because: 'OpenBao derives other keys' },
    {
      members: { ...both, type: 'aes128-cmac' },
      options: { target: peer },
      kind: 'impossible',
      because: 'the peers lack the type',
    },
  ] as const)
    it(`is ${kind}, because ${because}`, () => {
      expect(methodFor(members, options).kind).to.equal(kind);
    });
});

describe('the method to move a key of transitd back to a peer', () => {
  const derived = { derived: true, exportable: true, kdf: 'hkdf_sha256' };
  const back = (members: Readonly<Record<string, unknown>>, granted: readonly Permission[] = []) =>
    methodOf(key(members), { source: own, target: peer, granted: new Set(granted) });
  for (const { members, granted, kind, because } of [
    { members: { exportable: true }, kind: 'import', because: 'it is not derived' },
    { members: derived, kind: 'backup', because: 'an import would change the derivation' },
    {
      members: { ...derived, convergent_encryption: true, convergent_encryption_version: -1 },
      kind: 'backup',
      because: 'it can be written as the peers write it',
    },
    { members: { ...derived, exportable: false }, kind: 'rewrap', because: 'it is not exportable' },
    { members: { ...derived, exportable: false }, granted: ['exportable'], kind: 'backup', because: 'the operator allows it' },
    { members: { ...derived, imported_key: true }, kind: 'backup', because: 'its derivation is in the backup' },
    {
      members: { ...derived, kdf: 'hmac-sha256-counter', imported_key: true },
      kind: 'impossible',
      because: 'Vault would derive otherwise',
    },
    { members: { ...derived, kdf: 'unknown' }, kind: 'impossible', because: 'its derivation is unknown' },
    {
      members: { ...derived, convergent_encryption: true, convergent_encryption_version: 2 },
      kind: 'impossible',
      because: 'it has an older form of convergence',
    },
  ] as const)
    it(`is ${kind}, because ${because}`, () => {
      expect(back(members, granted).kind).to.equal(kind);
    });
});

describe('a key of the same name at the target', () => {
  const before = { exportable: false, allowPlaintextBackup: false };
  for (const { ours, known, presence, because } of [
    { ours: undefined, presence: 'absent', because: 'there is none' },
    { ours: {}, presence: 'equal', because: 'all times are equal' },
    { ours: { keys: { 1: 100, 2: 201 } }, presence: 'other', because: 'a time differs' },
    { ours: { type: 'ed25519' }, presence: 'other', because: 'its type differs' },
    { ours: { latest_version: 3 }, presence: 'other', because: 'it has more versions' },
    { ours: { latest_version: 1, keys: { 1: 100 } }, presence: 'other', because: 'this program did not put it there' },
    { ours: { latest_version: 1 }, known: ['moved', 1], presence: 'older', because: 'the source was rotated since' },
    { ours: { latest_version: 2 }, known: ['moved', 1], presence: 'other', because: 'the target was rotated since' },
    {
      ours: { latest_version: 1, keys: { 1: 101 } },
      known: ['moved', 1, 'backup'],
      presence: 'other',
      because: 'the moved key was replaced at the target',
    },
    {
      ours: { latest_version: 1, keys: { 1: { public_key: 'another' } } },
      known: ['moved', 1],
      presence: 'other',
      because: 'the moved key has another public key now',
    },
    {
      ours: { latest_version: 1, keys: { 1: 500 } },
      known: ['moved', 1],
      presence: 'older',
      because: 'imports change the times',
    },
    {
      ours: { latest_version: 1, imported_key: true },
      known: ['started', 2],
      presence: 'older',
      because: 'the import was interrupted',
    },
    { ours: { latest_version: 1 }, known: ['started', 2], presence: 'other', because: 'it was not imported' },
    { ours: { keys: { 1: 7, 2: 8 } }, known: ['refused', 2], presence: 'other', because: 'the first write was refused' },
  ] as const)
    it(`is ${presence}, because ${because}`, () => {
      const [status, latestVersion, method = 'import'] =
        (known as readonly ['moved' | 'started' | 'refused', number, ('backup' | 'import')?] | undefined) ?? [];
      const state = status === undefined ? undefined : ({ status, method, latestVersion: latestVersion ?? 0, before } as const);
      expect(presenceOf(key(), ours === undefined ? undefined : key(ours), state)).to.equal(presence);
    });
});

describe('the comparison of both ends', () => {
  it('finds every setting that differs, and no other', () => {
    expect(differences(key(), key(), { times: true })).to.deep.equal([]);
    for (const [name, value] of Object.entries({
      type: 'rsa-2048',
      derived: true,
      convergent_encryption: true,
      deletion_allowed: true,
      auto_rotate_period: 7200,
      latest_version: 3,
      min_decryption_version: 2,
      min_encryption_version: 1,
    }))
      expect(differences(key(), key({ [name]: value }), { times: true }).join(), name).to.match(new RegExp(`^${name} is `));
    expect(differences(key(), key({ keys: { 1: 100, 2: 999 } }), { times: true })).to.have.length(1);
    expect(differences(key(), key({ keys: { 1: 100, 2: 999 } }), { times: false })).to.deep.equal([]);
    const pair = (publicKey: string) => key({ keys: { 1: { public_key: publicKey, creation_time: '2024-05-01T00:00:00.5Z' } } });
    expect(differences(pair('a'), pair('b'), { times: true })).to.deep.equal(['version 1 has another public key']);
  });
});

describe('the versions to sample', () => {
  it('include the oldest and the newest that may encrypt', () => {
    expect(versionsToSample(key({ latest_version: 5, min_encryption_version: 3 }))).to.deep.equal([3, 4, 5]);
    const many = versionsToSample(key({ latest_version: 1000, min_decryption_version: 10 }));
    expect([many[0], many.at(-1), many.length]).to.deep.equal([10, 1000, 8]);
  });
});

describe('the protection in a backup', () => {
  it('is set back in a backup of a peer, and nothing else changes', () => {
    const json =
      '{"policy":{"name":"\\"exportable\\":true","ec_d":98765432109876543210987,"exportable":true,"allow_plaintext_backup":true}}';
    const backup = Buffer.from(json).toString('base64');
    const changed = withProtection(backup, { exportable: false, allowPlaintextBackup: false });
    expect(Buffer.from(changed, 'base64').toString()).to.equal(
      json.replace('"exportable":true,"allow_plaintext_backup":true', '"exportable":false,"allow_plaintext_backup":false'),
    );
    expect(withProtection('AQID', { exportable: false, allowPlaintextBackup: false }), 'a backup of transitd').to.equal('AQID');
  });
});

describe('a policy concerns transit', () => {
  for (const [rule, expected] of [
    ['transit/encrypt/orders', true],
    ['transit/*', true],
    ['*', true],
    ['tran*', true],
    ['+/encrypt/*', true],
    ['{{identity.entity.name}}/keys/a', true],
    ['transit', false],
    ['secret/*', false],
    ['transit2/keys/a', false],
    ['sys/mounts/transit', false],
  ] as const)
    it(`${expected ? 'with' : 'but not with'} a rule for ${rule}`, () => {
      expect(concerns(`# a comment\npath "${rule}" { capabilities = ["read"] }`, ['transit'])).to.equal(expected);
      expect(concerns(JSON.stringify({ path: { [rule]: { capabilities: ['read'] } } }), ['transit'])).to.equal(expected);
    });

  it('compares mounts of several segments', () => {
    expect(concerns('path "team/+/keys/*" {}', ['team/a'])).to.equal(true);
    expect(concerns('path "team/b/keys/*" {}', ['team/a'])).to.equal(false);
  });
});
