import { release } from '@transitd/process';
import { open } from '../algorithms/aead.ts';
import { decodePayload, parseCiphertext } from '../formats/ciphertext.ts';
import type { KeyPair, RsaPadding } from '../key-pairs/key-pair.ts';
import { deriveKey } from '../keys/derivation.ts';
import type { LoadedKey, LoadedVersion } from '../keys/key-cache.ts';
import { checkEnabled } from '../keys/key-record.ts';
import { decryptManaged } from '../managed/managed-cipher.ts';
import { TransitError } from '../values/errors.ts';
import { associatedDataOf, checkEncrypts, contextOf, inItem, nonceOf, type PaddingNames, paddingOf } from './inputs.ts';
import { checkInputs, type Item, type Operation, type RequestOf, type Tools } from './operation.ts';

export interface DecryptItem extends Item, PaddingNames {
  /** `svc:v1:…` */
  readonly ciphertext?: string | undefined;
  readonly context?: string | undefined;
  readonly associatedData?: string | undefined;
  readonly nonce?: string | undefined;
}

export type DecryptRequest = RequestOf<DecryptItem>;

export interface DecryptResult {
  /** base64. */
  readonly plaintext: string;
}

export const missingCiphertext = 'missing ciphertext to decrypt';

export const decryptOperation: Operation<DecryptRequest, DecryptItem, void, DecryptResult> = {
  name: 'decrypt',
  shared: (request) => checkInputs<DecryptItem>(request, isText(request.ciphertext), missingCiphertext),
  run(tools, key, item, _shared, index) {
    checkEncrypts(key, 'decryption');
    const context = contextOf(key, item.context);
    const nonce = nonceOf(key, item.nonce);
    const padding = paddingOf(key, item, inItem(index));
    const associatedData = associatedDataOf(key, item.associatedData, index);
    const made = decryptText(tools, key, { ciphertext: item.ciphertext ?? '', associatedData, context, nonce, padding });
    return made instanceof Promise ? made.then(resultOf) : resultOf(made);
  },
};

function resultOf(bytes: Buffer): DecryptResult {
  const plaintext = bytes.toString('base64');
  release(bytes);
  return { plaintext };
}

/** Returns whether a member is present and not empty. */
export const isText = (text: string | undefined): boolean => text !== undefined && text !== '';

/** A ciphertext string and the decoded inputs of its decryption. */
export interface DecryptInputs {
  readonly ciphertext: string;
  readonly associatedData: Uint8Array;
  readonly context: Uint8Array;
  /** Given by the caller when it is not part of the ciphertext; otherwise empty. */
  readonly nonce: Uint8Array;
  /** Used by RSA only. */
  readonly padding: RsaPadding;
}

/**
 * Returns the plaintext; a promise only if the version is not cached, or if another system holds the key.
 * @throws TransitError `invalid_ciphertext`, `key_version_unavailable`, or `invalid_request` for an empty ciphertext
 */
export function decryptText(tools: Tools, key: LoadedKey, inputs: DecryptInputs): Buffer | Promise<Buffer> {
  if (inputs.ciphertext === '') throw new TransitError('invalid_request', missingCiphertext);
  const { version, payload: encoded } = parseCiphertext(inputs.ciphertext, tools.prefix);
  checkVersion(key, version);
  const counted = (plaintext: Buffer): Buffer => {
    tools.tally?.add('decryptions', version);
    return plaintext;
  };
  const loaded = key.versions.get(version);
  const made =
    loaded === undefined
      ? tools.keys.loadVersion(key, version).then((found) => decryptUnder(tools, key, found, encoded, inputs))
      : decryptUnder(tools, key, loaded, encoded, inputs);
  return made instanceof Promise ? made.then(counted) : counted(made);
}

function decryptUnder(
  { managedKeys }: Tools,
  { record, type }: LoadedKey,
  loaded: LoadedVersion,
  encoded: string,
  inputs: DecryptInputs,
): Buffer | Promise<Buffer> {
  if (loaded.managed !== undefined) {
    return managedKeys.find(loaded.managed.id).then((key) => decryptManaged(key, { ...inputs, bytes: decodePayload(encoded) }));
  }
  const payload = inputs.nonce.length > 0 ? Buffer.concat([inputs.nonce, decodePayload(encoded)]) : decodePayload(encoded);
  if (loaded.pair !== undefined) return decryptWithPair(loaded.pair, payload, inputs.padding);
  if (type.aead === undefined || loaded.key === undefined) throw new Error('the loaded version has no key to decrypt with');
  const cipherKey = record.derived ? deriveKey(loaded.key, inputs.context, type.materialBytes, record.kdf) : loaded.key;
  const plaintext = open(type.aead, cipherKey, { payload, associatedData: inputs.associatedData });
  release(payload);
  return plaintext;
}

function decryptWithPair({ decrypt }: KeyPair, payload: Uint8Array, padding: RsaPadding): Buffer {
  if (decrypt !== undefined) return decrypt(payload, padding);
  const refusal = 'cannot decrypt ciphertext, key version does not have a private counterpart';
  throw new TransitError('key_version_unavailable', refusal);
}

function checkVersion({ record }: LoadedKey, version: number): void {
  if (version > record.latestVersion) {
    throw new TransitError('invalid_ciphertext', 'invalid ciphertext: version is too new');
  }
  if (version < record.minDecryptionVersion) {
    throw new TransitError('key_version_unavailable', 'ciphertext or signature version is disallowed by policy (too old)');
  }
  checkEnabled(record, version);
}
