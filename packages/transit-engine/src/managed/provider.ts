import { TransitError } from '../errors.ts';

/** How a managed key works. */
export type ManagedAlgorithm = 'rsa-pkcs1v15' | 'rsa-pss' | 'ecdsa' | 'aes-gcm';

/** What a managed key may be used for. */
export type ManagedUsage = 'encrypt' | 'decrypt' | 'sign' | 'verify';

/** Which managed key is meant; by its name or by its id. */
export interface ManagedKeyReference {
  readonly managedKeyName?: string | undefined;
  readonly managedKeyId?: string | undefined;
}

/** What a version keeps of the managed key that it stands for. */
export interface BoundManagedKey {
  /** UUID. */
  readonly id: string;
  /** SubjectPublicKeyInfo in DER; of key pairs. */
  readonly publicKey?: Uint8Array;
}

export interface ManagedSigningInput {
  readonly digest: Uint8Array;
  /** The hash that made the digest, as OpenSSL calls it; null for an input that no hash made. */
  readonly hash: string | null;
  /** RSA-PSS only. */
  readonly saltBytes: number;
}

export interface ManagedCipherInput {
  /** Of a decryption, ciphertext ‖ tag. */
  readonly input: Uint8Array;
  readonly iv: Uint8Array;
  readonly associatedData: Uint8Array;
}

/** A key that another system holds. Its methods throw {@link TransitError}. */
export interface ManagedKey {
  readonly name: string;
  readonly algorithm: ManagedAlgorithm;
  readonly usages: ReadonlySet<ManagedUsage>;
  /** An RSA signature, or r ‖ s of the curve's size. */
  sign(input: ManagedSigningInput): Promise<Buffer>;
  /** @returns ciphertext ‖ tag of 16 bytes */
  encrypt(input: ManagedCipherInput): Promise<Buffer>;
  decrypt(input: ManagedCipherInput): Promise<Buffer>;
}

/** The managed keys that one mount may use. Methods throw {@link TransitError}. */
export interface ManagedKeys {
  /** Finds the key in the system that holds it, or has it made there where that is allowed. */
  bind(reference: ManagedKeyReference): Promise<BoundManagedKey>;
  /** @param id - as {@link ManagedKeys.bind} gave it; the mount has to be allowed to use the key still */
  find(id: string): Promise<ManagedKey>;
}

const unavailable = (): Promise<never> =>
  Promise.reject(new TransitError('invalid_request', 'there are no managed keys on this node'));

/** Of a mount that has none. */
export const noManagedKeys: ManagedKeys = { bind: unavailable, find: unavailable };
