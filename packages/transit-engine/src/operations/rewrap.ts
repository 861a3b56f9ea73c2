import { noBytes } from '../aead.ts';
import { decryptText } from './decrypt.ts';
import { type EncryptResult, encryptBytes, versionForEncryption } from './encrypt.ts';
import { aeadOf, contextOf, nonceOf, refusePadding } from './inputs.ts';
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
    aeadOf(key, 'decryption');
    const context = contextOf(key, item.context);
    const nonce = nonceOf(key, item.nonce);
    refusePadding(key, { name: 'decrypt_padding_scheme', scheme: item.decryptPaddingScheme }, index);
    refusePadding(key, { name: 'encrypt_padding_scheme', scheme: item.encryptPaddingScheme }, index);
    const plaintext = await decryptText(tools, key, { ciphertext: item.ciphertext, associatedData: noBytes, context, nonce });
    try {
      const version = versionForEncryption(key, item.keyVersion);
      return await encryptBytes(tools, key, { version, plaintext, associatedData: noBytes, context, nonce });
    } finally {
      plaintext.fill(0);
    }
  },
};
