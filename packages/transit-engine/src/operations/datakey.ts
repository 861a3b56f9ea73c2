import { randomBytes } from 'node:crypto';
import type { LoadedKey } from '../keys/key-cache.ts';
import { TransitError } from '../values/errors.ts';
import { type EncryptResult, encryptBytes } from './encrypt.ts';
import { associatedDataOf, checkEncrypts, checkText, contextOf, defaultPadding, nonceOf, paddingFault } from './inputs.ts';
import { versionFor } from './key-version.ts';
import type { Tools } from './operation.ts';

/** A request for a data key, which the caller uses outside the engine. Texts are base64; an absent field has its default. */
export interface DatakeyRequest {
  /** `plaintext` returns the key with its ciphertext, `wrapped` the ciphertext only. */
  readonly kind: string;
  /** 128, 256 (the default) or 512. */
  readonly bits?: number | undefined;
  readonly context?: string | undefined;
  readonly associatedData?: string | undefined;
  /** 0 selects the latest. */
  readonly keyVersion?: number | undefined;
  readonly nonce?: string | undefined;
  readonly paddingScheme?: string | undefined;
}

export interface DatakeyResult extends EncryptResult {
  /** base64; for kind `plaintext` only. */
  readonly plaintext?: string;
}

const defaultBits = 256;

/** Checks the fields that do not depend on the key. @throws TransitError `invalid_request` */
export function checkDatakey({ kind, bits = defaultBits }: DatakeyRequest): void {
  if (kind !== 'plaintext' && kind !== 'wrapped') throw refusal("Invalid path, must be 'plaintext' or 'wrapped'");
  if (bits !== 128 && bits !== 256 && bits !== 512) throw refusal('invalid bit length');
}

/** @throws TransitError */
export async function makeDatakey(tools: Tools, key: LoadedKey, request: DatakeyRequest): Promise<DatakeyResult> {
  const { kind, bits = defaultBits, context = '', associatedData = '', keyVersion = 0, nonce = '', paddingScheme = '' } = request;
  checkEncrypts(key, 'encryption');
  const fault = paddingFault(key.type, paddingScheme);
  if (fault !== undefined) throw refusal(`padding_scheme argument invalid: ${fault}`);
  checkText('context', context);
  checkText('nonce', nonce);
  const inputs = {
    version: versionFor('encryption', key, keyVersion),
    context: contextOf(key, context),
    associatedData: associatedDataOf(key, associatedData, 0),
    nonce: nonceOf(key, nonce),
    padding: paddingScheme === '' ? defaultPadding : paddingScheme,
  };
  const plaintext = randomBytes(bits / 8);
  try {
    const result = await encryptBytes(tools, key, { ...inputs, plaintext });
    return kind === 'plaintext' ? { ...result, plaintext: plaintext.toString('base64') } : result;
  } finally {
    plaintext.fill(0);
  }
}

const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
