import type { KeyObject } from 'node:crypto';
import { seal } from '../algorithms/aead.ts';
import { nonceBytes } from '../algorithms/nonce-pool.ts';
import { TransitError } from '../errors.ts';
import { decodeBase64 } from '../formats/base64.ts';
import { formatVersioned } from '../formats/ciphertext.ts';
import { contextNonce, deriveConvergent, deriveKey } from '../keys/derivation.ts';
import type { LoadedKey, LoadedVersion } from '../keys/key-cache.ts';
import { encryptManaged } from '../managed/managed-cipher.ts';
import { associatedDataOf, checkEncrypts, contextOf, nonceOf, paddingOf } from './inputs.ts';
import { type Item, type Operation, type Tools, versionOf } from './operation.ts';

/** Texts are base64, and empty when absent. */
export interface EncryptItem extends Item {
  readonly plaintext: string;
  readonly context: string;
  readonly associatedData: string;
  /** 0 is the latest. */
  readonly keyVersion: number;
  readonly nonce: string;
  readonly paddingScheme: string;
}

export interface EncryptResult {
  readonly ciphertext: string;
  readonly keyVersion: number;
}

export const missingPlaintext = 'missing plaintext to encrypt';

export const encryption: Operation<EncryptItem, EncryptResult> = {
  read: (members) => ({
    plaintext: members.requiredText('plaintext', missingPlaintext),
    context: members.text('context'),
    associatedData: members.text('associated_data'),
    keyVersion: members.integer('key_version'),
    nonce: members.text('nonce'),
    paddingScheme: members.text('padding_scheme'),
    reference: members.text('reference'),
  }),
  run: async (tools, key, item, index) => {
    checkEncrypts(key, 'encryption');
    const context = contextOf(key, item.context);
    const nonce = nonceOf(key, item.nonce);
    const padding = paddingOf(key, { name: 'padding_scheme', scheme: item.paddingScheme }, index);
    const version = versionForEncryption(key, item.keyVersion);
    const plaintext = decodeBase64(item.plaintext);
    const associatedData = associatedDataOf(key, item.associatedData, index);
    return encryptBytes(tools, key, { version, plaintext, associatedData, context, nonce, padding });
  },
};

/** Bytes to encrypt, and under what. */
export interface Sealing {
  readonly version: number;
  readonly plaintext: Uint8Array;
  readonly associatedData: Uint8Array;
  readonly context: Uint8Array;
  /** From the caller, where the key takes it from there; else empty. */
  readonly nonce: Uint8Array;
  /** `oaep` or `pkcs1v15`; counts for RSA only. */
  readonly padding: string;
}

/** Encrypts under one version: with the public key of a pair, or with the key or its context's, with a random nonce or, on a convergent key, its inputs'. */
export async function encryptBytes(tools: Tools, key: LoadedKey, sealing: Sealing): Promise<EncryptResult> {
  const { version, plaintext, associatedData, padding } = sealing;
  const loaded = key.versions.get(version) ?? (await versionOf(tools, key, version));
  if (loaded.pair?.encrypt !== undefined) {
    return { ciphertext: formatVersioned(tools.prefix, version, loaded.pair.encrypt(plaintext, padding)), keyVersion: version };
  }
  if (loaded.managed !== undefined) {
    const managed = await tools.managedKeys.find(loaded.managed.id);
    const ciphertext = await encryptManaged(managed, { ...sealing, bytes: plaintext }, () => tools.nonces.take());
    return { ciphertext: formatVersioned(tools.prefix, version, ciphertext), keyVersion: version };
  }
  const { aead } = key.type;
  if (aead === undefined) throw new Error('a version was loaded as one that does not encrypt');
  const { key: sealingKey, nonce = tools.nonces.take() } = sealerOf(key, loaded, sealing);
  const payload = seal(aead, sealingKey, { plaintext, associatedData, nonce });
  const kept = sealing.nonce.length > 0 ? payload.subarray(nonceBytes) : payload; // its caller keeps the nonce, not the ciphertext
  return { ciphertext: formatVersioned(tools.prefix, version, kept), keyVersion: version };
}

/** The key to seal with and, on convergent keys, the nonce; others have a random one. */
function sealerOf(
  { record, type }: LoadedKey,
  { key, convergentVersion }: LoadedVersion,
  { context, associatedData, plaintext, nonce }: Sealing,
): { readonly key: KeyObject; readonly nonce?: Uint8Array } {
  if (key === undefined) throw new Error('a version was loaded as a key pair whose type has none');
  if (!record.derived) return { key };
  if (!record.convergent) return { key: deriveKey(key, context, type.materialBytes, record.kdf) };
  if (convergentVersion === 3) return deriveConvergent(key, { context, associatedData, plaintext }, type.materialBytes);
  // Their nonces leave associated data out: two of them under one nonce would give the authentication key away.
  if (associatedData.length > 0) throw new TransitError('invalid_request', oldConvergence(convergentVersion));
  const derived = deriveKey(key, context, type.materialBytes, record.kdf);
  return { key: derived, nonce: convergentVersion === 1 ? nonce : contextNonce(context, plaintext) };
}

const oldConvergence = (version: number): string =>
  `associated_data cannot be used to encrypt under a key version with convergent encryption version ${version}`;

/**
 * The version to encrypt under: the latest, unless another one is asked for that may still be used both ways.
 * @throws TransitError `key_version_unavailable`
 */
export function versionForEncryption({ record }: LoadedKey, asked: number): number {
  const { latestVersion, minEncryptionVersion, minDecryptionVersion } = record;
  if (asked === 0) return latestVersion;
  if (asked < 0) throw unavailable('requested version for encryption is negative');
  if (asked > latestVersion) throw unavailable('requested version for encryption is higher than the latest key version');
  if (asked < minEncryptionVersion) {
    throw unavailable('requested version for encryption is less than the minimum encryption key version');
  }
  if (asked < minDecryptionVersion) throw unavailable('no such key version');
  return asked;
}

const unavailable = (message: string): TransitError => new TransitError('key_version_unavailable', message);
