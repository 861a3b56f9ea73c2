import { versionFor } from '../keys/key-version.ts';
import { decryptText, isText, missingCiphertext } from './decrypt.ts';
import { type EncryptResult, encryptBytes } from './encrypt.ts';
import { associatedDataOf, checkEncrypts, contextOf, inItem, nonceOf, paddingOf } from './inputs.ts';
import { checkInputs, type Item, type Operation, type RequestOf } from './operation.ts';

export interface RewrapItem extends Item {
  /** `svc:v1:…` */
  readonly ciphertext?: string | undefined;
  readonly context?: string | undefined;
  readonly associatedData?: string | undefined;
  /** The version to encrypt under; 0 selects the latest. */
  readonly keyVersion?: number | undefined;
  readonly nonce?: string | undefined;
  readonly decryptPaddingScheme?: string | undefined;
  readonly decryptHashAlgorithm?: string | undefined;
  readonly encryptPaddingScheme?: string | undefined;
  readonly encryptHashAlgorithm?: string | undefined;
}

export type RewrapRequest = RequestOf<RewrapItem>;

/**
 * Decrypts and encrypts again, with the same context and associated data: a caller without the right to encrypt cannot bind a plaintext to
 * anything else. The plaintext is never part of the reply.
 */
export const rewrapOperation: Operation<RewrapRequest, RewrapItem, void, EncryptResult> = {
  name: 'rewrap',
  shared: (request) => checkInputs<RewrapItem>(request, isText(request.ciphertext), missingCiphertext),
  async run(tools, key, item, _shared, index) {
    checkEncrypts(key, 'decryption');
    const context = contextOf(key, item.context);
    const nonce = nonceOf(key, item.nonce);
    const opened = { paddingScheme: item.decryptPaddingScheme, hashAlgorithm: item.decryptHashAlgorithm };
    const decryptPadding = paddingOf(key, opened, inItem(index, 'decrypt_'));
    const sealed = { paddingScheme: item.encryptPaddingScheme, hashAlgorithm: item.encryptHashAlgorithm };
    const encryptPadding = paddingOf(key, sealed, inItem(index, 'encrypt_'));
    const shared = { associatedData: associatedDataOf(key, item.associatedData, index), context, nonce };
    const plaintext = await decryptText(tools, key, { ...shared, ciphertext: item.ciphertext ?? '', padding: decryptPadding });
    try {
      const version = versionFor('encryption', key, item.keyVersion);
      return await encryptBytes(tools, key, { ...shared, version, plaintext, padding: encryptPadding });
    } finally {
      plaintext.fill(0);
    }
  },
};
