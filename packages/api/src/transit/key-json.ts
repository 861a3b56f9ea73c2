import { boolean, integer, map, object, Rendered, string, time } from '@transitd/http';
import type { KeyView } from '@transitd/transit-engine';
import { versionsJson } from './versions-json.ts';

/** Returns a key as JSON. The member names are those of the specification. `imported` and `imported_key` have the same value. */
export function keyJson(key: KeyView): Rendered {
  const settings = JSON.stringify({
    name: key.name,
    type: key.type,
    ...(key.parameters && {
      parameter_set: key.parameters.parameterSet,
      hybrid_key_type_pqc: key.parameters.hybridKeyTypePqc,
      hybrid_key_type_ec: key.parameters.hybridKeyTypeEc,
    }),
    derived: key.derived,
    ...(key.kdf !== undefined && { kdf: key.kdf }),
    ...(key.convergentEncryption !== undefined && { convergent_encryption: key.convergentEncryption }),
    ...(key.convergentEncryptionVersion !== undefined && { convergent_encryption_version: key.convergentEncryptionVersion }),
    deletion_allowed: key.deletionAllowed,
    exportable: key.exportable,
    allow_plaintext_backup: key.allowPlaintextBackup,
    auto_rotate_period: key.autoRotatePeriodS,
    imported: key.imported,
    imported_key: key.imported,
    ...(key.imported && { imported_key_allow_rotation: key.allowRotation }),
    ...(key.keySize > 0 && { key_size: key.keySize }),
    latest_version: key.latestVersion,
    min_available_version: key.minAvailableVersion,
    min_decryption_version: key.minDecryptionVersion,
    min_encryption_version: key.minEncryptionVersion,
    ...(key.minMacLength !== undefined && { min_mac_length: key.minMacLength }),
    supports_encryption: key.supportsEncryption,
    supports_decryption: key.supportsDecryption,
    supports_signing: key.supportsSigning,
    supports_derivation: key.supportsDerivation,
    ...(key.backup && { backup_info: occasion(key.backup) }),
    ...(key.restore && { restore_info: occasion(key.restore) }),
  });
  return new Rendered(`${settings.slice(0, -1)},"keys":${versionsJson(key.versions)}}`);
}

const occasion = ({ timeMs, version }: { readonly timeMs: number; readonly version: number }) => ({
  time: new Date(timeMs).toISOString(),
  version,
});

const occasionSchema = object({ time, version: integer });

/** Schema of `keyJson`. */
export const keySchema = object(
  {
    name: string,
    type: string,
    derived: boolean,
    deletion_allowed: boolean,
    exportable: boolean,
    allow_plaintext_backup: boolean,
    auto_rotate_period: { ...integer, description: 'Seconds; 0 for never' },
    imported: boolean,
    imported_key: boolean,
    latest_version: integer,
    min_available_version: integer,
    min_decryption_version: integer,
    min_encryption_version: integer,
    supports_encryption: boolean,
    supports_decryption: boolean,
    supports_signing: boolean,
    supports_derivation: boolean,
    keys: {
      ...map({
        anyOf: [
          { ...integer, description: 'Symmetric key: creation time in Unix seconds' },
          object(
            { name: string, public_key: string, creation_time: time },
            { hybrid_public_key: string, certificate_chain: string },
          ),
        ],
      }),
      description: 'Key versions, by version number',
    },
  },
  {
    parameter_set: string,
    hybrid_key_type_pqc: string,
    hybrid_key_type_ec: string,
    kdf: string,
    convergent_encryption: boolean,
    convergent_encryption_version: integer,
    imported_key_allow_rotation: boolean,
    key_size: { ...integer, description: 'Bytes' },
    min_mac_length: { ...integer, description: 'Bytes' },
    backup_info: occasionSchema,
    restore_info: occasionSchema,
  },
);
