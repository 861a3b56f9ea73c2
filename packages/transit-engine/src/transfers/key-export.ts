import { createPublicKey, createSecretKey, type KeyObject } from 'node:crypto';
import { nextTurn } from '@transitd/event-loop';
import type { Store } from '@transitd/storage-fsm';
import { printableName } from '../formats/printable-name.ts';
import { publicPemOf } from '../key-pairs/key-formats.ts';
import type { KeyPairScheme } from '../key-pairs/key-pair.ts';
import type { StoredKey } from '../keys/key.ts';
import { checkEnabled, isDisabled, type KeyRecord, latestUsable } from '../keys/key-record.ts';
import { apiNameOf, type KeyType, keyType } from '../keys/key-type.ts';
import type { Paths } from '../keys/paths.ts';
import { type NumberedVersion, versionsBetween } from '../keys/stored-versions.ts';
import { wipeSecrets } from '../keys/version-record.ts';
import { TransitError } from '../values/errors.ts';

/** The formats of exported keys: bytes, DER and PEM (PKCS#8, SubjectPublicKeyInfo), and JSON Web Keys (RFC 7517). */
export const exportFormats = ['raw', 'der', 'pem', 'jwk'] as const;
type Format = (typeof exportFormats)[number];

/** A request to export key material. */
export interface ExportRequest {
  /** `encryption-key`, `signing-key`, `hmac-key`, `cmac-key`, `public-key` or `certificate-chain`. */
  readonly exportType: string;
  /** `latest`, `n` or `vn`; all usable versions when absent. */
  readonly version?: string | undefined;
  /** One of {@link exportFormats}; the usual one of the part when absent or empty. */
  readonly format?: string | undefined;
}

/** Exported versions. The caller wipes them after use. */
export interface KeyExport {
  readonly name: string;
  readonly type: string;
  readonly latestVersion: number;
  readonly versions: readonly ExportedVersion[];
  readonly warnings: readonly string[];
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

/** A part in each of its formats. */
type Forms = { readonly [Name in Format]?: Part } & { readonly usual: Part };

interface ExportKind {
  /** Returns undefined for types without this part. */
  readonly formsOf: (type: KeyType) => Forms | undefined;
  readonly unsupported: (type: KeyType) => string;
  /** Whether the part is public, so that every key may export it. */
  readonly isPublic: boolean;
}

const raw = (bytes: Uint8Array): Exported => ({ form: 'base64', material: Uint8Array.from(bytes) });
const text = (content: string): Exported => ({ form: 'text', material: Buffer.from(content) });
const jwk = (key: KeyObject): Exported => text(JSON.stringify(key.export({ format: 'jwk' })));

function symmetric(bytesOf: (version: NumberedVersion) => Uint8Array): Forms {
  const bytes: Part = (version) => raw(bytesOf(version));
  return { usual: bytes, raw: bytes, jwk: (version) => jwk(createSecretKey(bytesOf(version))) };
}

const material = symmetric((version) => version.material);
const hmacSecret = symmetric((version) => version.hmacSecret);

/** Makes a part from one half of a key pair. */
type PartOfHalf = (exported: (half: Uint8Array) => Exported) => Part;

/** Empty if only the public half is known. */
const ofPrivateHalf: PartOfHalf = (exported) => (version) =>
  version.material.length === 0 ? text('') : exported(version.material);
/** Empty for a symmetric managed key. */
const ofPublicHalf: PartOfHalf = (exported) => (version) =>
  version.publicKey === undefined ? text('') : exported(version.publicKey);

/** Returns the formats of a half that has a native handle. */
const nativeForms = (part: PartOfHalf, type: 'pkcs8' | 'spki', handle: (half: Uint8Array) => KeyObject) => ({
  der: part((half) => ({ form: 'base64', material: handle(half).export({ type, format: 'der' }) })),
  pem: part((half) => text(handle(half).export({ type, format: 'pem' }).toString())),
  jwk: part((half) => jwk(handle(half))),
});

function privateHalf({ exported, certified }: KeyPairScheme): Forms {
  const usual = ofPrivateHalf((half) => ({ form: exported.form, material: exported.of(half) }));
  return {
    usual,
    ...(exported.form === 'base64' && { raw: usual }),
    ...(certified && nativeForms(ofPrivateHalf, 'pkcs8', certified.privateKey)),
  };
}

function publicHalf({ exported, certified, publicText }: KeyPairScheme): Forms {
  const usual = ofPublicHalf((half) => text((exported.publicText ?? publicText)(half)));
  return {
    usual,
    ...(exported.form === 'base64' && { raw: usual }),
    ...(certified && nativeForms(ofPublicHalf, 'spki', certified.publicKey)),
  };
}

const spkiHandle = (spki: Uint8Array): KeyObject => createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
const managedPublicHalf: Forms = {
  usual: ofPublicHalf((half) => text(publicPemOf(half))),
  ...nativeForms(ofPublicHalf, 'spki', spkiHandle),
};

const chain: Part = (version) => {
  if (version.certificateChain !== undefined) return text(version.certificateChain);
  throw refusal('selected key version does not have a certificate chain imported');
};
const certificateChain: Forms = { usual: chain, pem: chain };

const kinds: ReadonlyMap<string, ExportKind> = new Map<string, ExportKind>([
  [
    'encryption-key',
    {
      formsOf: ({ aead, keyPair, supportsEncryption }) =>
        aead ? material : keyPair && supportsEncryption ? privateHalf(keyPair) : undefined,
      unsupported: () => 'encryption not supported for the key',
      isPublic: false,
    },
  ],
  ['cmac-key', { formsOf: ({ cmac }) => cmac && material, unsupported: () => 'CMAC not supported for the key', isPublic: false }],
  [
    'hmac-key',
    {
      formsOf: ({ materialIsHmacSecret }) => (materialIsHmacSecret ? material : hmacSecret),
      unsupported: () => 'HMAC not supported for the key',
      isPublic: false,
    },
  ],
  [
    'signing-key',
    {
      formsOf: ({ keyPair }) => keyPair && privateHalf(keyPair),
      unsupported: () => 'signing not supported for the key',
      isPublic: false,
    },
  ],
  [
    'public-key',
    {
      formsOf: ({ keyPair, managed }) => (managed ? managedPublicHalf : keyPair && publicHalf(keyPair)),
      unsupported: ({ name }) => `unknown key type ${name} for export type public-key`,
      isPublic: true,
    },
  ],
  [
    'certificate-chain',
    {
      formsOf: ({ keyPair }) => keyPair && certificateChain,
      unsupported: () => 'certificate chain not supported for keys that do not support signing',
      isPublic: true,
    },
  ],
]);

/** @throws TransitError `invalid_request` for an unknown export type or format */
export function checkExport({ exportType, format = '' }: ExportRequest): void {
  kindOf(exportType);
  if (format !== '' && !isFormat(format)) throw refusal(`invalid format: ${printableName(format)}`);
}

const isFormat = (format: string): format is Format => exportFormats.some((each) => each === format);

/** @throws TransitError `invalid_request` */
export async function exportKey(
  store: Store,
  paths: Paths,
  { name, record }: StoredKey,
  { exportType, version, format = '' }: ExportRequest,
): Promise<KeyExport> {
  const kind = kindOf(exportType);
  if (!record.exportable && !kind.isPublic) throw refusal('private key material is not exportable');
  const type = keyType(record.type);
  const forms = kind.formsOf(type);
  if (forms === undefined) throw refusal(kind.unsupported(type));
  const part = isFormat(format) ? forms[format] : forms.usual;
  if (part === undefined) throw refusal(withoutFormat(exportType, type, forms, format));
  const asked = requestedVersions(version, record);
  const versions = await versionsBetween(store, paths, record, asked);
  const exported: ExportedVersion[] = [];
  try {
    for (const each of versions) {
      if (isDisabled(record, each.version)) continue;
      if (exported.length % exportsPerTurn === exportsPerTurn - 1) await nextTurn();
      exported.push({ version: each.version, ...part(each) });
    }
  } catch (error) {
    for (const each of exported) each.material.fill(0);
    throw error;
  } finally {
    wipeSecrets(versions);
  }
  const warnings = leftOutWarnings(record, asked);
  return { name, type: apiNameOf(type), latestVersion: latestUsable(record), versions: exported, warnings };
}

/** Number of versions to export between two turns of the event loop: a few milliseconds of work. */
const exportsPerTurn = 20;

interface VersionRange {
  readonly first: number;
  readonly last: number;
}

/** Returns warnings about the disabled versions in a range, which are not exported. */
export function leftOutWarnings({ disabledVersions = {} }: KeyRecord, { first, last }: VersionRange): string[] {
  const leftOut = Object.keys(disabledVersions).filter((version) => Number(version) >= first && Number(version) <= last);
  return leftOut.length === 0 ? [] : [`disabled versions were left out: ${leftOut.join(', ')}`];
}

/**
 * Returns the range of requested versions.
 * @param version - `latest`, `n` or `vn`; absent for all versions, of which the disabled ones are left out
 * @throws TransitError `invalid_request`, `unconfirmed`; `key_version_unavailable` for a disabled version
 */
export function requestedVersions(version: string | undefined, record: KeyRecord): VersionRange {
  const first = version === undefined ? record.minDecryptionVersion : requestedVersion(version, record);
  return { first, last: version === undefined ? latestUsable(record) : first };
}

function withoutFormat(exportType: string, type: KeyType, forms: Forms, format: string): string {
  const others = exportFormats.filter((each) => forms[each] !== undefined);
  return `${exportType} of key type ${apiNameOf(type)} has no format ${format}: use ${others.join(' or ')}`;
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
  checkEnabled(record, version);
  return version;
}

const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
