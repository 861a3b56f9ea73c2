import { TransitError } from './errors.ts';
import type { CreateKeyRequest } from './key.ts';
import { type DecryptItem, type DecryptResult, decryption, missingCiphertext } from './operations/decrypt.ts';
import { type EncryptItem, type EncryptResult, encryption, missingPlaintext } from './operations/encrypt.ts';
import { batchOf, type Work } from './operations/operation.ts';
import { type RewrapItem, rewrapping } from './operations/rewrap.ts';

/** Members of a request that work on one input, each optional, or `batchInput`: JSON of any form; null is as good as absent. */
type RequestOf<I> = { readonly [Member in keyof Omit<I, 'reference'>]?: I[Member] | undefined } & {
  readonly batchInput?: unknown;
};

/** A key is made on the way when none of that name exists and the caller may. */
export interface EncryptRequest extends RequestOf<EncryptItem> {
  /** Of the key that is made; as are the next. */
  readonly type?: string | undefined;
  readonly convergentEncryption?: boolean | undefined;
  /** The caller's capabilities on this path: `create` counts for an unknown key, `update` for an existing one. */
  readonly mayCreate: boolean;
  readonly mayUpdate: boolean;
}
export type DecryptRequest = RequestOf<DecryptItem>;
export type RewrapRequest = RequestOf<RewrapItem>;
export type { DecryptResult, EncryptResult };

/** @throws TransitError `invalid_request` */
export function encryptWork(request: EncryptRequest): Work<EncryptItem> {
  if (isBatch(request)) return batchOf(encryption, request.batchInput);
  const { plaintext, context = '', associatedData = '', keyVersion = 0, nonce = '', paddingScheme = '' } = request;
  if (plaintext === undefined) throw new TransitError('invalid_request', missingPlaintext);
  return { item: { plaintext, context, associatedData, keyVersion, nonce, paddingScheme, reference: '' } };
}

/** @throws TransitError `invalid_request` */
export function decryptWork(request: DecryptRequest): Work<DecryptItem> {
  if (isBatch(request)) return batchOf(decryption, request.batchInput);
  const { ciphertext = '', context = '', associatedData = '', nonce = '', paddingScheme = '' } = request;
  if (ciphertext === '') throw new TransitError('invalid_request', missingCiphertext);
  return { item: { ciphertext, context, associatedData, nonce, paddingScheme, reference: '' } };
}

/** @throws TransitError `invalid_request` */
export function rewrapWork(request: RewrapRequest): Work<RewrapItem> {
  if (isBatch(request)) return batchOf(rewrapping, request.batchInput);
  const { ciphertext = '', context = '', keyVersion = 0, nonce = '' } = request;
  const { decryptPaddingScheme = '', encryptPaddingScheme = '' } = request;
  if (ciphertext === '') throw new TransitError('invalid_request', missingCiphertext);
  return { item: { ciphertext, context, keyVersion, nonce, decryptPaddingScheme, encryptPaddingScheme, reference: '' } };
}

/**
 * What a key is asked to be that an encryption makes on its way: derived exactly when a context is given.
 * @throws TransitError `invalid_request`
 */
export function upsertSettings({ type, convergentEncryption }: EncryptRequest, work: Work<EncryptItem>): CreateKeyRequest {
  const first = 'item' in work ? work.item : work.items[0];
  const derived = first !== undefined && first.context !== '';
  if (convergentEncryption === true && !derived) {
    const refusal = 'convergent encryption requires derivation to be enabled, so context is required';
    throw new TransitError('invalid_request', refusal);
  }
  return { type, derived, convergentEncryption };
}

const isBatch = ({ batchInput }: { readonly batchInput?: unknown }): boolean => batchInput !== undefined && batchInput !== null;
