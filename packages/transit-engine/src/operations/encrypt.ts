import type { KeyObject } from 'node:crypto';
import { release } from '@transitd/process';
import { seal } from '../algorithms/aead.ts';
import { nonceBytes } from '../algorithms/nonce-pool.ts';
import { decodeBase64 } from '../formats/base64.ts';
import { versionedHead } from '../formats/ciphertext.ts';
import type { RsaPadding } from '../key-pairs/key-pair.ts';
import { contextNonce, deriveConvergent, deriveKey } from '../keys/derivation.ts';
import type { LoadedKey, LoadedVersion } from '../keys/key-cache.ts';
import { versionFor } from '../keys/key-version.ts';
import { encryptManaged } from '../managed/managed-cipher.ts';
import { TransitError } from '../values/errors.ts';
import { associatedDataOf, checkEncrypts, contextOf, inItem, nonceOf, type PaddingNames, paddingOf } from './inputs.ts';
import { checkInputs, type Item, type Operation, type Tools } from './operation.ts';

export interface EncryptItem extends Item, PaddingNames {
  /** Required, but may be empty. */
  readonly plaintext?: string | undefined;
  readonly context?: string | undefined;
  readonly associatedData?: string | undefined;
  /** 0 selects the latest. */
  readonly keyVersion?: number | undefined;
  readonly nonce?: string | undefined;
}

/** Creates the key if none of that name exists and the caller may create it. */
export interface EncryptRequest extends EncryptItem {
  readonly items?: readonly EncryptItem[] | undefined;
  /** Type of a created key. */
  readonly type?: string | undefined;
  /** For a created key. */
  readonly convergentEncryption?: boolean | undefined;
  /** The caller's capabilities on this path: `create` applies to an unknown key, `update` to an existing one. */
  readonly mayCreate: boolean;
  readonly mayUpdate: boolean;
}

export interface EncryptResult {
  readonly ciphertext: string;
  /** The two parts of `ciphertext`. To join a long one takes a copy, which a response of its parts does without. */
  readonly parts: readonly [head: string, base64: string];
  readonly keyVersion: number;
}

const missingPlaintext = 'missing plaintext to encrypt';

export const encryptOperation: Operation<EncryptRequest, EncryptItem, void, EncryptResult> = {
  name: 'encrypt',
  shared: (request) => checkInputs<EncryptItem>(request, request.plaintext !== undefined, missingPlaintext),
  run(tools, key, item, _shared, index) {
    checkEncrypts(key, 'encryption');
    const context = contextOf(key, item.context);
    const nonce = nonceOf(key, item.nonce);
    const padding = paddingOf(key, item, inItem(index));
    const version = versionFor('encryption', key, item.keyVersion);
    if (item.plaintext === undefined) throw new TransitError('invalid_request', missingPlaintext);
    const plaintext = decodeBase64(item.plaintext);
    const associatedData = associatedDataOf(key, item.associatedData, index);
    const made = encryptBytes(tools, key, { version, plaintext, associatedData, context, nonce, padding });
    if (!(made instanceof Promise)) release(plaintext);
    return made;
  },
};

/** The decoded inputs of one encryption. */
export interface EncryptInputs {
  readonly version: number;
  readonly plaintext: Uint8Array;
  readonly associatedData: Uint8Array;
  readonly context: Uint8Array;
  /** Given by the caller on keys that require it; otherwise empty. */
  readonly nonce: Uint8Array;
  /** Used by RSA only. */
  readonly padding: RsaPadding;
}

/**
 * Encrypts under one version: with its public key, with the managed key, or with the key itself or the key derived from the context.
 * Returns a promise only if the version is not cached, or if another system holds the key: in a batch, promises cost as much as the rest.
 */
export function encryptBytes(
  tools: Tools,
  key: LoadedKey,
  inputs: EncryptInputs,
  loaded = key.versions.get(inputs.version),
): EncryptResult | Promise<EncryptResult> {
  if (loaded === undefined)
    return tools.keys.loadVersion(key, inputs.version).then((version) => encryptBytes(tools, key, inputs, version));
  const { version, plaintext, associatedData, padding } = inputs;
  if (loaded.pair?.encrypt !== undefined) {
    return encrypted(tools, version, loaded.pair.encrypt(plaintext, padding));
  }
  if (loaded.managed !== undefined) return encryptElsewhere(tools, loaded.managed, inputs);
  const { aead } = key.type;
  if (aead === undefined) throw new Error('the loaded version has no key to encrypt with');
  const { key: cipherKey, nonce = tools.nonces.take() } = cipherKeyOf(key, loaded, inputs);
  const payload = seal(aead, cipherKey, { plaintext, associatedData, nonce });
  const kept = inputs.nonce.length > 0 ? payload.subarray(nonceBytes) : payload; // the caller has the nonce, so the ciphertext omits it
  return encrypted(tools, version, kept);
}

/** Counts the encryption, and returns its result. @param payload - not used afterwards */
function encrypted({ prefix, tally }: Tools, version: number, payload: Buffer): EncryptResult {
  tally?.add('encryptions', version);
  const [head, base64] = [versionedHead(prefix, version), payload.toString('base64')];
  release(payload);
  return { ciphertext: head + base64, parts: [head, base64], keyVersion: version };
}

async function encryptElsewhere(
  tools: Tools,
  { id }: NonNullable<LoadedVersion['managed']>,
  inputs: EncryptInputs,
): Promise<EncryptResult> {
  const { version, plaintext } = inputs;
  const managed = await tools.managedKeys.find(id);
  return encrypted(tools, version, await encryptManaged(managed, { ...inputs, bytes: plaintext }, () => tools.nonces.take()));
}

/** Returns the cipher key and, for convergent keys, the nonce. Other keys use a random nonce. */
function cipherKeyOf(
  { record, type }: LoadedKey,
  { key, convergentVersion }: LoadedVersion,
  { context, associatedData, plaintext, nonce }: EncryptInputs,
): { readonly key: KeyObject; readonly nonce?: Uint8Array } {
  if (key === undefined) throw new Error('the loaded version has no symmetric key');
  if (!record.derived) return { key };
  if (!record.convergent) return { key: deriveKey(key, context, type.materialBytes, record.kdf) };
  if (convergentVersion === 3) return deriveConvergent(key, { context, associatedData, plaintext }, type.materialBytes);
  // The nonces of versions 1 and 2 do not depend on associated data. Two different values of it with one nonce would reveal the
  // authentication key.
  if (associatedData.length > 0) throw new TransitError('invalid_request', noAssociatedData(convergentVersion));
  const derived = deriveKey(key, context, type.materialBytes, record.kdf);
  return { key: derived, nonce: convergentVersion === 1 ? nonce : contextNonce(context, plaintext) };
}

const noAssociatedData = (convergentVersion: number): string =>
  `associated_data cannot be used to encrypt under a key version with convergent encryption version ${convergentVersion}`;
