import { TransitError } from '../values/errors.ts';

/** The algorithm of a managed key. */
export type ManagedAlgorithm = 'rsa-pkcs1v15' | 'rsa-pss' | 'ecdsa' | 'aes-gcm';

/** A permitted use of a managed key. */
export type ManagedUsage = 'encrypt' | 'decrypt' | 'sign' | 'verify';

/** A reference to a managed key, by name or by id. */
export interface ManagedKeyReference {
  readonly managedKeyName?: string | undefined;
  readonly managedKeyId?: string | undefined;
}

/** The part of a managed key that a version stores. */
export interface BoundManagedKey {
  /** UUID. */
  readonly id: string;
  /** SubjectPublicKeyInfo in DER; for key pairs. */
  readonly publicKey?: Uint8Array;
}

export interface ManagedSigningInput {
  readonly digest: Uint8Array;
  /** OpenSSL's name of the hash that made the digest; null if none did. */
  readonly hash: string | null;
  /** RSA-PSS only. */
  readonly saltBytes: number;
}

export interface ManagedCipherInput {
  /** For a decryption: ciphertext ‖ tag. */
  readonly input: Uint8Array;
  readonly iv: Uint8Array;
  readonly associatedData: Uint8Array;
}

/** A key held by another system. Its methods throw {@link TransitError}. */
export interface ManagedKey {
  readonly name: string;
  readonly algorithm: ManagedAlgorithm;
  readonly usages: ReadonlySet<ManagedUsage>;
  /** Returns an RSA signature, or r ‖ s at the curve's size. */
  sign(input: ManagedSigningInput): Promise<Buffer>;
  /** @returns ciphertext ‖ tag of 16 bytes */
  encrypt(input: ManagedCipherInput): Promise<Buffer>;
  decrypt(input: ManagedCipherInput): Promise<Buffer>;
}

/** The managed keys that one mount may use. Methods throw {@link TransitError}. */
export interface ManagedKeys {
  /** Finds the key in the system that holds it, or generates it there if that is allowed. */
  bind(reference: ManagedKeyReference): Promise<BoundManagedKey>;
  /** Checks again that the mount may use the key. @param id - as returned by {@link ManagedKeys.bind} */
  find(id: string): Promise<ManagedKey>;
}

const unavailable = (): Promise<never> =>
  Promise.reject(new TransitError('invalid_request', 'there are no managed keys on this node'));

/** The managed keys of a mount that has none. */
export const noManagedKeys: ManagedKeys = { bind: unavailable, find: unavailable };
