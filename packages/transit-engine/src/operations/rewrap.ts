import { noBytes } from '../algorithms/aead.ts';
import { TransitError } from '../values/errors.ts';
import type { ItemMembers } from './batch.ts';
import { decryptText, missingCiphertext } from './decrypt.ts';
import { type EncryptResult, encryptBytes } from './encrypt.ts';
import { checkEncrypts, contextOf, nonceOf, paddingOf } from './inputs.ts';
import { versionFor } from './key-version.ts';
import { batchWithContexts, type Item, isBatch, type Operation, type RequestOf } from './operation.ts';

/** `ciphertext` is a `svc:v1:…` string, the other texts are base64; empty when absent. */
export interface RewrapItem extends Item {
  readonly ciphertext: string;
  readonly context: string;
  /** The version to encrypt under; 0 selects the latest. */
  readonly keyVersion: number;
  readonly nonce: string;
  readonly decryptPaddingScheme: string;
  readonly encryptPaddingScheme: string;
}

export type RewrapRequest = RequestOf<RewrapItem>;

/** Decrypts and encrypts again. The plaintext is never part of the reply; associated data is not supported. */
export const rewrapOperation: Operation<RewrapRequest, RewrapItem, EncryptResult> = {
  name: 'rewrap',
  workOf(request) {
    if (isBatch(request)) return batchWithContexts(readItem, request);
    const { ciphertext = '', context = '', keyVersion = 0, nonce = '' } = request;
    const { decryptPaddingScheme = '', encryptPaddingScheme = '' } = request;
    if (ciphertext === '') throw new TransitError('invalid_request', missingCiphertext);
    return { item: { ciphertext, context, keyVersion, nonce, decryptPaddingScheme, encryptPaddingScheme, reference: '' } };
  },
  async run(tools, key, item, index) {
    checkEncrypts(key, 'decryption');
    const context = contextOf(key, item.context);
    const nonce = nonceOf(key, item.nonce);
    const decryptPadding = paddingOf(key, { name: 'decrypt_padding_scheme', scheme: item.decryptPaddingScheme }, index);
    const encryptPadding = paddingOf(key, { name: 'encrypt_padding_scheme', scheme: item.encryptPaddingScheme }, index);
    const shared = { associatedData: noBytes, context, nonce };
    const plaintext = await decryptText(tools, key, { ...shared, ciphertext: item.ciphertext, padding: decryptPadding });
    try {
      const version = versionFor('encryption', key, item.keyVersion);
      return await encryptBytes(tools, key, { ...shared, version, plaintext, padding: encryptPadding });
    } finally {
      plaintext.fill(0);
    }
  },
};

const readItem = (members: ItemMembers): RewrapItem => ({
  ciphertext: members.text('ciphertext'),
  context: members.text('context'),
  keyVersion: members.integer('key_version'),
  nonce: members.text('nonce'),
  decryptPaddingScheme: members.text('decrypt_padding_scheme'),
  encryptPaddingScheme: members.text('encrypt_padding_scheme'),
  reference: members.text('reference'),
});
