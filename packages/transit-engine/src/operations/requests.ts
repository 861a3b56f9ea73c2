import { defaultHash } from '../algorithms/hash-algorithm.ts';
import { TransitError } from '../errors.ts';
import type { CreateKeyRequest } from '../keys/key.ts';
import { keyType } from '../keys/key-type.ts';
import { checkContexts, type ItemMembers } from './batch.ts';
import type { CmacItem, CmacResult } from './cmac.ts';
import { type DecryptItem, type DecryptResult, decryption, missingCiphertext } from './decrypt.ts';
import { type EncryptItem, type EncryptResult, encryption, missingPlaintext } from './encrypt.ts';
import type { HmacItem, HmacResult } from './hmac.ts';
import { batchOf, type Operation, type Work } from './operation.ts';
import { type RewrapItem, rewrapping } from './rewrap.ts';

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
export type HmacRequest = RequestOf<HmacItem>;
export interface CmacRequest extends RequestOf<CmacItem> {
  /** Stands above what the items say; absent when they may say it. */
  readonly macLengthForAll?: number | undefined;
}
export type { CmacResult, DecryptResult, EncryptResult, HmacResult };

/** Reading a batch takes turns, so it is waited for; a single request is not. */
type Pending<I> = Work<I> | Promise<Work<I>>;

/** @throws TransitError `invalid_request` */
export function encryptWork(request: EncryptRequest): Pending<EncryptItem> {
  if (isBatch(request)) return batchInContexts(encryption, request.batchInput);
  const { plaintext, context = '', associatedData = '', keyVersion = 0, nonce = '', paddingScheme = '' } = request;
  if (plaintext === undefined) throw new TransitError('invalid_request', missingPlaintext);
  return { item: { plaintext, context, associatedData, keyVersion, nonce, paddingScheme, reference: '' } };
}

/** @throws TransitError `invalid_request` */
export function decryptWork(request: DecryptRequest): Pending<DecryptItem> {
  if (isBatch(request)) return batchInContexts(decryption, request.batchInput);
  const { ciphertext = '', context = '', associatedData = '', nonce = '', paddingScheme = '' } = request;
  if (ciphertext === '') throw new TransitError('invalid_request', missingCiphertext);
  return { item: { ciphertext, context, associatedData, nonce, paddingScheme, reference: '' } };
}

/** @throws TransitError `invalid_request` */
export function rewrapWork(request: RewrapRequest): Pending<RewrapItem> {
  if (isBatch(request)) return batchInContexts(rewrapping, request.batchInput);
  const { ciphertext = '', context = '', keyVersion = 0, nonce = '' } = request;
  const { decryptPaddingScheme = '', encryptPaddingScheme = '' } = request;
  if (ciphertext === '') throw new TransitError('invalid_request', missingCiphertext);
  return { item: { ciphertext, context, keyVersion, nonce, decryptPaddingScheme, encryptPaddingScheme, reference: '' } };
}

/** @throws TransitError `invalid_request` */
export function hmacWork(request: HmacRequest): Pending<HmacItem> {
  const { algorithm = defaultHash, keyVersion = 0, input } = request;
  if (!isBatch(request)) return { item: { input, algorithm, keyVersion, reference: '' } };
  const read = (members: ItemMembers): HmacItem => ({
    input: members.optionalText('input'),
    algorithm,
    keyVersion,
    reference: members.text('reference'),
  });
  return batchOf({ read }, request.batchInput);
}

/** @throws TransitError `invalid_request` */
export function cmacWork(request: CmacRequest): Pending<CmacItem> {
  const { keyVersion = 0, macLength = 0, macLengthForAll, input } = request;
  if (!isBatch(request)) return { item: { input, macLength: macLengthForAll ?? macLength, keyVersion, reference: '' } };
  const read = (members: ItemMembers): CmacItem => ({
    input: members.optionalText('input'),
    macLength: macLengthForAll ?? (members.integer('mac_length') || macLength),
    keyVersion,
    reference: members.text('reference'),
  });
  return batchOf({ read }, request.batchInput);
}

/**
 * What a key is asked to be that an encryption makes on its way: derived exactly when a context is given.
 * @throws TransitError `invalid_request`
 */
export function upsertSettings({ type, convergentEncryption }: EncryptRequest, work: Work<EncryptItem>): CreateKeyRequest {
  const first = 'item' in work ? work.item : work.items[0];
  const derived = first !== undefined && first.context !== '';
  if (type !== undefined && !keyType(type).supportsEncryption) {
    throw new TransitError('invalid_request', `key type ${type} not supported for this operation`);
  }
  if (convergentEncryption === true && !derived) {
    const refusal = 'convergent encryption requires derivation to be enabled, so context is required';
    throw new TransitError('invalid_request', refusal);
  }
  return { type, derived, convergentEncryption };
}

async function batchInContexts<I extends { readonly context: string; readonly reference: string }, R>(
  operation: Operation<I, R>,
  batchInput: unknown,
): Promise<Work<I>> {
  const work = await batchOf(operation, batchInput);
  checkContexts(work.items);
  return work;
}

const isBatch = ({ batchInput }: { readonly batchInput?: unknown }): boolean => batchInput !== undefined && batchInput !== null;
