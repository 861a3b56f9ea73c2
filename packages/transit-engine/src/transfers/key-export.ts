import { nextTurn } from '@transitd/event-loop';
import type { Store } from '@transitd/storage-fsm';
import { noBytes } from '../algorithms/aead.ts';
import { publicPemOf } from '../key-pairs/key-formats.ts';
import type { KeyPairScheme } from '../key-pairs/key-pair.ts';
import type { StoredKey } from '../keys/key.ts';
import { type KeyRecord, latestUsable } from '../keys/key-record.ts';
import { apiNameOf, type KeyType, keyType } from '../keys/key-type.ts';
import type { Paths } from '../keys/paths.ts';
import { type NumberedVersion, versionsBetween } from '../keys/stored-versions.ts';
import { wipeSecrets } from '../keys/version-record.ts';
import { TransitError } from '../values/errors.ts';

/** A request to export key material. */
export interface ExportRequest {
  /** `encryption-key`, `signing-key`, `hmac-key`, `cmac-key`, `public-key` or `certificate-chain`. */
  readonly exportType: string;
  /** `latest`, `n` or `vn`; all usable versions when absent. */
  readonly version?: string | undefined;
}

/** Exported versions. The caller wipes them after use. */
export interface KeyExport {
  readonly name: string;
  readonly type: string;
  readonly latestVersion: number;
  readonly versions: readonly ExportedVersion[];
}

/** Bytes to be encoded as base64, or text in UTF-8. */
interface Exported {
  readonly form: 'base64' | 'text';
  readonly material: Uint8Array;
}

export interface ExportedVersion extends Exported {
  readonly version: number;
}

/** Copies the exported part of a version. */
type Part = (version: NumberedVersion) => Exported;

interface ExportKind {
  /** Returns undefined for types without this part. */
  readonly partOf: (type: KeyType) => Part | undefined;
  readonly unsupported: (type: KeyType) => string;
  /** Whether the part is public, so that every key may export it. */
  readonly isPublic: boolean;
}

const raw = (bytes: Uint8Array): Exported => ({ form: 'base64', material: Uint8Array.from(bytes) });
const text = (content: string): Exported => ({ form: 'text', material: Buffer.from(content) });
const material: Part = (version) => raw(version.material);
const hmacSecret: Part = (version) => raw(version.hmacSecret);

/** Empty if only the public half is known. */
const privateHalf =
  ({ exported }: KeyPairScheme): Part =>
  (version) =>
    version.material.length === 0 ? text('') : { form: exported.form, material: exported.of(version.material) };

const publicHalf =
  (scheme: KeyPairScheme): Part =>
  ({ publicKey = noBytes }) =>
    text((scheme.exported.publicText ?? scheme.publicText)(publicKey));

/** Empty for a symmetric key. */
const managedPublicHalf: Part = ({ publicKey }) => text(publicKey === undefined ? '' : publicPemOf(publicKey));

const certificateChain: Part = (version) => {
  if (version.certificateChain !== undefined) return text(version.certificateChain);
  throw refusal('selected key version does not have a certificate chain imported');
};

const kinds: ReadonlyMap<string, ExportKind> = new Map<string, ExportKind>([
  [
    'encryption-key',
    {
      partOf: ({ aead, keyPair, supportsEncryption }) =>
        aead ? material : keyPair && supportsEncryption ? privateHalf(keyPair) : undefined,
      unsupported: () => 'encryption not supported for the key',
      isPublic: false,
    },
  ],
  ['cmac-key', { partOf: ({ cmac }) => cmac && material, unsupported: () => 'CMAC not supported for the key', isPublic: false }],
  [
    'hmac-key',
    {
      partOf: ({ materialIsHmacSecret }) => (materialIsHmacSecret ? material : hmacSecret),
      unsupported: () => 'HMAC not supported for the key',
      isPublic: false,
    },
  ],
  [
    'signing-key',
    {
      partOf: ({ keyPair }) => keyPair && privateHalf(keyPair),
      unsupported: () => 'signing not supported for the key',
      isPublic: false,
    },
  ],
  [
    'public-key',
    {
      partOf: ({ keyPair, managed }) => (managed ? managedPublicHalf : keyPair && publicHalf(keyPair)),
      unsupported: ({ name }) => `unknown key type ${name} for export type public-key`,
      isPublic: true,
    },
  ],
  [
    'certificate-chain',
    {
      partOf: ({ keyPair }) => keyPair && certificateChain,
      unsupported: () => 'certificate chain not supported for keys that do not support signing',
      isPublic: true,
    },
  ],
]);

/** @throws TransitError `invalid_request` for an unknown export type */
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
  const type = keyType(record.type);
  const part = kind.partOf(type);
  if (part === undefined) throw refusal(kind.unsupported(type));
  const versions = await versionsBetween(store, paths, record, requestedVersions(version, record));
  const exported: ExportedVersion[] = [];
  try {
    for (const each of versions) {
      if (exported.length % exportsPerTurn === exportsPerTurn - 1) await nextTurn();
      exported.push({ version: each.version, ...part(each) });
    }
  } catch (error) {
    for (const each of exported) each.material.fill(0);
    throw error;
  } finally {
    wipeSecrets(versions);
  }
  return { name, type: apiNameOf(type), latestVersion: latestUsable(record), versions: exported };
}

/** Number of versions to export between two turns of the event loop: a few milliseconds of work. */
const exportsPerTurn = 20;

/** Returns the range of requested versions. @param version - `latest`, `n` or `vn`; absent for all usable versions */
export function requestedVersions(
  version: string | undefined,
  record: KeyRecord,
): { readonly first: number; readonly last: number } {
  const first = version === undefined ? record.minDecryptionVersion : requestedVersion(version, record);
  return { first, last: version === undefined ? latestUsable(record) : first };
}

function kindOf(exportType: string): ExportKind {
  const kind = kinds.get(exportType);
  if (kind === undefined) throw refusal(`invalid export type: ${exportType}`);
  return kind;
}

function requestedVersion(requested: string, record: KeyRecord): number {
  const { minDecryptionVersion } = record;
  const latestVersion = latestUsable(record);
  if (requested === 'latest') return latestVersion;
  const digits = /^v?(\d{1,15})$/.exec(requested)?.[1];
  if (digits === undefined) throw refusal('invalid key version');
  const version = Number(digits);
  if (version < minDecryptionVersion) throw refusal('version for export is below minimum decryption version');
  if (version > latestVersion) throw refusal('version does not exist or cannot be found');
  return version;
}

const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
