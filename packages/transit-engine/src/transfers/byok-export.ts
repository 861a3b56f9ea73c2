import { constants, createPublicKey, type KeyObject, publicEncrypt, randomBytes } from 'node:crypto';
import { nextTurn } from '@transitd/event-loop';
import type { Store } from '@transitd/storage-fsm';
import { takeWrappingKey, wrapKey } from '../algorithms/key-wrap.ts';
import type { StoredKey } from '../keys/key.ts';
import { checkNotDeleted, isDisabled, latestUsable } from '../keys/key-record.ts';
import { apiNameOf, type KeyType, keyType } from '../keys/key-type.ts';
import { checkUnspent } from '../keys/operation-limit.ts';
import type { Paths } from '../keys/paths.ts';
import { storedVersion, versionsBetween } from '../keys/stored-versions.ts';
import { wipeSecrets } from '../keys/version-record.ts';
import { TransitError } from '../values/errors.ts';
import { leftOutWarnings, requestedVersions } from './key-export.ts';
import { hashOf } from './key-import.ts';

/** A request to wrap versions of a key for another service. */
export interface WrapRequest {
  /** Name of an RSA key, usually the wrapping key of another service, whose public half was imported. */
  readonly destination: string;
  /** `latest`, `n` or `vn`; all usable versions when absent. */
  readonly version?: string | undefined;
  /** Hash of RSA-OAEP and its mask, named as in imports; SHA256 when absent. */
  readonly hashFunction?: string | undefined;
}

export interface WrappedKey {
  readonly name: string;
  readonly type: string;
  readonly latestVersion: number;
  /** base64 of an AES key encrypted with RSA-OAEP, followed by the material wrapped under the AES key (RFC 5649). */
  readonly versions: readonly { readonly version: number; readonly wrapped: string }[];
  readonly warnings: readonly string[];
}

const ephemeralKeyBytes = 32;
/** Number of versions to wrap between two turns of the event loop: a few milliseconds of work. */
const wrapsPerTurn = 20;

/** The latest version of the key to wrap under. */
export interface Destination extends StoredKey {
  readonly version: number;
  readonly publicKey: KeyObject;
}

/** @throws TransitError `key_not_found`, `invalid_request`, `soft_deleted`, `key_version_unavailable`, `unconfirmed` */
export async function destinationOf(store: Store, paths: Paths, key: StoredKey | undefined): Promise<Destination> {
  if (key === undefined) throw new TransitError('key_not_found', 'no such destination key to export to');
  checkNotDeleted(key.record);
  const { keyPair, supportsEncryption, name } = keyType(key.record.type);
  if (keyPair === undefined) throw refusal(`message signing not supported for key type ${name}`);
  if (!supportsEncryption) throw refusal('unsupported key type in use; must be a rsa key');
  const version = latestUsable(key.record);
  checkUnspent(key.record, version);
  const { record } = await storedVersion(store, paths, key.record, version);
  wipeSecrets([record]);
  return { ...key, version, publicKey: createPublicKey(keyPair.publicText(record.publicKey ?? new Uint8Array(0))) };
}

/** @throws TransitError `invalid_request` */
export async function wrapVersions(
  store: Store,
  paths: Paths,
  { name, record }: StoredKey,
  { publicKey }: Destination,
  { version, hashFunction }: WrapRequest,
): Promise<WrappedKey> {
  const oaepHash = hashOf(hashFunction);
  if (!record.exportable) throw refusal('key is not exportable');
  const type = keyType(record.type);
  if (type.managed || (type.keyPair !== undefined && type.keyPair.transfer === undefined))
    throw refusal(`keys of type ${apiNameOf(type)} cannot be wrapped`);
  const asked = requestedVersions(version, record);
  const versions = await versionsBetween(store, paths, record, asked);
  try {
    const wrapped: WrappedKey['versions'][number][] = [];
    for (const each of versions) {
      if (isDisabled(record, each.version)) continue;
      if (wrapped.length % wrapsPerTurn === wrapsPerTurn - 1) await nextTurn();
      wrapped.push({ version: each.version, wrapped: wrap(publicKey, oaepHash, type, each.material) });
    }
    return {
      name,
      type: record.type,
      latestVersion: latestUsable(record),
      versions: wrapped,
      warnings: leftOutWarnings(record, asked),
    };
  } finally {
    wipeSecrets(versions);
  }
}

function wrap(destination: KeyObject, oaepHash: string, { keyPair }: KeyType, material: Uint8Array): string {
  if (material.length === 0) throw refusal('key version does not have a private counterpart');
  const content = keyPair?.transfer?.toPkcs8(material) ?? Buffer.from(material);
  const ephemeral = randomBytes(ephemeralKeyBytes);
  const outer = publicEncrypt({ key: destination, oaepHash, padding: constants.RSA_PKCS1_OAEP_PADDING }, ephemeral);
  const inner = wrapKey(takeWrappingKey(ephemeral), content);
  content.fill(0);
  return Buffer.concat([outer, inner]).toString('base64');
}

const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
