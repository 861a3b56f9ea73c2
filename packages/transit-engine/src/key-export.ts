import type { Store } from '@transitd/storage-fsm';
import { TransitError } from './errors.ts';
import type { StoredKey } from './key.ts';
import { type KeyType, keyType } from './key-type.ts';
import { type NumberedVersion, versionsBetween } from './key-versions.ts';
import type { Paths } from './paths.ts';
import { wipeSecrets } from './version-record.ts';

/** Which key material of which versions. */
export interface ExportRequest {
  /** `encryption-key`, `hmac-key`, `cmac-key`; types that sign have more. */
  readonly exportType: string;
  /** `latest`, `n` or `vn`; every version that may still be used when absent. */
  readonly version?: string | undefined;
}

/** Bytes of each version, which whoever shows them wipes afterwards. */
export interface KeyExport {
  readonly name: string;
  readonly type: string;
  readonly latestVersion: number;
  readonly versions: readonly { readonly version: number; readonly material: Uint8Array }[];
}

/** Takes from a version what is exported. */
type Part = (version: NumberedVersion) => Uint8Array;

interface ExportKind {
  /** Undefined for types that have no such part. */
  readonly partOf: (type: KeyType) => Part | undefined;
  readonly unsupported: string;
  /** Holds nothing secret, so that any key may export it. */
  readonly isPublic: boolean;
}

const material: Part = (version) => version.material;
const hmacSecret: Part = (version) => version.hmacSecret;

const kinds: ReadonlyMap<string, ExportKind> = new Map<string, ExportKind>([
  [
    'encryption-key',
    { partOf: ({ aead }) => aead && material, unsupported: 'encryption not supported for the key', isPublic: false },
  ],
  ['cmac-key', { partOf: ({ cmac }) => cmac && material, unsupported: 'CMAC not supported for the key', isPublic: false }],
  [
    'hmac-key',
    {
      partOf: ({ materialIsHmacSecret }) => (materialIsHmacSecret ? material : hmacSecret),
      unsupported: 'HMAC not supported for the key',
      isPublic: false,
    },
  ],
  // No type of today has the following.
  ['signing-key', { partOf: () => undefined, unsupported: 'signing not supported for the key', isPublic: false }],
  ['public-key', { partOf: () => undefined, unsupported: 'public keys not supported for the key', isPublic: true }],
  [
    'certificate-chain',
    {
      partOf: () => undefined,
      unsupported: 'certificate chain not supported for keys that do not support signing',
      isPublic: true,
    },
  ],
]);

/** @throws TransitError `invalid_request` for an export that does not exist */
export function checkExportType(exportType: string): void {
  kindOf(exportType);
}

/** @throws TransitError `invalid_request` */
export async function exportKey(
  store: Store,
  paths: Paths,
  { name, record }: StoredKey,
  { exportType, version }: ExportRequest,
): Promise<KeyExport> {
  const kind = kindOf(exportType);
  if (!record.exportable && !kind.isPublic) throw refusal('private key material is not exportable');
  const part = kind.partOf(keyType(record.type));
  if (part === undefined) throw refusal(kind.unsupported);
  const first = version === undefined ? record.minDecryptionVersion : versionAsked(version, record);
  const last = version === undefined ? record.latestVersion : first;
  const versions = await versionsBetween(store, paths, record, { first, last });
  const { type, latestVersion } = record;
  const shown = versions.map((each) => ({ version: each.version, material: Uint8Array.from(part(each)) }));
  wipeSecrets(versions);
  return { name, type, latestVersion, versions: shown };
}

function kindOf(exportType: string): ExportKind {
  const kind = kinds.get(exportType);
  if (kind === undefined) throw refusal(`invalid export type: ${exportType}`);
  return kind;
}

function versionAsked(text: string, { latestVersion, minDecryptionVersion }: StoredKey['record']): number {
  if (text === 'latest') return latestVersion;
  const digits = /^v?(\d{1,15})$/.exec(text)?.[1];
  if (digits === undefined) throw refusal('invalid key version');
  const version = Number(digits);
  if (version < minDecryptionVersion) throw refusal('version for export is below minimum decryption version');
  if (version > latestVersion) throw refusal('version does not exist or cannot be found');
  return version;
}

const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
