import { randomBytes } from 'node:crypto';
import { TransitError } from '../errors.ts';
import type { LoadedKey } from '../keys/key-cache.ts';
import { type EncryptResult, encryptBytes, versionForEncryption } from './encrypt.ts';
import { associatedDataOf, checkEncrypts, checkText, contextOf, defaultPadding, nonceOf, paddingFault } from './inputs.ts';
import type { Tools } from './operation.ts';

/** A new key for use elsewhere. Texts are base64; what is absent has its default. */
export interface DatakeyRequest {
  /** `plaintext` shows the key beside its ciphertext, `wrapped` does not. */
  readonly kind: string;
  /** 128, 256 (the default) or 512. */
  readonly bits?: number | undefined;
  readonly context?: string | undefined;
  readonly associatedData?: string | undefined;
  /** 0 is the latest. */
  readonly keyVersion?: number | undefined;
  readonly nonce?: string | undefined;
  readonly paddingScheme?: string | undefined;
}

export interface DatakeyResult extends EncryptResult {
  /** base64; only when it was asked for. */
  readonly plaintext?: string;
}

const defaultBits = 256;

/** What can be told to be wrong without looking at the key. @throws TransitError `invalid_request` */
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
  const sealing = {
    version: versionForEncryption(key, keyVersion),
    context: contextOf(key, context),
    associatedData: associatedDataOf(key, associatedData, 0),
    nonce: nonceOf(key, nonce),
    padding: paddingScheme === '' ? defaultPadding : paddingScheme,
  };
  const plaintext = randomBytes(bits / 8);
  try {
    const result = await encryptBytes(tools, key, { ...sealing, plaintext });
    return kind === 'plaintext' ? { ...result, plaintext: plaintext.toString('base64') } : result;
  } finally {
    plaintext.fill(0);
  }
}

const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
