import { constants, type KeyObject, privateDecrypt } from 'node:crypto';

/** RSA-OAEP without a label, its mask with the same hash (RFC 8017 §7.1.2). @returns undefined for every cause alike */
export function decryptOaep(key: KeyObject, oaepHash: string, ciphertext: Uint8Array): Buffer | undefined {
  try {
    return privateDecrypt({ key, oaepHash, padding: constants.RSA_PKCS1_OAEP_PADDING }, ciphertext);
  } catch {
    return undefined;
  }
}
