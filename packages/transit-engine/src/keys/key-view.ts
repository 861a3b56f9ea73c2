import { uuidText } from '../formats/uuid.ts';
import { publicPemOf } from '../key-pairs/key-formats.ts';
import type { Kdf, KeyRecord } from './key-record.ts';
import { keyType, type TypeParameters } from './key-type.ts';
import type { VersionRecord } from './version-record.ts';

/** When a version was made, in Unix milliseconds, and what of it is public. */
export interface VersionView {
  readonly version: number;
  readonly createdMs: number;
  /** On key pairs and managed keys. */
  readonly pair?: PairView;
}

export interface PairView {
  /** `P-256`, `ed25519`, `rsa-2048` …; of a managed key, its id. */
  readonly name: string;
  /** PEM or, for Ed25519 and ML-DSA, base64; empty on derived keys, unless a context selects one. */
  readonly publicKey: string;
  /** The elliptic-curve half of a hybrid key; else empty. */
  readonly hybridPublicKey: string;
  /** PEM blocks; empty when there are none. */
  readonly certificateChain: string;
}

/** What a caller may see of a key; it holds no key material. */
export interface KeyView extends Omit<KeyRecord, 'id' | 'convergent' | 'kdf' | 'convergentVersion' | 'latestCreatedMs'> {
  readonly name: string;
  /** Index of the log entry that last wrote the key. */
  readonly revision: number;
  /** Of the types that have them: the parameter set, and the two types of which a hybrid key is made. */
  readonly parameters?: TypeParameters;
  readonly supportsEncryption: boolean;
  readonly supportsDecryption: boolean;
  readonly supportsSigning: boolean;
  readonly supportsDerivation: boolean;
  /** This and the next on derived keys only. */
  readonly kdf?: Kdf;
  readonly convergentEncryption?: boolean;
  /** On convergent keys only: -1 stands for "each version has its own", which is 3 on keys made here. */
  readonly convergentEncryptionVersion?: -1 | 1 | 2;
  /** From `minDecryptionVersion` to the latest, ascending. */
  readonly versions: readonly VersionView[];
}

export function keyView(
  { name, record, revision }: { name: string; record: KeyRecord; revision: number },
  versions: readonly VersionView[],
): KeyView {
  const { id, convergent, kdf, convergentVersion, latestCreatedMs, ...settings } = record;
  const { supportsEncryption, supportsDecryption, supportsSigning, supportsDerivation, api } = keyType(record.type);
  return {
    ...settings,
    ...(api && { type: api.type, parameters: api.parameters }),
    name,
    revision,
    supportsEncryption,
    supportsDecryption,
    supportsSigning,
    supportsDerivation,
    ...(record.derived && { kdf, convergentEncryption: convergent }),
    ...(convergent && { convergentEncryptionVersion: convergentVersion }),
    versions,
  };
}

/** What is to be seen of one version. @param publicKey - another one than its own, in the form of the kind */
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
