import type { KeyObject } from 'node:crypto';
import { noBytes } from '../algorithms/aead.ts';
import { takeWrappingKey, unwrapKey } from '../algorithms/key-wrap.ts';
import { decodeBase64 } from '../formats/base64.ts';
import { printableName } from '../formats/printable-name.ts';
import { decryptOaep } from '../key-pairs/rsa.ts';
import { checkAutoRotatePeriod, checkDerivation, type MakeKeyRequest, newKeySettings } from '../keys/key.ts';
import type { KeyRecord } from '../keys/key-record.ts';
import { apiNameOf, defaultKeyType, fitsType, isKeyType, type KeyType, keyType } from '../keys/key-type.ts';
import type { VersionMaterial } from '../keys/new-version.ts';
import { TransitError } from '../values/errors.ts';
import { wrappingKeyBytes } from './wrapping-key.ts';

/** Imported material, wrapped under the mount's wrapping key. */
export interface ImportedMaterial {
  /** base64 of a 256-bit AES key encrypted with RSA-OAEP (512 bytes), followed by the material wrapped under the AES key (RFC 5649). */
  readonly ciphertext?: string | undefined;
  /** Hash of RSA-OAEP and its mask: SHA1, SHA224, SHA256 (the default), SHA384, SHA512; case-insensitive. */
  readonly hashFunction?: string | undefined;
  /** PEM; for key pairs. */
  readonly publicKey?: string | undefined;
}

/** A request to import a key. */
export interface ImportKeyRequest extends ImportedMaterial, MakeKeyRequest {
  /** Case-insensitive. */
  readonly type?: string | undefined;
  readonly allowRotation?: boolean | undefined;
  readonly derived?: boolean | undefined;
  /** base64; ignored, because derived keys need a context with each operation. */
  readonly context?: string | undefined;
  /**
   * The engine refuses this field, even if it is false. An imported key always encrypts with random nonces, but can decrypt convergent
   * ciphertexts.
   */
  readonly convergentEncryption?: boolean | undefined;
  readonly exportable?: boolean | undefined;
  readonly allowPlaintextBackup?: boolean | undefined;
  /** Seconds: 0, or at least an hour. */
  readonly autoRotatePeriodS?: number | undefined;
}

/** A request to import a version of a key. */
export interface ImportVersionRequest extends ImportedMaterial {
  /** The version that gets its private half; for key pairs only. */
  readonly version?: number | undefined;
}

const hashFunctions: ReadonlyMap<string, string> = new Map(
  ['sha1', 'sha224', 'sha256', 'sha384', 'sha512'].map((name) => [name.toUpperCase(), name]),
);
const ephemeralKeyBytes = 32;
/**
 * Twice the largest material of any type, RSA's, plus one block of the wrapping. For material that is slightly too large, the error states
 * its size. Larger material is refused before it is unwrapped, because unwrapping it would block the event loop.
 */
const wrappedMaterialBytesMax = 5120 + 8;

/** Twice the base64 of the longest ciphertext, so that it may contain line breaks. */
const ciphertextCharsMax = 2 * Math.ceil(((wrappingKeyBytes + wrappedMaterialBytesMax) * 4) / 3);

/** Returns the settings of an imported key, without its size. @throws TransitError `invalid_request` */
export function importSettings(request: ImportKeyRequest): Omit<KeyRecord, 'id' | 'keySize'> {
  const { allowRotation = false, derived = false, autoRotatePeriodS = 0, context = '' } = request;
  if (request.convergentEncryption !== undefined) {
    throw refusal('import cannot be used on keys with convergent encryption enabled');
  }
  checkAutoRotatePeriod(autoRotatePeriodS);
  if (autoRotatePeriodS !== 0 && !allowRotation) {
    throw refusal('allow_rotation must be set to true if auto-rotation is enabled');
  }
  const type = importedType(request.type ?? defaultKeyType);
  checkDerivation({ type: type.name, derived, convergent: false });
  checkContext(context);
  return {
    ...newKeySettings,
    type: type.name,
    derived,
    convergent: false,
    exportable: request.exportable ?? false,
    allowPlaintextBackup: request.allowPlaintextBackup ?? false,
    imported: true,
    allowRotation,
    autoRotatePeriodS,
  };
}

/** Returns warnings for the caller of an import. */
export const importWarnings = ({ derived = false, context = '', ...material }: ImportKeyRequest): string[] => [
  ...(derived && context === '' ? ['the key is derived: context is not needed here, but with every operation'] : []),
  ...materialWarnings(material),
];

export const materialWarnings = ({ ciphertext = '', publicKey = '', hashFunction = '' }: ImportedMaterial): string[] => {
  if (ciphertext !== '') return publicKey === '' ? [] : ['ciphertext and public_key were both given; public_key was ignored'];
  return hashFunction === '' || hashOf(hashFunction) === hashOf() ? [] : ['hash_function has no effect without ciphertext'];
};

/** Checks the parts of the request that do not need the wrapping key. @throws TransitError `invalid_request` */
export function checkImported(
  type: KeyType,
  derived: boolean,
  { ciphertext = '', publicKey = '', hashFunction }: ImportedMaterial,
): void {
  hashOf(hashFunction);
  const { keyPair, managed } = type;
  if (managed || (keyPair !== undefined && keyPair.transfer === undefined)) throw notImportable(apiNameOf(type));
  if (ciphertext !== '') return;
  if (keyPair === undefined) {
    const advice = publicKey === '' ? "'ciphertext' must be supplied: " : '';
    throw refusal(`${advice}provided type does not support public_key import`);
  }
  if (publicKey === '') throw refusal("'ciphertext' or 'public_key' must be supplied");
  if (derived) throw refusal('error importing key: unable to import only public key for derived Ed25519 key');
}

/** Returns the imported material, which the caller wipes. @throws TransitError `invalid_request` */
export async function importedMaterial(
  wrapping: () => Promise<KeyObject>,
  type: KeyType,
  imported: ImportedMaterial,
): Promise<VersionMaterial> {
  const { ciphertext = '', publicKey = '' } = imported;
  const transfer = type.keyPair?.transfer;
  if (ciphertext === '' && transfer !== undefined) {
    return { material: new Uint8Array(0), publicKey: await transfer.fromPublicPem(publicKey) };
  }
  const material = unwrapMaterial(await wrapping(), imported);
  if (transfer === undefined) {
    if (fitsType(type, material.length)) return { material };
    material.fill(0);
    throw refusal(`error importing key: invalid key size ${material.length} bytes for key type ${type.name}`);
  }
  try {
    return await transfer.fromPkcs8(material);
  } finally {
    material.fill(0);
  }
}

/** Whether the imported material is the missing private half of the present version. Otherwise it becomes a new version. */
export function isMissingHalf(
  { material, publicKey = noBytes }: VersionMaterial,
  { material: present, publicKey: wanted = noBytes }: VersionMaterial,
  requested: boolean,
): boolean {
  if (material.length === 0) {
    if (requested) throw refusal('cannot add a public key to a key version that already has a public key set');
    return false;
  }
  const lacksPrivate = present.length === 0;
  const matches = Buffer.compare(publicKey, wanted) === 0;
  if (requested && !lacksPrivate) throw refusal('private key imported, key version cannot be updated');
  if (requested && !matches) throw refusal('cannot import key, key pair does not match');
  return lacksPrivate && matches;
}

function unwrapMaterial(wrapping: KeyObject, { ciphertext = '', hashFunction }: ImportedMaterial): Buffer {
  if (ciphertext.length > ciphertextCharsMax) throw refusal('provided ciphertext is too long');
  const wrapped = decodeBase64(ciphertext);
  if (wrapped.length <= wrappingKeyBytes) throw refusal('provided ciphertext is too short');
  if (wrapped.length > wrappingKeyBytes + wrappedMaterialBytesMax) throw refusal('provided ciphertext is too long');
  const hash = hashOf(hashFunction);
  const ephemeral = decryptOaep(wrapping, hash, wrapped.subarray(0, wrappingKeyBytes));
  if (ephemeral === undefined) throw refusal(notUnwrapped(hash.toUpperCase()));
  if (ephemeral.length !== ephemeralKeyBytes) {
    ephemeral.fill(0);
    throw refusal('expected ephemeral AES key to be 256-bit');
  }
  return unwrapKey(takeWrappingKey(ephemeral), wrapped.subarray(wrappingKeyBytes));
}

const notUnwrapped = (hash: string): string =>
  `crypto/rsa: decryption error with hash_function ${hash}: set the one that wrapped the AES key, and use the wrapping key of this mount`;

/** Returns OpenSSL's name of a hash function. @throws TransitError `invalid_request` */
export function hashOf(hashFunction = 'SHA256'): string {
  const hash = hashFunctions.get(hashFunction.toUpperCase());
  if (hash === undefined) throw refusal(`unknown hash function: ${printableName(hashFunction)}`);
  return hash;
}

function importedType(name: string): KeyType {
  const lower = name.toLowerCase();
  if (neverImported.has(lower)) throw notImportable(lower);
  if (isKeyType(lower)) {
    const type = keyType(lower);
    if (type.keyPair === undefined || type.keyPair.transfer !== undefined) return type;
  }
  throw refusal(`unknown key type: ${printableName(name)}`);
}

/** API names of types whose keys cannot be imported. */
const neverImported: ReadonlySet<string> = new Set(['ml-dsa', 'hybrid', 'managed_key']);
const notImportable = (type: string): TransitError => refusal(`keys of type ${type} cannot be imported`);

function checkContext(context: string): void {
  try {
    decodeBase64(context);
  } catch (error) {
    throw new TransitError('invalid_request', 'failed to base64-decode context', { cause: error });
  }
}

const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
