import { randomBytes } from 'node:crypto';
import { TimeSlice } from '@transitd/event-loop';
import type { LoadedKey } from '../keys/key-cache.ts';
import { versionFor } from '../keys/key-version.ts';
import { TransitError } from '../values/errors.ts';
import { type EncryptResult, encryptBytes } from './encrypt.ts';
import { associatedDataOf, checkEncrypts, checkText, contextOf, nonceOf, type PaddingNames, paddingOf } from './inputs.ts';
import type { Tools } from './operation.ts';

/** A request for a data key, which the caller uses outside the engine. Texts are base64; an absent field has its default. */
export interface DatakeyRequest extends PaddingNames {
  /** `plaintext` returns the key with its ciphertext, `wrapped` the ciphertext only. */
  readonly kind: string;
  /** 128, 256 (the default) or 512. */
  readonly bits?: number | undefined;
  readonly context?: string | undefined;
  readonly associatedData?: string | undefined;
  /** 0 selects the latest. */
  readonly keyVersion?: number | undefined;
  readonly nonce?: string | undefined;
}

/** A request for several data keys. It has no nonce, because a nonce is for one ciphertext. */
export interface DatakeysRequest extends Omit<DatakeyRequest, 'nonce'> {
  /** 1 to {@link datakeysMax}. */
  readonly count?: number | undefined;
}

export interface DatakeyResult extends EncryptResult {
  /** base64; for kind `plaintext` only. */
  readonly plaintext?: string;
}

export interface DatakeysResult {
  readonly keyPairs: readonly DatakeyResult[];
  readonly keyVersion: number;
}

/** Most data keys of one request. */
export const datakeysMax = 1000;
const defaultBits = 256;

/** Checks the fields that do not depend on the key. @throws TransitError `invalid_request` */
export function checkDatakey({ kind, bits = defaultBits }: DatakeyRequest): void {
  if (kind !== 'plaintext' && kind !== 'wrapped') throw refusal("Invalid path, must be 'plaintext' or 'wrapped'");
  if (bits !== 128 && bits !== 256 && bits !== 512) throw refusal('invalid bit length');
}

/** Returns the number of data keys. @throws TransitError `invalid_request` */
export function checkDatakeys(request: DatakeysRequest): number {
  checkDatakey(request);
  const { count = 0 } = request;
  if (count >= 1 && count <= datakeysMax) return count;
  throw refusal(`count must be a number from 1 to ${datakeysMax}`);
}

/** @throws TransitError */
export const makeDatakey = async (tools: Tools, key: LoadedKey, request: DatakeyRequest): Promise<DatakeyResult> =>
  datakeyMaker(tools, key, request)();

/** Works in time slices. @throws TransitError; StoreError `sealed` when the keys are closed before the end */
export async function makeDatakeys(
  tools: Tools,
  key: LoadedKey,
  { count, ...request }: DatakeysRequest & { readonly count: number },
): Promise<DatakeysResult> {
  const make = datakeyMaker(tools, key, request);
  const first = await make();
  const keyPairs = [first];
  const slice = new TimeSlice();
  while (keyPairs.length < count) {
    if (slice.isOver) {
      await slice.next();
      tools.keys.assertOpen();
    }
    keyPairs.push(await make());
  }
  return { keyPairs, keyVersion: first.keyVersion };
}

/** Decodes a request, and returns a function that makes one data key. @throws TransitError */
function datakeyMaker(tools: Tools, key: LoadedKey, request: DatakeyRequest): () => Promise<DatakeyResult> {
  const { kind, bits = defaultBits, context = '', associatedData = '', keyVersion = 0, nonce = '' } = request;
  checkEncrypts(key, 'encryption');
  const padding = paddingOf(key, request, (member) => `${member} argument invalid`);
  checkText('context', context);
  checkText('nonce', nonce);
  const inputs = {
    version: versionFor('encryption', key, keyVersion),
    context: contextOf(key, context),
    associatedData: associatedDataOf(key, associatedData, 0),
    nonce: nonceOf(key, nonce),
    padding,
  };
  return async () => {
    const plaintext = randomBytes(bits / 8);
    try {
      const result = await encryptBytes(tools, key, { ...inputs, plaintext });
      return kind === 'plaintext' ? { ...result, plaintext: plaintext.toString('base64') } : result;
    } finally {
      plaintext.fill(0);
    }
  };
}

const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
