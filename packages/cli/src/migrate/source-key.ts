/** One version of a key, as a service shows it. */
export interface VersionSeen {
  /** Of symmetric keys in Unix seconds, of key pairs as RFC 3339. */
  readonly created: string;
  /** PEM or base64; empty for symmetric and derived keys. */
  readonly publicKey: string;
  /** PEM blocks; empty without certificates. */
  readonly certificateChain: string;
}

/** A key with its settings, as Vault, OpenBao and transitd return it. */
export interface SeenKey {
  readonly name: string;
  readonly type: string;
  readonly derived: boolean;
  readonly convergent: boolean;
  /** Name of the key derivation, as transitd and OpenBao show it for derived keys; empty otherwise. */
  readonly kdf: string;
  /** -1: each version has its own; 0 for keys that are not convergent. */
  readonly convergentVersion: number;
  readonly exportable: boolean;
  readonly allowPlaintextBackup: boolean;
  readonly deletionAllowed: boolean;
  readonly autoRotatePeriodS: number;
  readonly imported: boolean;
  /** Whether an imported key may be rotated; true for keys that were not imported. */
  readonly allowRotation: boolean;
  readonly latestVersion: number;
  readonly minAvailableVersion: number;
  readonly minDecryptionVersion: number;
  readonly minEncryptionVersion: number;
  /** Size of an HMAC key in bytes; 0 for other types. */
  readonly keySize: number;
  /** The key is deleted but can be recovered; of transitd and OpenBao. */
  readonly softDeleted: boolean;
  /** Versions that may not be used; of transitd only. */
  readonly disabledVersions: readonly number[];
  /** By number, from `minDecryptionVersion` on; empty for HMAC keys of the peers, which show none. */
  readonly versions: ReadonlyMap<number, VersionSeen>;
}

/** Reads the `data` of a key. Members that are missing count as false, 0 or empty. */
export function seenKey(name: string, data: Readonly<Record<string, unknown>>): SeenKey {
  const number = (member: string): number => Number(data[member] ?? 0);
  const imported = data['imported'] === true || data['imported_key'] === true;
  return {
    name,
    type: String(data['type']),
    derived: data['derived'] === true,
    convergent: data['convergent_encryption'] === true,
    kdf: String(data['kdf'] ?? ''),
    convergentVersion: number('convergent_encryption_version'),
    exportable: data['exportable'] === true,
    allowPlaintextBackup: data['allow_plaintext_backup'] === true,
    deletionAllowed: data['deletion_allowed'] === true,
    autoRotatePeriodS: number('auto_rotate_period'),
    imported,
    allowRotation: !imported || data['imported_key_allow_rotation'] === true,
    latestVersion: number('latest_version'),
    minAvailableVersion: number('min_available_version'),
    minDecryptionVersion: Math.max(number('min_decryption_version'), 1),
    minEncryptionVersion: number('min_encryption_version'),
    keySize: number('key_size'),
    softDeleted: data['soft_deleted'] === true,
    disabledVersions: Object.keys((data['disabled_versions'] as object | null | undefined) ?? {}).map(Number),
    versions: new Map(
      Object.entries((data['keys'] as object | null | undefined) ?? {}).map(([at, one]) => [Number(at), seenVersion(one)]),
    ),
  };
}

function seenVersion(value: unknown): VersionSeen {
  if (typeof value !== 'object' || value === null) return { created: String(value), publicKey: '', certificateChain: '' };
  const text = (name: string): string => {
    const member: unknown = Reflect.get(value, name);
    return typeof member === 'string' ? member : '';
  };
  return {
    created: text('creation_time'),
    publicKey: text('public_key').trim(),
    certificateChain: text('certificate_chain') || text('certificate-chain'),
  };
}

/** Only a backup of transitd says which versions are disabled. */
export const disabledObstacle = 'it has disabled versions, which the target would enable: enable or trim them first';

/** The first version that the service uses and exports. */
export const firstVisible = ({ minAvailableVersion, minDecryptionVersion }: SeenKey): number =>
  Math.max(minAvailableVersion, minDecryptionVersion, 1);

/** The operations of a key type, apart from HMACs, which every type makes. */
export interface Abilities {
  readonly encrypts: boolean;
  readonly signs: boolean;
  readonly cmacs: boolean;
}

export const abilitiesOf = (type: string): Abilities => ({
  encrypts: /^(?:aes\d+-gcm96|x?chacha20-poly1305|rsa-\d+)$/.test(type),
  signs: /^(?:ed25519|ecdsa-|rsa-|ml-dsa|hybrid)/.test(type),
  cmacs: type.endsWith('-cmac'),
});
