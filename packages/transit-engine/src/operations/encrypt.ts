import { seal } from '../aead.ts';
import { decodeBase64 } from '../base64.ts';
import { formatCiphertext } from '../ciphertext.ts';
import { deriveConvergent, deriveKey } from '../derivation.ts';
import { TransitError } from '../errors.ts';
import type { LoadedKey } from '../key-cache.ts';
import { associatedDataOf, contextOf, refuseNonce, refusePadding } from './inputs.ts';
import type { Item, Operation, Tools } from './operation.ts';

/** Texts are base64, and empty when absent. */
export interface EncryptItem extends Item {
  readonly plaintext: string;
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
    const context = contextOf(key, item.context);
    refuseNonce(item.nonce);
    refusePadding(key, { name: 'padding_scheme', scheme: item.paddingScheme }, index);
    const version = versionForEncryption(key, item.keyVersion);
    const plaintext = decodeBase64(item.plaintext);
    const associatedData = associatedDataOf(item.associatedData, index);
    return encryptBytes(tools, key, { version, plaintext, associatedData, context });
  },
};

/** Bytes to encrypt, and under what. */
export interface Sealing {
  readonly version: number;
  readonly plaintext: Uint8Array;
  readonly associatedData: Uint8Array;
  readonly context: Uint8Array;
}

/** Encrypts under one version: with the key or its context's, with a random nonce or, on a convergent key, its inputs'. */
export async function encryptBytes(tools: Tools, key: LoadedKey, sealing: Sealing): Promise<EncryptResult> {
  const { record, type } = key;
  const { version, plaintext, associatedData, context } = sealing;
  const handle = key.versions.get(version) ?? (await tools.keys.loadVersion(key, version));
  const { key: sealingKey, nonces } = record.convergent
    ? deriveConvergent(handle, { context, associatedData, plaintext }, type.materialBytes)
    : { key: record.derived ? deriveKey(handle, context, type.materialBytes) : handle, nonces: tools.nonces };
  const payload = seal(type, sealingKey, { plaintext, associatedData, nonces });
  return { ciphertext: formatCiphertext(tools.prefix, version, payload), keyVersion: version };
}

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
