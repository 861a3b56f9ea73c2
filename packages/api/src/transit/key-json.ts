import { boolean, integer, map, object, Rendered, string, time } from '@transitd/http';
import type { DisabledVersion, KeyView } from '@transitd/transit-engine';
import { shown } from '../operation/shown.ts';
import { versionsJson } from './versions-json.ts';

const occasion = shown<{ readonly timeMs: number; readonly version: number }>({
  time: [time, ({ timeMs }) => new Date(timeMs).toISOString()],
  version: [integer, ({ version }) => version],
});

const nextVersion = shown<NonNullable<KeyView['nextVersion']>>({
  'time?': [
    { ...time, description: 'Automatic rotation' },
    ({ timeMs }) => (timeMs === undefined ? undefined : new Date(timeMs).toISOString()),
  ],
  min_decryption_version: [integer, ({ minDecryptionVersion }) => minDecryptionVersion],
  min_encryption_version: [integer, ({ minEncryptionVersion }) => minEncryptionVersion],
});
const nextTrim = shown<NonNullable<KeyView['nextTrim']>>({
  time: [{ ...time, description: 'Not before this time' }, ({ timeMs }) => new Date(timeMs).toISOString()],
  min_available_version: [integer, ({ minAvailableVersion }) => minAvailableVersion],
});
const disabled = shown<DisabledVersion>({
  reason: [string, ({ reason }) => reason],
  time: [time, ({ timeMs }) => new Date(timeMs).toISOString()],
});

const version = object(
  { name: string, public_key: string, creation_time: time },
  { hybrid_public_key: string, certificate_chain: string },
);
const versions = map({ anyOf: [{ ...integer, description: 'Symmetric key: creation time in Unix seconds' }, version] });

/** A key. The member names are those of the specification. `imported` and `imported_key` have the same value. */
const shownKey = shown<KeyView>({
  name: [string, (key) => key.name],
  type: [string, (key) => key.type],
  'parameter_set?': [string, (key) => key.parameters?.parameterSet],
  'hybrid_key_type_pqc?': [string, (key) => key.parameters?.hybridKeyTypePqc],
  'hybrid_key_type_ec?': [string, (key) => key.parameters?.hybridKeyTypeEc],
  derived: [boolean, (key) => key.derived],
  'kdf?': [string, (key) => key.kdf],
  'convergent_encryption?': [boolean, (key) => key.convergentEncryption],
  'convergent_encryption_version?': [integer, (key) => key.convergentEncryptionVersion],
  deletion_allowed: [boolean, (key) => key.deletionAllowed],
  soft_deleted: [boolean, (key) => key.softDeleted === true],
  'scheduled_deletion?': [
    object({ due_time: time }),
    ({ scheduledDeletionMs: dueMs }) => (dueMs === undefined ? undefined : { due_time: new Date(dueMs).toISOString() }),
  ],
  'disabled_versions?': [
    { ...map(disabled.schema), description: 'Disabled versions, by version number' },
    ({ disabledVersions: versions }) => versions && mapValues(versions, disabled.json),
  ],
  exportable: [boolean, (key) => key.exportable],
  allow_plaintext_backup: [boolean, (key) => key.allowPlaintextBackup],
  auto_rotate_period: [{ ...integer, description: 'Seconds; 0 for never' }, (key) => key.autoRotatePeriodS],
  imported: [boolean, (key) => key.imported],
  imported_key: [boolean, (key) => key.imported],
  'imported_key_allow_rotation?': [boolean, (key) => (key.imported ? key.allowRotation : undefined)],
  'key_size?': [{ ...integer, description: 'Bytes' }, (key) => (key.keySize > 0 ? key.keySize : undefined)],
  latest_version: [integer, (key) => key.latestVersion],
  min_available_version: [integer, (key) => key.minAvailableVersion],
  min_decryption_version: [integer, (key) => key.minDecryptionVersion],
  min_encryption_version: [integer, (key) => key.minEncryptionVersion],
  'min_mac_length?': [{ ...integer, description: 'Bytes' }, (key) => key.minMacLength],
  keep_encryption_versions: [{ ...integer, description: '0 for no limit' }, (key) => key.keepEncryptionVersions],
  keep_decryption_versions: [{ ...integer, description: '0 for no limit' }, (key) => key.keepDecryptionVersions],
  trim_after: [{ ...integer, description: 'Seconds; 0 for never' }, (key) => key.trimAfterS],
  'next_version?': [
    { ...nextVersion.schema, description: 'The minimums once the next version may be used, if they move by themselves' },
    (key) => key.nextVersion && nextVersion.json(key.nextVersion),
  ],
  'next_trim?': [
    { ...nextTrim.schema, description: 'The next deletion of versions by `trim_after`' },
    (key) => key.nextTrim && nextTrim.json(key.nextTrim),
  ],
  'max_operations?': [{ ...integer, description: 'If it was set' }, (key) => key.maxOperations],
  supports_encryption: [boolean, (key) => key.supportsEncryption],
  supports_decryption: [boolean, (key) => key.supportsDecryption],
  supports_signing: [boolean, (key) => key.supportsSigning],
  supports_derivation: [boolean, (key) => key.supportsDerivation],
  'backup_info?': [occasion.schema, (key) => key.backup && occasion.json(key.backup)],
  'restore_info?': [occasion.schema, (key) => key.restore && occasion.json(key.restore)],
  // Rendered apart: the texts of many versions are kept.
  keys: [{ ...versions, description: 'Key versions, by version number' }, () => undefined],
});

const mapValues = <T>(values: Readonly<Record<string, T>>, map: (value: T) => unknown): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));

/** Returns a key as JSON. */
export function keyJson(key: KeyView): Rendered {
  const settings = JSON.stringify(shownKey.json(key));
  return new Rendered(`${settings.slice(0, -1)},"keys":${versionsJson(key.versions)}}`);
}

/** Schema of `keyJson`. */
export const keySchema = shownKey.schema;
