import { noBytes } from '../algorithms/aead.ts';
import { decryptText } from './decrypt.ts';
import { type EncryptResult, encryptBytes, versionForEncryption } from './encrypt.ts';
import { checkEncrypts, contextOf, nonceOf, paddingOf } from './inputs.ts';
import type { Item, Operation } from './operation.ts';

/** `ciphertext` is a `svc:v1:…` string, the other texts are base64; empty when absent. */
export interface RewrapItem extends Item {
  readonly ciphertext: string;
  readonly context: string;
  /** To encrypt under; 0 is the latest. */
  readonly keyVersion: number;
  readonly nonce: string;
  readonly decryptPaddingScheme: string;
  readonly encryptPaddingScheme: string;
}

/** Decrypts and encrypts again. The plaintext is never part of the answer, and associated data has no place here. */
export const rewrapping: Operation<RewrapItem, EncryptResult> = {
  read: (members) => ({
    ciphertext: members.text('ciphertext'),
    context: members.text('context'),
    keyVersion: members.integer('key_version'),
    nonce: members.text('nonce'),
    decryptPaddingScheme: members.text('decrypt_padding_scheme'),
    encryptPaddingScheme: members.text('encrypt_padding_scheme'),
    reference: members.text('reference'),
  }),
  run: async (tools, key, item, index) => {
    checkEncrypts(key, 'decryption');
    const context = contextOf(key, item.context);
    const nonce = nonceOf(key, item.nonce);
    const openPadding = paddingOf(key, { name: 'decrypt_padding_scheme', scheme: item.decryptPaddingScheme }, index);
    const sealPadding = paddingOf(key, { name: 'encrypt_padding_scheme', scheme: item.encryptPaddingScheme }, index);
    const bound = { associatedData: noBytes, context, nonce };
    const plaintext = await decryptText(tools, key, { ...bound, ciphertext: item.ciphertext, padding: openPadding });
    try {
      const version = versionForEncryption(key, item.keyVersion);
      return await encryptBytes(tools, key, { ...bound, version, plaintext, padding: sealPadding });
    } finally {
      plaintext.fill(0);
    }
  },
};
