import { defaultHash, noHash, signatureHash } from '../algorithms/hash-algorithm.ts';
import { TransitError } from '../errors.ts';
import { decodeBase64 } from '../formats/base64.ts';
import { shownName } from '../formats/shown-name.ts';
import type { SigningOptions } from '../key-pairs/key-pair.ts';
import type { ItemMembers } from './batch.ts';
import { batchOf, type Work } from './operation.ts';
import type { SignItem, SignResult } from './sign.ts';
import { type Verifiable, type VerifyItem, type VerifyResult, verifiable } from './verify.ts';

/** How to sign, or how it was signed; what is absent or empty has its default. */
export interface SignatureSettings {
  /** Of HMACs too. */
  readonly hashAlgorithm?: string | undefined;
  readonly prehashed?: boolean | undefined;
  /** base64. */
  readonly signatureContext?: string | undefined;
  /** `pss`, the default, or `pkcs1v15`. */
  readonly signatureAlgorithm?: string | undefined;
  /** `auto`, the default, `hash`, or a number of bytes. */
  readonly saltLength?: string | undefined;
  /** `asn1`, the default, or `jws`. */
  readonly marshalingAlgorithm?: string | undefined;
}

/** One input, or `batchInput`: JSON of any form; null is as good as absent. */
export interface SignRequest extends SignatureSettings {
  /** base64. */
  readonly input?: string | undefined;
  readonly context?: string | undefined;
  /** 0 is the latest. */
  readonly keyVersion?: number | undefined;
  readonly batchInput?: unknown;
}

/** One of `signature`, `hmac` and `cmac`, or a batch of one kind. */
export type VerifyRequest = SignatureSettings & { readonly [Kind in Verifiable]?: string | undefined } & {
  /** Hash of an HMAC, where it is not `hashAlgorithm`. */
  readonly hmacAlgorithm?: string | undefined;
  readonly input?: string | undefined;
  readonly context?: string | undefined;
  readonly batchInput?: unknown;
};
export type { SignResult, VerifyResult };

/** Reading a batch takes turns, so it is waited for; a single request is not. */
type Pending<I> = Work<I> | Promise<Work<I>>;

/** @throws TransitError `invalid_request` */
export function signWork(request: SignRequest): Pending<SignItem> {
  const options = signingOptions(request);
  const { input = '', context = '', keyVersion = 0, batchInput } = request;
  if (batchInput === undefined || batchInput === null) return { item: { input, context, keyVersion, options, reference: '' } };
  const read = (members: ItemMembers): SignItem => ({
    input: members.optionalText('input'),
    context: members.text('context'),
    keyVersion,
    options,
    reference: members.text('reference'),
  });
  return batchOf({ read }, batchInput);
}

/** @throws TransitError `invalid_request` */
export function verifyWork(request: VerifyRequest): Pending<VerifyItem> {
  const { input = '', context = '', batchInput } = request;
  if (batchInput !== undefined && batchInput !== null) return verifyBatch(batchInput, request);
  const [kind, ...more] = kindsIn([request]);
  if (kind === undefined) {
    throw new TransitError('invalid_request', "neither a 'signature' nor an 'hmac' or a 'cmac' was given to verify");
  }
  if (more.length > 0) throw new TransitError('invalid_request', "provide one of 'signature', 'hmac' or 'cmac'");
  return { item: { input, context, kind, value: request[kind] ?? '', ...howMade(kind, request), reference: '' } };
}

/** All items verify one kind of thing, and each of them does. */
async function verifyBatch(batchInput: unknown, settings: VerifyRequest): Promise<Work<VerifyItem>> {
  const { items } = await batchOf({ read: readVerifyItem }, batchInput);
  const kinds = kindsIn(items);
  const [kind] = kinds;
  if (kind === undefined) {
    throw new TransitError('invalid_request', "no batch_input elements have 'signature', 'hmac' or 'cmac'");
  }
  if (kinds.length > 1) {
    const refusal = "elements of batch_input must all provide either 'signature', 'hmac' or 'cmac'";
    throw new TransitError('invalid_request', refusal);
  }
  if (!items.every((item) => item[kind] !== undefined)) {
    throw new TransitError('invalid_request', `some elements of batch_input are missing '${kind}'`);
  }
  const made = howMade(kind, settings);
  return {
    items: items.map(({ input, context, reference, [kind]: value }) => ({
      input,
      context,
      kind,
      value: value ?? '',
      ...made,
      reference,
    })),
  };
}

const readVerifyItem = (members: ItemMembers) => ({
  input: members.optionalText('input'),
  context: members.text('context'),
  signature: members.optionalText('signature'),
  hmac: members.optionalText('hmac'),
  cmac: members.optionalText('cmac'),
  reference: members.text('reference'),
});

/**
 * The kinds that are to be verified, which should be one. An empty text counts only where no other kind is given: it is refused for what is wrong
 * with it, as the peers do, and not as missing, but clients also send the members that they do not use empty.
 */
function kindsIn(given: readonly { readonly [Kind in Verifiable]?: string | undefined }[]): readonly Verifiable[] {
  const kinds = verifiable.filter((kind) => given.some((each) => each[kind] !== undefined && each[kind] !== ''));
  return kinds.length > 0 ? kinds : verifiable.filter((kind) => given.some((each) => each[kind] !== undefined)).slice(0, 1);
}

/** MACs have a hash at most; the rest of the settings is read for signatures only. */
function howMade(kind: Verifiable, settings: VerifyRequest): Pick<VerifyItem, 'hashAlgorithm' | 'options'> {
  const hashAlgorithm = (kind === 'hmac' && settings.hmacAlgorithm) || settings.hashAlgorithm || defaultHash;
  return kind === 'signature' ? { hashAlgorithm, options: signingOptions(settings) } : { hashAlgorithm };
}

/** @throws TransitError `invalid_request` for what no type of key could honour */
function signingOptions(settings: SignatureSettings): SigningOptions {
  const { prehashed = false, signatureContext = '' } = settings;
  const hash = settings.hashAlgorithm || defaultHash;
  const signatureAlgorithm = settings.signatureAlgorithm || 'pss';
  const marshaling = settings.marshalingAlgorithm || 'asn1';
  if (hash !== noHash && signatureHash(hash) === undefined) throw refusal(`invalid hash algorithm "${shownName(hash)}"`);
  if (marshaling !== 'asn1' && marshaling !== 'jws') throw refusal(`invalid marshaling type "${shownName(marshaling)}"`);
  const saltLength = saltLengthOf(settings.saltLength || 'auto');
  if (hash === noHash && !(prehashed && signatureAlgorithm === 'pkcs1v15')) {
    throw refusal('hash_algorithm=none requires both prehashed=true and signature_algorithm=pkcs1v15');
  }
  return { hash, prehashed, signatureAlgorithm, marshaling, saltLength, signatureContext: signatureContextOf(signatureContext) };
}

/** −1 stands for `hash` and 0 for `auto`. */
function saltLengthOf(text: string): SigningOptions['saltLength'] {
  const word = text.toLowerCase();
  if (word === 'auto' || word === 'hash') return word;
  if (!/^[+-]?\d{1,15}$/.test(text)) throw refusal(`salt length neither 'auto', 'hash', nor an int: ${shownName(text)}`);
  const bytes = Number(text);
  if (bytes < -1) throw refusal(`salt length is invalid: ${bytes}`);
  return bytes === -1 ? 'hash' : bytes === 0 ? 'auto' : bytes;
}

function signatureContextOf(text: string): Uint8Array {
  try {
    return decodeBase64(text);
  } catch (error) {
    throw new TransitError('invalid_request', 'failed to base64-decode signature_context', { cause: error });
  }
}

const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
