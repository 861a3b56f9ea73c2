/** What a key in a token is for, and how it works. */
export type Mechanism = 'CKM_RSA_PKCS' | 'CKM_RSA_PKCS_PSS' | 'CKM_ECDSA' | 'CKM_AES_GCM';

export const mechanisms: readonly Mechanism[] = ['CKM_RSA_PKCS', 'CKM_RSA_PKCS_PSS', 'CKM_ECDSA', 'CKM_AES_GCM'];

/** Curves of ECDSA keys: their object identifiers in DER, as tokens name them, and the bytes of a coordinate. */
export const curves = {
  P256: { jwk: 'P-256', oid: '06082a8648ce3d030107', bytes: 32 },
  P384: { jwk: 'P-384', oid: '06052b81040022', bytes: 48 },
  P521: { jwk: 'P-521', oid: '06052b81040023', bytes: 66 },
} as const;
export type Curve = keyof typeof curves;

/** Where a token is, and what opens it. */
export interface TokenPlace {
  /** A name of the configuration. */
  readonly library: string;
  /** Of this and the next at least one; a token has to match both. */
  readonly slot?: number;
  readonly tokenLabel?: string;
  readonly pin: string;
}

/** Which key of a token. */
export interface TokenKey extends TokenPlace {
  /** Of this and the next at least one; a key has to match both. */
  readonly keyLabel?: string;
  /** CKA_ID. */
  readonly keyId?: Uint8Array;
  readonly mechanism: Mechanism;
}

/** What a key that is to be generated is. */
export interface NewTokenKey {
  /** RSA and AES. */
  readonly bits?: number;
  /** ECDSA. */
  readonly curve?: Curve;
}

/** What is signed: a digest or, on CKM_RSA_PKCS without a hash, whatever fits. */
export interface SigningInput {
  readonly digest: Uint8Array;
  /** The hash that made the digest, as OpenSSL calls it; null for none. */
  readonly hash: string | null;
  /** CKM_RSA_PKCS_PSS only. */
  readonly saltBytes?: number;
}

/** What AES-GCM takes beside the key (NIST SP 800-38D §7); tags have 128 bits. */
export interface GcmInput {
  /** Of a decryption: ciphertext ‖ tag. */
  readonly input: Uint8Array;
  readonly iv: Uint8Array;
  readonly associatedData: Uint8Array;
}
