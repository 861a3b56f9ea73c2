import { noBytes } from '../algorithms/aead.ts';
import { decryptText, isText, missingCiphertext } from './decrypt.ts';
import { type EncryptResult, encryptBytes } from './encrypt.ts';
import { checkEncrypts, contextOf, nonceOf, paddingOf } from './inputs.ts';
import { versionFor } from './key-version.ts';
import { checkInputs, type Item, type Operation, type RequestOf } from './operation.ts';

export interface RewrapItem extends Item {
  /** `svc:v1:…` */
  readonly ciphertext?: string | undefined;
  readonly context?: string | undefined;
  /** The version to encrypt under; 0 selects the latest. */
  readonly keyVersion?: number | undefined;
  readonly nonce?: string | undefined;
  /** Neither scheme is base64. */
  readonly decryptPaddingScheme?: string | undefined;
  readonly encryptPaddingScheme?: string | undefined;
}

export type RewrapRequest = RequestOf<RewrapItem>;

/** Decrypts and encrypts again. The plaintext is never part of the reply; associated data is not supported. */
export const rewrapOperation: Operation<RewrapRequest, RewrapItem, void, EncryptResult> = {
  name: 'rewrap',
  shared: (request) => checkInputs<RewrapItem>(request, isText(request.ciphertext), missingCiphertext),
  async run(tools, key, item, _shared, index) {
    checkEncrypts(key, 'decryption');
    const context = contextOf(key, item.context);
    const nonce = nonceOf(key, item.nonce);
    const decryptPadding = paddingOf(key, { name: 'decrypt_padding_scheme', scheme: item.decryptPaddingScheme }, index);
    const encryptPadding = paddingOf(key, { name: 'encrypt_padding_scheme', scheme: item.encryptPaddingScheme }, index);
    const shared = { associatedData: noBytes, context, nonce };
    const plaintext = await decryptText(tools, key, { ...shared, ciphertext: item.ciphertext ?? '', padding: decryptPadding });
    try {
      const version = versionFor('encryption', key, item.keyVersion);
      return await encryptBytes(tools, key, { ...shared, version, plaintext, padding: encryptPadding });
    } finally {
      plaintext.fill(0);
    }
  },
};
