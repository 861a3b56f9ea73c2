import { uuidText } from '../formats/uuid.ts';
import { publicPemOf } from '../key-pairs/key-formats.ts';
import { afterNextVersion, agingSettings, nextTrim } from './aging.ts';
import { rotationDueMs } from './due.ts';
import { type AgingSettings, type Kdf, type KeyRecord, usableVersion } from './key-record.ts';
import { keyType, type TypeParameters } from './key-type.ts';
import type { VersionRecord } from './version-record.ts';

/** A version's creation time, in Unix milliseconds, and its public part. */
export interface VersionView {
  readonly version: number;
  readonly createdMs: number;
  /** Present on key pairs and managed keys. */
  readonly pair?: PairView;
}

export interface PairView {
  /** `P-256`, `ed25519`, `rsa-2048` …; of a managed key, its id. */
  readonly name: string;
  /** PEM or, for Ed25519 and ML-DSA, base64. Empty on derived keys, unless a context selects a pair. */
  readonly publicKey: string;
  /** Public key of the elliptic-curve half of a hybrid key; otherwise empty. */
  readonly hybridPublicKey: string;
  /** PEM blocks; empty without certificates. */
  readonly certificateChain: string;
}

/** The readable part of a key, without key material. */
export interface KeyView
  extends Omit<
      KeyRecord,
      | ('id' | 'convergent' | 'kdf' | 'convergentVersion' | 'latestCreatedMs' | 'confirmedVersion' | 'minMacLength')
      | ('aging' | 'spentVersions')
    >,
    AgingSettings {
  readonly name: string;
  /** Index of the log entry that last wrote the key. */
  readonly revision: number;
  /** The parameters of the key's type, if the type has any. */
  readonly parameters?: TypeParameters;
  readonly supportsEncryption: boolean;
  readonly supportsDecryption: boolean;
  readonly supportsSigning: boolean;
  readonly supportsDerivation: boolean;
  /** This and the next field are present on derived keys only. */
  readonly kdf?: Kdf;
  readonly convergentEncryption?: boolean;
  /** Present on convergent keys only. -1 means that each version has its own convergent version, which is 3 on keys created here. */
  readonly convergentEncryptionVersion?: -1 | 1 | 2;
  /** Present on keys that make CMACs only. */
  readonly minMacLength?: number;
  /** The minimums once the next version may be used, and the time of its automatic rotation. Present if they move by themselves. */
  readonly nextVersion?: {
    readonly timeMs?: number;
    readonly minDecryptionVersion: number;
    readonly minEncryptionVersion: number;
  };
  /** The next deletion by `trimAfterS`: its earliest time, and the oldest version that it leaves. Absent if none is due. */
  readonly nextTrim?: { readonly timeMs: number; readonly minAvailableVersion: number };
  /** The latest version that may be used; 0 if none may be used yet. */
  readonly latestVersion: number;
  /** The versions from `minDecryptionVersion` to the latest that may be used, ascending. */
  readonly versions: readonly VersionView[];
}

export function keyView(
  { name, record, revision }: { name: string; record: KeyRecord; revision: number },
  versions: readonly VersionView[],
): KeyView {
  const { id, convergent, kdf, convergentVersion, latestCreatedMs, confirmedVersion, minMacLength, ...more } = record;
  const { aging, spentVersions, ...settings } = more;
  const [rotationMs, nextMinimums, trim] = [rotationDueMs(record), afterNextVersion(record), nextTrim(record)];
  const latestVersion = usableVersion(record);
  const { supportsEncryption, supportsDecryption, supportsSigning, supportsDerivation, api, cmac } = keyType(record.type);
  return {
    ...settings,
    ...agingSettings(record),
    ...(api && { type: api.type, parameters: api.parameters }),
    latestVersion,
    name,
    revision,
    supportsEncryption,
    supportsDecryption,
    supportsSigning,
    supportsDerivation,
    ...(record.derived && { kdf, convergentEncryption: convergent }),
    ...(convergent && { convergentEncryptionVersion: convergentVersion }),
    ...(cmac && { minMacLength }),
    ...(nextMinimums && { nextVersion: { ...(rotationMs !== undefined && { timeMs: rotationMs }), ...nextMinimums } }),
    ...(trim && { nextTrim: trim }),
    versions: confirmedVersion === undefined ? versions : versions.filter(({ version }) => version <= latestVersion),
  };
}

/** Returns the readable part of a version. @param publicKey - overrides the version's own; in the format of the type */
export function versionView(
  record: KeyRecord,
  {
    version,
    createdMs,
    material,
    publicKey: own,
    certificateChain = '',
  }: Pick<VersionRecord, VisibleField> & { readonly version: number },
  publicKey = record.derived ? undefined : own,
): VersionView {
  const { keyPair, managed } = keyType(record.type);
  if (managed) {
    const shown = {
      name: uuidText(material),
      publicKey: own ? publicPemOf(own) : '',
      hybridPublicKey: '',
      certificateChain,
    };
    return { version, createdMs, pair: shown };
  }
  if (keyPair === undefined) return { version, createdMs };
  const publicText = publicKey === undefined ? '' : keyPair.publicText(publicKey);
  const hybridPublicKey = (publicKey && keyPair.secondPublicText?.(publicKey)) ?? '';
  return { version, createdMs, pair: { name: keyPair.versionName, publicKey: publicText, hybridPublicKey, certificateChain } };
}

type VisibleField = 'createdMs' | 'material' | 'publicKey' | 'certificateChain';
